/**
 * The hand-over: where an append is of one segment for one lane and one pop waits for it, append and take are one
 * statement. At a low rate that is every message. Whatever is not as simple as that is left to append and take.
 */
import type { Waiter } from "../batching/rider.ts";
import type { Session } from "../postgres/session.ts";
import { APPEND, type AppendRow, handOver, TAKE, type TakeRow } from "../postgres/statements.ts";
import type { LaneBatch } from "./lane-batch.ts";

export interface HandedOver {
  readonly appended: AppendRow[];
  readonly taken: TakeRow[];
}

/** Undefined: nothing was done. */
export async function tryHandOver(
  session: Session,
  batches: readonly LaneBatch[],
  waiter: Waiter,
): Promise<HandedOver | undefined> {
  const [{ lane, segments, isSealed }] = batches as [LaneBatch];
  const [segment] = segments;
  if (batches.length > 1 || segments.length > 1 || !segment || lane.isShared) return undefined;
  const { keys, ends, body, count } = segment;
  const { groupId, token, leaseSeconds, autoAck, budget } = waiter;
  const known = lane.window!.completeTo;
  const [row] = await session.run(handOver, [
    lane.id,
    known,
    count,
    keys,
    ends,
    body,
    isSealed,
    groupId,
    token,
    leaseSeconds,
    autoAck,
    budget,
  ]);
  if (!row) return undefined;
  const { createdAtUs } = row;
  return {
    appended: [{ lane: 0, status: APPEND.appended, atOffset: known, createdAtUs, keys: null }],
    taken: [
      {
        lane: 0,
        status: TAKE.taken,
        fromOffset: known,
        toOffset: known + Math.min(budget, count),
        nextOffset: known + count,
        dueMs: 0,
        acked: null,
        segment: { firstOffset: known, count, createdAtUs, ends: ends.toString("latin1"), body },
      },
    ],
  };
}
