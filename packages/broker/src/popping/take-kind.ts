/** Take as a kind of batched operation: an operation is a pop with the lanes that it tries. */
import type { BatchKind } from "../batching/batcher.ts";
import { crashPoint } from "../crash-point.ts";
import { endOf, type SegmentCache, startOf } from "../lanes/segment-cache.ts";
import { WAIT_BOUNDS } from "../metering/distribution.ts";
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
  /** The lane was leased, and its log was gone a moment later: there is nothing but a lease to end. */
  readonly vanished: Taken | undefined;
}

export type TakeResult = readonly LaneResult[];

// No group has this id. A queue may be deleted between a pop's start and its call: it then finds no cursor.
const NO_GROUP = 0;

/** One call of take for several pops: its values, and what its rows mean. */
export class TakeCall {
  readonly values: readonly unknown[];
  readonly #cache: SegmentCache;
  readonly #operations: readonly TakeOperation[];
  readonly #lanes: readonly { readonly operation: TakeOperation; pop: number; groupLane: GroupLane }[];
  readonly #groupIds: readonly number[];
  readonly #held: readonly (readonly Segment[])[];
  readonly #rewrites: readonly number[];

  constructor(cache: SegmentCache, operations: readonly TakeOperation[]) {
    const lanes = operations.flatMap((operation, pop) =>
      operation.lanes.map((groupLane) => ({ operation, pop, groupLane })),
    );
    const options = lanes.map(({ groupLane }) => groupLane.lane.queue.options);
    this.#cache = cache;
    this.#operations = operations;
    this.#lanes = lanes;
    this.#groupIds = lanes.map(({ groupLane }) => groupLane.group.id ?? NO_GROUP);
    // The call leaves out what is held here; by its answer the cache may have moved on.
    this.#held = lanes.map(({ groupLane }) => cache.hold(groupLane.lane));
    this.#rewrites = lanes.map(({ groupLane }) => groupLane.lane.rewrites);
    this.values = [
      lanes.map(({ pop }) => pop),
      lanes.map(({ operation }) => operation.pop.request.batch),
      lanes.map(({ groupLane }) => groupLane.lane.id),
      this.#groupIds,
      lanes.map(({ operation }) => operation.token),
      options.map((queue) => queue.leaseSeconds),
      lanes.map(({ operation }) => operation.pop.request.autoAck),
      options.map((queue) => queue.delaySeconds),
      options.map((queue) => queue.windowSeconds),
      options.map((queue) => queue.ttlSeconds),
      options.map((queue) => queue.retryLimit),
      this.#held.map(startOf),
      this.#held.map(endOf),
    ];
  }

  /** In the order of the operations. */
  results(rows: readonly TakeRow[]): TakeResult[] {
    crashPoint("pop-after-take");
    const byLane = new Map<number, TakeRow[]>();
    for (const row of rows) {
      const known = byLane.get(row.lane);
      if (known) known.push(row);
      else byLane.set(row.lane, [row]);
    }
    const results: LaneResult[][] = this.#operations.map(() => []);
    this.#lanes.forEach(({ pop, groupLane }, index) => {
      const kept = groupLane.lane.rewrites === this.#rewrites[index] ? this.#cache : undefined;
      results[pop]!.push(
        laneResult(groupLane, this.#groupIds[index]!, byLane.get(index)!, this.#held[index]!, kept),
      );
    });
    return results;
  }
}

export function takeKind(cache: SegmentCache): BatchKind<TakeOperation, TakeResult> {
  return {
    name: "pop",
    repeatable: false,
    traced: { procedure: "take", spans: (operation) => [operation.pop.request.span] },
    durationBounds: WAIT_BOUNDS,
    weight: (operation) => operation.pop.request.batch,
    async run(session: Session, operations: readonly TakeOperation[]) {
      const call = new TakeCall(cache, operations);
      return call.results(await session.run(take, call.values));
    },
  };
}

function laneResult(
  groupLane: GroupLane,
  groupId: number,
  rows: readonly TakeRow[],
  held: readonly Segment[],
  cache: SegmentCache | undefined,
): LaneResult {
  const row = rows[0]!;
  const status = row.status as LaneResult["status"];
  const { lane } = groupLane;
  const result = { groupLane, dueMs: row.dueMs, nextOffset: row.nextOffset };
  if (status !== TAKE.taken) return { ...result, status, taken: undefined, vanished: undefined };

  let segments: Segment[];
  if (row.segment === null) {
    segments = held.filter(
      (segment) => segment.firstOffset < row.toOffset && segment.firstOffset + segment.count > row.fromOffset,
    );
  } else {
    segments = rows.map((each) => each.segment!);
    if (endOf(segments) > row.toOffset) cache?.keep(lane, segments);
  }
  const { fromOffset: from, toOffset: to } = row;
  const taken: Taken = { groupLane, groupId, from, to, acked: parseRanges(row.acked), segments };
  return segments.length > 0
    ? { ...result, status, taken, vanished: undefined }
    : { ...result, status: TAKE.busy, taken: undefined, vanished: taken };
}
