/**
 * What `consume` returns: a promise of the end, with callbacks to add before the first pop, which comes one turn
 * of the event loop later.
 */
import type { ConsumeSummary } from "./consumer.ts";
import type { AckStatus } from "./message.ts";

interface Running {
  readonly finished: Promise<ConsumeSummary>;
  stop(): void;
}

export interface Callbacks<Unit> {
  onSuccess: (unit: Unit, result: unknown) => unknown;
  onError: ((error: unknown, unit: Unit) => unknown) | undefined;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a callback that returns nothing says nothing
export type Verdict = AckStatus | undefined | void;

export class Consumption<Unit> implements PromiseLike<ConsumeSummary> {
  readonly #callbacks: Callbacks<Unit>;
  readonly #consumer: Promise<Running>;

  constructor(start: (callbacks: Callbacks<Unit>) => Running) {
    this.#callbacks = { onSuccess: () => undefined, onError: undefined };
    this.#consumer = Promise.resolve().then(() => start(this.#callbacks));
    this.#consumer.catch(() => undefined); // whoever awaits it is told
  }

  /** Called when the handler returned and the ack is done. */
  onSuccess(callback: (unit: Unit, result: unknown) => unknown): this {
    this.#callbacks.onSuccess = callback;
    return this;
  }

  /**
   * Called when the handler threw. What it returns becomes of the message; `failed` unless said. When it throws
   * itself, the consumer ends with that error.
   */
  onError(callback: (error: unknown, unit: Unit) => Verdict | Promise<Verdict>): this {
    this.#callbacks.onError = callback;
    return this;
  }

  /** No more pops; resolves when the handlers at work have finished. */
  async stop(): Promise<ConsumeSummary> {
    const consumer = await this.#consumer;
    consumer.stop();
    return consumer.finished;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a consumption waits for its end
  then<A = ConsumeSummary, B = never>(
    onFulfilled?: ((summary: ConsumeSummary) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#consumer.then((consumer) => consumer.finished).then(onFulfilled, onRejected);
  }
}
