/** FIFO of operations of one kind. Full means refuse now, not grow. */
export class OperationQueue<T> {
  readonly lengthMax: number;
  #items: (T | undefined)[] = [];
  #head = 0;

  constructor(lengthMax: number) {
    this.lengthMax = lengthMax;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  /** False: full, and the item was not taken. */
  push(item: T): boolean {
    if (this.length >= this.lengthMax) return false;
    this.#items.push(item);
    return true;
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
