/**
 * An abort is an AbortController for what is made for every request and delivery: who waits for it is a plain function, and
 * its signal is made when somebody asks for one. A signal costs as much as a good part of a request.
 */
import { onAbort } from "./on-abort.ts";

export class Abort {
  #isAborted = false;
  #reason: unknown;
  #listener: (() => void) | undefined;
  #controller: AbortController | undefined;

  get isAborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#listener?.();
  }

  /** One at a time: whoever is at work now. Called at once if it is aborted already. */
  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (this.#isAborted) listener?.();
  }

  /** Is aborted with the first of these, until the returned function is called. */
  follow(signals: readonly AbortSignal[]): () => void {
    const unlinks = signals.map((signal) => onAbort(signal, () => this.abort(signal.reason)));
    return () => {
      for (const unlink of unlinks) unlink();
    };
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }
}
