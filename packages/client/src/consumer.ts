/**
 * A consumer pops, calls a handler and acks what it did, in as many loops as `concurrency` says. A lane is leased
 * to one loop at a time, so messages of one lane are handled one after the other, whatever the concurrency.
 *
 *   pop ──▶ delivery ──▶ handler ──returns──▶ completed
 *    ▲                      └─────throws────▶ failed, or what onError says; the rest of the lane comes again
 *    └── acks sent ◀──────────────────────────┘
 *
 * `close` lets handlers finish, and gives back what no handler has begun.
 */
import type { Closable, Core } from "./core.ts";
import type { PopRequest } from "./data-plane.ts";
import { Delivery } from "./delivery.ts";
import { AckError, ClosedError } from "./errors.ts";
import type { AckResult, AckStatus, Message } from "./message.ts";
import { type Read, readPatiently } from "./reader.ts";
import type { StandardSchema } from "./standard-schema.ts";
import { onAbort } from "./transport/on-abort.ts";
import { pause } from "./transport/pause.ts";

export interface HandlerContext {
  /** Aborted when the lease is lost: somebody else may get the messages, so stop. */
  readonly signal: AbortSignal;
}

export interface ConsumerOptions<T> {
  readonly pop: PopRequest;
  readonly schema: StandardSchema<unknown, T> | undefined;
  readonly concurrency: number;
  readonly autoAck: boolean;
  readonly renewSeconds: number | false;
  readonly limit: number;
  /** Ends when nothing came for so long. */
  readonly idleMillis: number;
  /** Units of work: each message by itself, or all of a pop together. */
  readonly split: (messages: readonly Message<T>[]) => (readonly Message<T>[])[];
  readonly handle: (unit: readonly Message<T>[], context: HandlerContext) => unknown;
  readonly onSuccess: (unit: readonly Message<T>[], result: unknown) => unknown;
  /** Undefined: nobody said what to do. */
  readonly onError: ((error: unknown, unit: readonly Message<T>[]) => unknown) | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface ConsumeSummary {
  /** Messages whose handler returned. */
  readonly completed: number;
  /** Messages whose handler threw. */
  readonly failed: number;
}

const STATUSES: readonly unknown[] = ["completed", "failed", "retry", "dlq"] satisfies AckStatus[];

export class Consumer<T> implements Closable {
  readonly #core: Core;
  readonly #options: ConsumerOptions<T>;
  readonly #stop = new AbortController();
  readonly #deliveries = new Set<Delivery<T>>();
  readonly #finished: Promise<ConsumeSummary>;
  #completed = 0;
  #failed = 0;
  #left: number;
  #lastMessageMillis = 0;
  #reserved = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(core: Core, options: ConsumerOptions<T>) {
    this.#core = core;
    this.#options = options;
    this.#left = options.limit;
    const unlink = onAbort(options.signal, () => this.stop());
    core.open.add(this);
    this.#finished = this.#run().finally(() => {
      unlink();
      core.open.delete(this);
    });
    // Whoever awaits it is told, and so is whoever does not.
    this.#finished.catch((error) =>
      core.warn(`The consumer of ${options.pop.queue ?? "queues"} ended.`, error),
    );
  }

  get finished(): Promise<ConsumeSummary> {
    return this.#finished;
  }

  /** No more pops; handlers at work finish. */
  stop(): void {
    this.#stop.abort(new ClosedError("The consumer was stopped."));
    this.#changed();
  }

  async close(hurry: AbortSignal): Promise<void> {
    this.stop();
    const late = new Promise<void>((resolve) => {
      const unlink = onAbort(hurry, () => {
        for (const delivery of this.#deliveries) {
          delivery.abort(hurry.reason);
          void delivery.end();
        }
        resolve();
      });
      void this.#finished.finally(unlink).catch(() => undefined);
    });
    await Promise.race([this.#finished.catch(() => undefined), late]);
  }

  async #run(): Promise<ConsumeSummary> {
    if (this.#options.renewSeconds !== false) await this.#core.keeper.prepare();
    this.#lastMessageMillis = performance.now();
    const loops = Array.from({ length: this.#options.concurrency }, () => this.#loop());
    try {
      await Promise.all(loops);
    } catch (error) {
      this.stop();
      await Promise.allSettled(loops);
      throw error;
    }
    return { completed: this.#completed, failed: this.#failed };
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stop;
    for (let batch = await this.#reserve(); batch > 0; batch = await this.#reserve()) {
      let unused = batch;
      try {
        const popped = await this.#pop(batch);
        if (popped === undefined) return;
        const { messages, count, retryAfterMillis } = popped;
        unused -= count;
        if (count > 0) this.#lastMessageMillis = performance.now();
        else if (this.#isIdle()) this.stop();
        else if (retryAfterMillis > 0) await pause(retryAfterMillis, signal).catch(() => undefined);
        // What was not begun comes again and is no part of the limit.
        if (messages.length > 0) unused += messages.length - (await this.#work(messages));
      } finally {
        this.#reserved -= batch;
        this.#left += unused;
        this.#changed();
      }
    }
  }

  /** Undefined: the consumer was stopped meanwhile. */
  async #pop(batch: number): Promise<Read<T> | undefined> {
    const { pop, schema } = this.#options;
    const { signal } = this.#stop;
    const idleLeft = this.#options.idleMillis - (performance.now() - this.#lastMessageMillis);
    // Rounded up: a wait that ends just before its time would ask once more for nothing.
    const timeoutMillis = Math.ceil(Math.min(pop.timeoutMillis, Math.max(1, idleLeft)));
    const request = { ...pop, batch, wait: true, timeoutMillis, autoAck: false };
    try {
      return await readPatiently(this.#core, request, schema, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  #isIdle(): boolean {
    const isWorking = this.#deliveries.size > 0;
    return !isWorking && performance.now() - this.#lastMessageMillis >= this.#options.idleMillis;
  }

  /** How many messages the next pop may bring; waits while others may leave some of the limit. 0: no more. */
  async #reserve(): Promise<number> {
    while (this.#left <= 0 && this.#reserved > 0 && !this.#stop.signal.aborted)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#stop.signal.aborted) return 0;
    const batch = Math.min(this.#options.pop.batch, this.#left);
    this.#left -= batch;
    this.#reserved += batch;
    return batch;
  }

  #changed(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Returns for how many messages a handler was called. */
  async #work(messages: readonly Message<T>[]): Promise<number> {
    const { split, renewSeconds, autoAck } = this.#options;
    const delivery = await Delivery.of(this.#core, messages, renewSeconds);
    this.#deliveries.add(delivery);
    const followUps: Promise<void>[] = [];
    let begun = 0;
    try {
      for (const all of split(messages)) {
        if (this.#stop.signal.aborted) break;
        const unit = all.filter((message) => delivery.isOpen(message));
        if (unit.length === 0) continue;
        begun += unit.length;
        await this.#handle(delivery, unit, followUps);
        delivery.notice(unit);
      }
    } finally {
      if (autoAck || begun === 0) await delivery.end();
      else delivery.letGo();
      await Promise.all(followUps);
      this.#deliveries.delete(delivery);
      this.#lastMessageMillis = performance.now();
    }
    return begun;
  }

  /** Returns when the handler has; ack and callback, which follow, need not keep the next one waiting. */
  async #handle(
    delivery: Delivery<T>,
    unit: readonly Message<T>[],
    followUps: Promise<void>[],
  ): Promise<void> {
    const { handle, onSuccess, onError, autoAck } = this.#options;
    const span = await this.#core.telemetry.process(unit);
    const context = new UnitContext(delivery, unit);
    try {
      const result = await span.run(() => handle(unit, context));
      this.#completed += unit.length;
      span.end();
      const settled = autoAck ? delivery.settle(unit, { status: "completed" }) : undefined;
      followUps.push(this.#afterAck(settled, unit, () => onSuccess(unit, result)));
    } catch (error) {
      this.#failed += unit.length;
      span.end(error);
      const said = await onError?.(error, unit);
      if (onError === undefined) this.#core.warn(`The handler of ${unit[0]!.queue} failed.`, error);
      if (!autoAck) return;
      const status = STATUSES.includes(said) ? (said as AckStatus) : "failed";
      followUps.push(this.#afterAck(delivery.settle(unit, { status, error: messageOf(error) }), unit));
    }
  }

  async #afterAck(
    settled: Promise<AckResult[]> | undefined,
    unit: readonly Message<T>[],
    then: () => unknown = () => undefined,
  ): Promise<void> {
    try {
      const results = (await settled) ?? [];
      if (results.some((result) => !result.success)) throw new AckError(results);
      await then();
    } catch (error) {
      this.#core.warn(`After the handler of ${unit[0]!.queue}: ${messageOf(error)}`, error);
    }
  }
}

/** The signal is made if the handler asks for it. */
class UnitContext implements HandlerContext {
  readonly #delivery: Delivery<unknown>;
  readonly #unit: readonly Message[];

  constructor(delivery: Delivery<unknown>, unit: readonly Message[]) {
    this.#delivery = delivery;
    this.#unit = unit;
  }

  get signal(): AbortSignal {
    return this.#unit.length === 1 ? this.#delivery.signalOf(this.#unit[0]!) : this.#delivery.signal;
  }
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error);
