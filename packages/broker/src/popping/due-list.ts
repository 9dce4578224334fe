/**
 * The due list calls a function for each thing whose time has come, with one timer for all of them. A thing
 * has at most one time; setting a later one costs nothing, because an entry that fires early looks again.
 */
export interface Due {
  /** When it is due, in milliseconds of the process's clock; undefined: never. */
  dueAtMs: number | undefined;
  /** When the earliest entry for it fires. */
  listedAtMs: number;
}

interface Entry<T> {
  readonly atMs: number;
  readonly thing: T;
}

export class DueList<T extends Due> {
  readonly #heap: Entry<T>[] = [];
  readonly #now: () => number;
  readonly #fire: (thing: T) => void;
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Infinity;

  constructor(now: () => number, fire: (thing: T) => void) {
    this.#now = now;
    this.#fire = fire;
  }

  get length(): number {
    return this.#heap.length;
  }

  set(thing: T, inMs: number): void {
    const atMs = this.#now() + inMs;
    thing.dueAtMs = atMs;
    if (thing.listedAtMs <= atMs) return;
    thing.listedAtMs = atMs;
    this.#push({ atMs, thing });
    this.#schedule();
  }

  clear(thing: T): void {
    thing.dueAtMs = undefined;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#heap.length = 0;
  }

  #schedule(): void {
    const first = this.#heap[0];
    if (!first || first.atMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = first.atMs;
    // A millisecond later than asked: timers may fire early, and the database must agree that it is time.
    this.#timer = setTimeout(
      () => this.#run(),
      Math.max(1, Math.min(first.atMs - this.#now() + 1, 0x7fffffff)),
    );
  }

  #run(): void {
    this.#timerAtMs = Infinity;
    const nowMs = this.#now();
    while (this.#heap[0] && this.#heap[0].atMs <= nowMs) {
      const { thing, atMs } = this.#pop();
      if (thing.listedAtMs !== atMs) continue;
      thing.listedAtMs = Infinity;
      if (thing.dueAtMs === undefined) continue;
      if (thing.dueAtMs > nowMs) {
        thing.listedAtMs = thing.dueAtMs;
        this.#push({ atMs: thing.dueAtMs, thing });
        continue;
      }
      thing.dueAtMs = undefined;
      this.#fire(thing);
    }
    this.#schedule();
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.atMs <= entry.atMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry<T> {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length > 0) {
      let at = 0;
      for (;;) {
        let child = at * 2 + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child++;
        if (heap[child]!.atMs >= last.atMs) break;
        heap[at] = heap[child]!;
        at = child;
      }
      heap[at] = last;
    }
    return top;
  }
}
