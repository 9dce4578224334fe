/** Does one thing after the other, and lets only so many wait for their turn. */
import { TooManyRequests } from "./too-many-requests.ts";

export interface TurnsOptions {
  readonly waitingMax: number;
  /** What who comes too many is told, and after how long to come again. */
  readonly message: string;
  readonly pauseMs: number;
}

export class Turns {
  readonly #options: TurnsOptions;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    const { waitingMax, message, pauseMs } = this.#options;
    if (this.#waiting >= waitingMax) throw new TooManyRequests(message, pauseMs);
    this.#waiting += 1;
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    try {
      return await done;
    } finally {
      this.#waiting -= 1;
    }
  }
}
