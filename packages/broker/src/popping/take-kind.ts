/** Take as a kind of batched operation: an operation is a pop with the lanes that it tries. */
import type { BatchKind } from "../batching/batcher.ts";
import type { SegmentCache } from "../lanes/segment-cache.ts";
import { parseRanges } from "../operations/offset-ranges.ts";
import type { Segment } from "../operations/segment.ts";
import type { Session } from "../postgres/session.ts";
import { TAKE, type TakeRow, take } from "../postgres/statements.ts";
import type { GroupLane } from "./group.ts";
import type { Pop, Taken } from "./pop.ts";

export interface TakeOperation {
  readonly pop: Pop;
  readonly token: number;
  readonly lanes: readonly GroupLane[];
}

export interface LaneResult {
  readonly groupLane: GroupLane;
  readonly status: (typeof TAKE)[keyof typeof TAKE];
  readonly dueMs: number;
  readonly nextOffset: number;
  readonly taken: Taken | undefined;
}

export type TakeResult = readonly LaneResult[];

export function takeKind(cache: SegmentCache): BatchKind<TakeOperation, TakeResult> {
  return {
    name: "pop",
    repeatable: false,
    weight: (operation) => operation.pop.request.batch,
    async run(session: Session, operations: readonly TakeOperation[]) {
      const lanes = operations.flatMap((operation, pop) =>
        operation.lanes.map((groupLane) => ({ operation, pop, groupLane })),
      );
      const options = lanes.map(({ groupLane }) => groupLane.lane.queue.options);
      const rows = await session.run(take, [
        lanes.map(({ pop }) => pop),
        lanes.map(({ operation }) => operation.pop.request.batch),
        lanes.map(({ groupLane }) => groupLane.lane.id),
        lanes.map(({ groupLane }) => groupLane.group.id!),
        lanes.map(({ operation }) => operation.token),
        options.map((queue) => queue.leaseSeconds),
        lanes.map(({ operation }) => operation.pop.request.autoAck),
        options.map((queue) => queue.delaySeconds),
        options.map((queue) => queue.windowSeconds),
        options.map((queue) => queue.retryLimit),
        lanes.map(({ groupLane }) => cache.from(groupLane.lane)),
        lanes.map(({ groupLane }) => cache.to(groupLane.lane)),
      ]);
      const byLane = new Map<number, TakeRow[]>();
      for (const row of rows) {
        const known = byLane.get(row.lane);
        if (known) known.push(row);
        else byLane.set(row.lane, [row]);
      }
      const results: LaneResult[][] = operations.map(() => []);
      lanes.forEach(({ pop, groupLane }, index) => {
        results[pop]!.push(laneResult(groupLane, byLane.get(index)!, cache));
      });
      return results;
    },
  };
}

function laneResult(groupLane: GroupLane, rows: readonly TakeRow[], cache: SegmentCache): LaneResult {
  const row = rows[0]!;
  const status = row.status as LaneResult["status"];
  const { lane } = groupLane;
  let taken: Taken | undefined;
  if (status === TAKE.taken) {
    let segments: Segment[] | undefined;
    if (row.segment === null) {
      segments = cache.find(lane, row.fromOffset, row.toOffset);
      if (!segments) throw new Error("the segments of a take are neither in its rows nor in the cache");
    } else {
      segments = rows.map((each) => each.segment!);
      const last = segments[segments.length - 1]!;
      if (last.firstOffset + last.count > row.toOffset) cache.keep(lane, segments);
    }
    taken = {
      groupLane,
      groupId: groupLane.group.id!,
      from: row.fromOffset,
      to: row.toOffset,
      acked: parseRanges(row.acked),
      segments,
    };
  }
  return { groupLane, status, dueMs: row.dueMs, nextOffset: row.nextOffset, taken };
}
