/**
 * The messages of a queue as an async iterator. Asking for the next message finishes the one before; leaving the
 * loop, by `break`, `return` or an error, gives the present message and the rest back at once, uncounted.
 */
import type { Closable, Core } from "./core.ts";
import type { PopRequest } from "./data-plane.ts";
import { Delivery } from "./delivery.ts";
import { AckError, ClosedError } from "./errors.ts";
import type { LeasedMessage } from "./message.ts";
import { readPatiently } from "./reader.ts";
import type { StandardSchema } from "./standard-schema.ts";
import { onAbort } from "./transport/on-abort.ts";
import { pause } from "./transport/pause.ts";

export interface IteratorOptions<T> {
  readonly pop: PopRequest;
  readonly schema: StandardSchema<unknown, T> | undefined;
  readonly renewSeconds: number | false;
  readonly limit: number;
  readonly idleMillis: number;
  readonly signal: AbortSignal | undefined;
}

export async function* iterateMessages<T>(
  core: Core,
  options: IteratorOptions<T>,
): AsyncGenerator<LeasedMessage<T>, void, void> {
  const { pop, schema, renewSeconds, limit, idleMillis, signal } = options;
  const stop = new AbortController();
  const unlink = onAbort(signal, () => stop.abort(signal?.reason));
  const warn = (error: unknown): void => core.warn("A message was not acked; it may come again.", error);
  let delivery: Delivery<T> | undefined;
  const closable: Closable = {
    // The loop's body is the user's: it sees its signal, and the next step ends the loop.
    close: async () => {
      stop.abort(new ClosedError());
      delivery?.abort(stop.signal.reason);
      await delivery?.end();
    },
  };
  core.open.add(closable);
  try {
    if (renewSeconds !== false) await core.keeper.prepare();
    let idleSinceMillis = performance.now();
    for (let left = limit; left > 0 && !stop.signal.aborted; ) {
      const idleLeft = idleMillis - (performance.now() - idleSinceMillis);
      if (idleLeft <= 0) return;
      const timeoutMillis = Math.ceil(Math.min(pop.timeoutMillis, idleLeft));
      const batch = Math.min(pop.batch, left);
      const request = { ...pop, batch, wait: true, timeoutMillis, autoAck: false };
      const { messages, count, retryAfterMillis } = await readPatiently(core, request, schema, stop.signal);
      if (count === 0 && retryAfterMillis > 0) await pause(retryAfterMillis, stop.signal);
      if (messages.length === 0) continue;
      const present = await Delivery.of(core, messages, renewSeconds);
      delivery = present;
      for (const message of messages)
        Object.defineProperty(message, "signal", { get: () => present.signalOf(message) });
      for (const message of messages) {
        if (!delivery.isOpen(message)) continue;
        yield message as LeasedMessage<T>;
        left--;
        delivery.notice([message]);
        // Nobody waits for the ack here: the end of the delivery does.
        delivery.settle([message], { status: "completed" }).then(
          (results) => {
            if (results.some(({ success }) => !success)) warn(new AckError(results));
          },
          (error: unknown) => warn(error),
        );
        if (stop.signal.aborted) break;
      }
      await delivery.end();
      delivery = undefined;
      idleSinceMillis = performance.now();
    }
  } catch (error) {
    // The end that was asked for is no failure.
    if (!stop.signal.aborted || error !== stop.signal.reason) throw error;
  } finally {
    await delivery?.end();
    core.open.delete(closable);
    unlink();
  }
}
