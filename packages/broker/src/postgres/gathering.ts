/**
 * A gathering asks PostgreSQL for many things in one call: what is asked for at the same time, or while a call is under
 * way, goes together into the next. One call follows the other.
 */

/** Something that was asked for, and who waits for it. */
export interface Asked<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

export interface GatheringOptions<Question, Answer> {
  /** Makes the call and resolves all that were asked for. Where it fails, none was resolved. */
  readonly call: (asked: readonly Asked<Question, Answer>[]) => Promise<void>;
  /** How many of those that wait go into the next call. */
  readonly atOnce: (waiting: readonly Asked<Question, Answer>[]) => number;
  /** One of many may be to blame for this error: they are asked for in smaller and smaller parts, until it is alone. */
  readonly isOnes?: (error: unknown) => boolean;
}

export class Gathering<Question, Answer> {
  readonly #options: GatheringOptions<Question, Answer>;
  #waiting: Asked<Question, Answer>[] = [];
  #isAsking = false;

  constructor(options: GatheringOptions<Question, Answer>) {
    this.#options = options;
  }

  ask(question: Question): Promise<Answer> {
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting.push({ question, resolve, reject });
    });
    if (!this.#isAsking) {
      this.#isAsking = true;
      setImmediate(() => void this.#askAll());
    }
    return answer;
  }

  async #askAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#askTogether(this.#waiting.splice(0, this.#options.atOnce(this.#waiting)));
    }
    this.#isAsking = false;
  }

  async #askTogether(asked: readonly Asked<Question, Answer>[]): Promise<void> {
    try {
      await this.#options.call(asked);
    } catch (error) {
      if (asked.length > 1 && this.#options.isOnes?.(error)) {
        const half = asked.length >> 1;
        await Promise.all([this.#askTogether(asked.slice(0, half)), this.#askTogether(asked.slice(half))]);
      } else for (const { reject } of asked) reject(error as Error);
    }
  }
}
