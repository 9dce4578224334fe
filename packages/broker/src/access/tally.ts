/** Counts what each key has at the moment, up to a limit: connections of an address, parked pops of a client. */
export class Tally {
  readonly #limit: number;
  readonly #counts = new Map<string, number>();

  /** 0: no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** False: the key has as many as it may have. */
  enter(key: string): boolean {
    if (this.#limit === 0) return true;
    const count = this.#counts.get(key) ?? 0;
    if (count >= this.#limit) return false;
    this.#counts.set(key, count + 1);
    return true;
  }

  /** For each `enter` that was true, once. */
  leave(key: string): void {
    if (this.#limit === 0) return;
    const count = this.#counts.get(key)!;
    if (count > 1) this.#counts.set(key, count - 1);
    else this.#counts.delete(key);
  }

  get size(): number {
    return this.#counts.size;
  }
}
