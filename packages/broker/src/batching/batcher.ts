/**
 * A batcher sends operations of one kind to PostgreSQL, many in one call. A free slot takes what is there at
 * once; while all slots are busy, operations gather. What is parsed in one turn of the event loop goes
 * together, because a batch starts with `setImmediate`.
 *
 *   submit ──▶ queue ──(policy)──▶ run on a slot ──▶ results by index
 *                                      │ refused for what it contains: halves, until the bad one is alone
 *                                      │ refused for the moment: the same again, where that is safe
 *                                      └ connection lost: the same again, where that is safe
 */
import { BrokerError } from "@queen/protocol";
import { crashPoint } from "../crash-point.ts";
import { classify, isDeterministic, isRetryable } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import type { Slots } from "../postgres/slots.ts";
import type { EndCall, OperationSpan, Tracing } from "../tracing.ts";
import { decideBatch } from "./batch-policy.ts";
import { OperationQueue } from "./operation-queue.ts";
import { type OperationFigures, OperationStatistics } from "./operation-statistics.ts";

export interface BatchKind<Operation, Result> {
  readonly name: string;
  /** Operations that are heavy make smaller batches: a batch ends when their weights reach the limit. */
  weight(operation: Operation): number;
  /** One call for all of them; results in the order of the operations. */
  run(session: Session, operations: readonly Operation[]): Promise<Result[]>;
  /** Whether a call whose outcome is unknown may simply be made again. */
  readonly repeatable: boolean;
  /** Under which name a call is traced, and the spans of the requests in an operation. */
  readonly traced?: {
    readonly procedure: string;
    spans(operation: Operation): Iterable<OperationSpan | undefined>;
  };
  /** For the statistics: how long an operation may take from its client's view, in seconds. */
  readonly durationBounds?: readonly number[];
}

export interface BatchLimits {
  readonly operationsMax: number;
  readonly weightMax: number;
  readonly waitingMax: number;
  readonly holdMs: number;
}

interface Entry<Operation, Result> {
  readonly operation: Operation;
  readonly enqueuedAtMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: Error) => void;
}

const ATTEMPTS_MAX = 3;

export class Batcher<Operation, Result> {
  readonly statistics: OperationStatistics;
  readonly #kind: BatchKind<Operation, Result>;
  readonly #slots: Slots;
  readonly #limits: BatchLimits;
  readonly #queue: OperationQueue<Entry<Operation, Result>>;
  readonly #now: () => number;
  readonly #tracing: Tracing | undefined;
  #scheduled = false;
  #underWay = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    kind: BatchKind<Operation, Result>,
    slots: Slots,
    limits: BatchLimits,
    now: () => number,
    tracing?: Tracing,
  ) {
    this.#tracing = tracing;
    this.statistics = new OperationStatistics(kind.durationBounds);
    this.#kind = kind;
    this.#slots = slots;
    this.#limits = limits;
    this.#now = now;
    this.#queue = new OperationQueue(limits.waitingMax);
    slots.onChange(() => this.#pump());
  }

  get figures(): OperationFigures {
    return this.statistics.figures(this.#queue.length, this.#slots.busy);
  }

  submit(operation: Operation): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#slots.unavailable) {
        reject(this.#slots.unavailable);
        return;
      }
      if (!this.#queue.push({ operation, enqueuedAtMs: this.#now(), resolve, reject })) {
        reject(
          new BrokerError(
            "OVERLOADED",
            `${this.#limits.waitingMax} ${this.#kind.name} operations are waiting already. Try again later.`,
          ),
        );
        return;
      }
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#pump();
      });
    });
  }

  /** Called when operations arrived, when a slot changes, and when the hold is over. */
  #pump(): void {
    clearTimeout(this.#timer);
    if (this.#slots.unavailable) {
      for (let entry = this.#queue.shift(); entry; entry = this.#queue.shift())
        entry.reject(this.#slots.unavailable);
      return;
    }
    for (;;) {
      const decision = decideBatch(
        {
          queued: this.#queue.length,
          oldestAgeMs: this.#now() - (this.#queue.first?.enqueuedAtMs ?? 0),
          freeSlots: this.#slots.free,
          underWay: this.#underWay,
        },
        { sizeMax: this.#limits.operationsMax, holdMs: this.#limits.holdMs },
      );
      if (decision !== "flush") {
        if (Number.isFinite(decision.waitMs)) {
          this.#timer = setTimeout(() => this.#pump(), Math.ceil(decision.waitMs));
        }
        return;
      }
      const session = this.#slots.take();
      if (!session) return;
      void this.#send(session, this.#gather());
    }
  }

  #gather(): Entry<Operation, Result>[] {
    const batch: Entry<Operation, Result>[] = [];
    let weight = 0;
    while (batch.length < this.#limits.operationsMax && this.#queue.first) {
      weight += this.#kind.weight(this.#queue.first.operation);
      if (batch.length > 0 && weight > this.#limits.weightMax) break;
      batch.push(this.#queue.shift()!);
    }
    return batch;
  }

  async #send(session: Session, batch: Entry<Operation, Result>[]): Promise<void> {
    const startedAtMs = this.#now();
    let waitMs = 0;
    for (const entry of batch) waitMs += startedAtMs - entry.enqueuedAtMs;
    this.#underWay += batch.length;
    await this.#run(session, batch);
    this.#underWay -= batch.length;
    this.statistics.batch(batch.length, waitMs, this.#now() - startedAtMs);
    this.#slots.give(session);
  }

  async #run(session: Session, batch: Entry<Operation, Result>[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const operations = batch.map((entry) => entry.operation);
      const endCall = this.#traceCall(operations);
      try {
        crashPoint(`${this.#kind.name}-unsent`);
        const running = this.#kind.run(session, operations);
        crashPoint(`${this.#kind.name}-sent`);
        const results = await running;
        crashPoint(`${this.#kind.name}-done`);
        endCall?.();
        for (let index = 0; index < batch.length; index++) batch[index]!.resolve(results[index]!);
        return;
      } catch (error) {
        endCall?.(error);
        this.statistics.failures++;
        if (session.closed && this.#kind.repeatable) {
          for (const entry of batch) this.#again(entry, error as Error);
          return;
        }
        if (!session.closed && isRetryable(error) && attempt < ATTEMPTS_MAX) continue;
        if (!session.closed && isDeterministic(error) && batch.length > 1) {
          const half = batch.length >> 1;
          await this.#run(session, batch.slice(0, half));
          if (session.closed) {
            for (const entry of batch.slice(half)) entry.reject(error as Error);
            return;
          }
          return this.#run(session, batch.slice(half));
        }
        for (const entry of batch) entry.reject(error instanceof Error ? error : classify(error));
        return;
      }
    }
  }

  #traceCall(operations: readonly Operation[]): EndCall | undefined {
    const { traced } = this.#kind;
    if (!this.#tracing || !traced) return undefined;
    return this.#tracing.call(
      traced.procedure,
      operations.flatMap((operation) => [...traced.spans(operation)]),
    );
  }

  /** Back into the queue of another slot; how long it may wait there is the slots' matter. */
  #again(entry: Entry<Operation, Result>, error: Error): void {
    if (this.#slots.unavailable || !this.#queue.push(entry)) entry.reject(error);
    else setImmediate(() => this.#pump());
  }
}
