/** The batchers: one for each kind of operation, over the slots of its kind. */
import { Batcher, type BatchKind } from "../batching/batcher.ts";
import type { Config } from "../config.ts";
import type { SegmentCache } from "../lanes/segment-cache.ts";
import { takeKind } from "../popping/take-kind.ts";
import type { Slots } from "../postgres/slots.ts";
import { appendKind } from "../pushing/append-kind.ts";
import { renewKind } from "../settling/renewer.ts";
import { settleKind } from "../settling/settle-kind.ts";
import type { Tracing } from "../tracing.ts";
import { transactKind } from "../transacting/transact-kind.ts";
import type { Connections } from "./connections.ts";

export interface BatchersOptions {
  readonly config: Config;
  readonly slots: Connections["slots"];
  readonly cache: SegmentCache;
  /** What goes with an append to these lanes. */
  readonly rider: Parameters<typeof appendKind>[0];
  readonly now: () => number;
  readonly tracing: Tracing | undefined;
}

type BatcherOf<Kind> =
  Kind extends BatchKind<infer Operation, infer Result> ? Batcher<Operation, Result> : never;

/** By the names that metrics have for them. */
export interface Batchers {
  readonly push: BatcherOf<ReturnType<typeof appendKind>>;
  readonly pop: BatcherOf<ReturnType<typeof takeKind>>;
  readonly ack: BatcherOf<typeof settleKind>;
  readonly transaction: BatcherOf<typeof transactKind>;
  readonly renew_lease: BatcherOf<typeof renewKind>;
}

export function batchersOf({ config, slots, cache, rider, now, tracing }: BatchersOptions): Batchers {
  const batcher = <Operation, Result>(
    kind: BatchKind<Operation, Result>,
    over: Slots,
  ): Batcher<Operation, Result> =>
    new Batcher(
      kind,
      over,
      {
        operationsMax: config.operationsPerBatchMax,
        weightMax: config.messagesPerBatchMax,
        waitingMax: config.operationsWaitingMax,
        holdMs: kind.name === "push" ? config.microBatchWaitMs : 0,
      },
      now,
      tracing,
    );
  const push = batcher(appendKind(rider), slots.push);
  const pop = batcher(takeKind(cache, now), slots.pop);
  const ack = batcher(settleKind, slots.ack);
  const renew_lease = batcher(renewKind, slots.ack);
  const transaction = batcher(transactKind, slots.transaction);
  return { push, pop, ack, transaction, renew_lease };
}
