/** FIFO of operations of one kind. Full means refuse now, not grow. */
import { Fifo } from "../fifo.ts";

export class OperationQueue<T> {
  readonly lengthMax: number;
  readonly #items = new Fifo<T>();

  constructor(lengthMax: number) {
    this.lengthMax = lengthMax;
  }

  get length(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items.first;
  }

  /** False: full, and the item was not taken. */
  push(item: T): boolean {
    if (this.length >= this.lengthMax) return false;
    this.#items.push(item);
    return true;
  }

  shift(): T | undefined {
    return this.#items.shift();
  }
}
