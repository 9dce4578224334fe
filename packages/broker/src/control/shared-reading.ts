/** A reading that all who ask within a while share: the first one asks the database, the others get the same answer. */
export class SharedReading<T> {
  readonly #read: (key: string) => Promise<T>;
  readonly #keepMs: number;
  readonly #now: () => number;
  readonly #readings = new Map<string, { readonly reading: Promise<T>; endsAtMs: number }>();

  constructor(keepMs: number, now: () => number, read: (key: string) => Promise<T>) {
    this.#keepMs = keepMs;
    this.#now = now;
    this.#read = read;
  }

  /** One that failed is shared by those who waited for it, and not kept. */
  get(key = ""): Promise<T> {
    const nowMs = this.#now();
    for (const [each, { endsAtMs }] of this.#readings) if (endsAtMs <= nowMs) this.#readings.delete(each);
    const known = this.#readings.get(key);
    if (known) return known.reading;
    const entry = { reading: this.#read(key), endsAtMs: Number.POSITIVE_INFINITY };
    this.#readings.set(key, entry);
    entry.reading.then(
      () => {
        entry.endsAtMs = this.#now() + this.#keepMs;
      },
      () => this.#readings.delete(key),
    );
    return entry.reading;
  }
}
