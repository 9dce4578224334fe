/**
 * Shared readings: figures that cost a walk over all lanes are read once for everybody who asks at the same
 * time, and kept for ten times as long as reading them took, at most a second. So a small database always
 * shows what is there now, and a large one is never busy with being watched.
 */
export interface Reading<T> {
  readonly value: T;
  readonly atMs: number;
}

const KEPT_TIMES = 10;
const KEPT_MS_MAX = 1_000;

interface Entry<T> {
  readonly reading: Promise<Reading<T>>;
  /** Infinity: it is under way. */
  untilMs: number;
}

export class SharedReadings<Key, T> {
  readonly #read: (key: Key) => Promise<T>;
  readonly #now: () => number;
  readonly #entries = new Map<Key, Entry<T>>();

  constructor(read: (key: Key) => Promise<T>, now: () => number) {
    this.#read = read;
    this.#now = now;
  }

  get(key: Key): Promise<Reading<T>> {
    const nowMs = this.#now();
    for (const [each, entry] of this.#entries) if (entry.untilMs <= nowMs) this.#entries.delete(each);
    return this.#entries.get(key)?.reading ?? this.refresh(key);
  }

  /** Reads anew, whatever is kept. */
  refresh(key: Key): Promise<Reading<T>> {
    const startedAtMs = this.#now();
    const entry: Entry<T> = {
      untilMs: Infinity,
      reading: this.#read(key).then(
        (value) => {
          const atMs = this.#now();
          entry.untilMs = atMs + Math.min((atMs - startedAtMs) * KEPT_TIMES, KEPT_MS_MAX);
          return { value, atMs };
        },
        (error) => {
          if (this.#entries.get(key) === entry) this.#entries.delete(key);
          throw error;
        },
      ),
    };
    this.#entries.set(key, entry);
    return entry.reading;
  }
}
