/**
 * A buffer gathers messages of one queue and pushes them together: when there are enough of them, or the oldest
 * has waited long enough. One push is under way at a time, so messages keep their order; while the broker is
 * away they wait here, and a full buffer makes its producers wait.
 */
import type { Closable } from "./core.ts";
import type { PushItem } from "./data-plane.ts";
import { ClosedError, QueenError } from "./errors.ts";
import { onAbort } from "./transport/on-abort.ts";
import { pause } from "./transport/pause.ts";
import { isTransient } from "./transport/retry.ts";

export interface BufferOptions {
  /** Push when so many messages wait; 100 unless said. */
  readonly messages?: number;
  /** Push when the oldest has waited so long; 50 unless said. */
  readonly millis?: number;
  /** Messages in the buffer at most; 10,000 unless said. */
  readonly max?: number;
  /** Called with messages that the broker refused for good. `flush` and `close` reject, too. */
  readonly onError?: (error: unknown, items: readonly PushItem[]) => void;
}

const RETRY_MILLIS = 500;

export class Buffer implements Closable {
  readonly #push: (items: readonly PushItem[]) => Promise<unknown>;
  readonly #messages: number;
  readonly #millis: number;
  readonly #max: number;
  readonly #onError: BufferOptions["onError"];
  readonly #items: PushItem[] = [];
  readonly #waitingForRoom: (() => void)[] = [];
  readonly #stop = new AbortController();
  #taken: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  #wantsAll = false;
  #firstError: unknown;

  constructor(push: (items: readonly PushItem[]) => Promise<unknown>, options: BufferOptions) {
    this.#push = push;
    this.#messages = options.messages ?? 100;
    this.#millis = options.millis ?? 50;
    this.#max = Math.max(options.max ?? 10_000, 1);
    this.#onError = options.onError;
  }

  /** Messages that are not stored yet. */
  get size(): number {
    return this.#items.length;
  }

  /**
   * Resolves when the messages are in the buffer, not when they are stored. Those of an earlier call come first,
   * also when its messages are still being checked.
   */
  add(items: readonly PushItem[] | Promise<readonly PushItem[]>): Promise<void> {
    const checked = Promise.resolve(items);
    checked.catch(() => undefined); // the caller hears of it in its turn
    const taken = this.#taken.then(async () => this.#take(await checked));
    this.#taken = taken.catch(() => undefined);
    return taken;
  }

  /** Resolves when everything is stored that was added so far; rejects if some was refused since the last flush. */
  async flush(): Promise<void> {
    let isTaken = false;
    const taken = this.#taken.then(() => {
      isTaken = true;
    });
    while ((!isTaken || this.#items.length > 0) && !this.#stop.signal.aborted) {
      this.#wantsAll = true;
      if (this.#items.length > 0) this.#send();
      await (this.#sending ?? taken);
    }
    const error = this.#firstError;
    this.#firstError = undefined;
    if (error !== undefined) throw error;
  }

  async close(hurry: AbortSignal): Promise<void> {
    const unlink = onAbort(hurry, () => this.#stop.abort(hurry.reason));
    try {
      await this.flush();
    } finally {
      unlink();
      this.#stop.abort(new ClosedError());
      for (const resolve of this.#waitingForRoom.splice(0)) resolve();
    }
    if (this.#items.length > 0)
      throw new QueenError(
        "BUFFER_NOT_EMPTY",
        `${this.#items.length} buffered messages were not stored in time.`,
      );
  }

  async #take(items: readonly PushItem[]): Promise<void> {
    for (const item of items) {
      while (this.#items.length >= this.#max && !this.#stop.signal.aborted)
        await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve));
      if (this.#stop.signal.aborted)
        throw new ClosedError("The buffer is closed: the message was not taken.");
      this.#items.push(item);
      if (this.#items.length >= Math.min(this.#messages, this.#max)) this.#send();
      else this.#timer ??= setTimeout(() => this.#send(), this.#millis);
    }
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll()
      .catch((error) => {
        this.#firstError ??= error;
      })
      .finally(() => {
        this.#sending = undefined;
        if (this.#items.length > 0 && !this.#stop.signal.aborted)
          this.#timer ??= setTimeout(() => this.#send(), this.#millis);
      });
  }

  async #sendAll(): Promise<void> {
    do {
      const items = this.#items.slice(0, Math.max(this.#messages, 1));
      if (items.length === 0) break;
      try {
        await this.#push(items);
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (isTransient(error)) {
          await pause(RETRY_MILLIS, this.#stop.signal).catch(() => undefined);
          if (this.#stop.signal.aborted) return;
          continue; // the same messages again: they keep their transactionIds and their place
        }
        await this.#refused(error, items);
      }
      this.#items.splice(0, items.length);
      for (const resolve of this.#waitingForRoom.splice(0)) resolve();
    } while (this.#items.length >= this.#messages || this.#wantsAll);
    this.#wantsAll = false;
  }

  /** One bad message does not take the others along: each is pushed by itself, in order. */
  async #refused(error: unknown, items: readonly PushItem[]): Promise<void> {
    if (items.length === 1) {
      this.#firstError ??= error;
      this.#onError?.(error, items);
      return;
    }
    for (const item of items) {
      for (;;) {
        try {
          await this.#push([item]);
          break;
        } catch (own) {
          if (!isTransient(own)) {
            await this.#refused(own, [item]);
            break;
          }
          await pause(RETRY_MILLIS, this.#stop.signal);
        }
      }
    }
  }
}
