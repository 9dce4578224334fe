/** Take as a kind of batched operation: an operation is a pop with the lanes that it tries. */
import { POP_BYTES_MAX } from "@queen/protocol";
import type { BatchKind } from "../batching/batcher.ts";
import { crashPoint } from "../crash-point.ts";
import { endOf, type SegmentCache, startOf } from "../lanes/segment-cache.ts";
import { WAIT_BOUNDS } from "../metering/distribution.ts";
import { parseRanges } from "../operations/offset-ranges.ts";
import type { Segment } from "../operations/segment.ts";
import { PostgresError } from "../postgres/errors.ts";
import type { Session } from "../postgres/session.ts";
import { TAKE, type TakeRow, take } from "../postgres/statements.ts";
import type { GroupLane } from "./group-lane.ts";
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
  readonly #values: readonly unknown[];
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
    this.#values = [
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

  /** `isFitting`: too many bytes are cut; otherwise they are refused. */
  values(isFitting: boolean): unknown[] {
    return [...this.#values, POP_BYTES_MAX, isFitting];
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

// Where messages are large they stay so for a while: calls are then made to fit at once.
const FIT_FOR_MS = 10_000;

export function takeKind(cache: SegmentCache, now: () => number): BatchKind<TakeOperation, TakeResult> {
  let fitUntilMs = 0;
  /** Most calls are far below the limit, so the bytes are counted first and cut only if there are too many. */
  const takeFitting = async (session: Session, call: TakeCall): Promise<TakeRow[]> => {
    const isFitting = now() < fitUntilMs;
    try {
      return await session.run(take, call.values(isFitting));
    } catch (error) {
      if (isFitting || !(error instanceof PostgresError) || error.sqlstate !== "QN413") throw error;
      fitUntilMs = now() + FIT_FOR_MS;
      return session.run(take, call.values(true));
    }
  };
  return {
    name: "pop",
    repeatable: false,
    traced: { procedure: "take", spans: (operation) => [operation.pop.request.span] },
    durationBounds: WAIT_BOUNDS,
    weight: (operation) => operation.pop.request.batch,
    async run(session: Session, operations: readonly TakeOperation[]) {
      const call = new TakeCall(cache, operations);
      return call.results(await takeFitting(session, call));
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
  const { dueMs, nextOffset } = row;
  if (status !== TAKE.taken)
    return { groupLane, dueMs, nextOffset, status, taken: undefined, vanished: undefined };

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
    ? { groupLane, dueMs, nextOffset, status, taken, vanished: undefined }
    : { groupLane, dueMs, nextOffset, status: TAKE.busy, taken: undefined, vanished: taken };
}
