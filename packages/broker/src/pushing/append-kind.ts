/** Append as a kind of batched operation: an operation is a lane that has messages waiting. */
import type { BatchKind } from "../batching/batcher.ts";
import type { Rider } from "../batching/rider.ts";
import type { Lane } from "../lanes/lane.ts";
import type { Session } from "../postgres/session.ts";
import { APPEND, type AppendRow, append, type TakeRow } from "../postgres/statements.ts";
import { tryHandOver } from "./hand-over.ts";
import { type LaneBatch, takeLaneBatch } from "./lane-batch.ts";

export interface AppendResult {
  readonly batch: LaneBatch;
  readonly status: (typeof APPEND)[keyof typeof APPEND];
  readonly atOffset: number;
  readonly createdAtUs: number;
  /** What other writers added since the lane's window was complete. */
  readonly missed: readonly AppendRow[];
}

/** An append that failed as a whole, with what it was about to store. */
export class AppendError extends Error {
  override readonly name = "AppendError";
  readonly batch: LaneBatch;
  /** Nothing else was in the call, so what was wrong is in this batch. */
  readonly alone: boolean;

  constructor(batch: LaneBatch, alone: boolean, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.batch = batch;
    this.alone = alone;
  }
}

/** Whether what goes into each lane is encrypted, for append and transact. */
export const sealedLanes = (batches: readonly LaneBatch[]): boolean[] =>
  batches.map((batch) => batch.isSealed);

/** The columns that append and transact share: one element per lane, one per segment. */
export function appendParameters(batches: readonly LaneBatch[]): unknown[] {
  const segments = batches.flatMap((batch, index) =>
    batch.segments.map((segment) => ({ lane: index + 1, segment })),
  );
  return [
    batches.map((batch) => batch.lane.id),
    batches.map((batch) => batch.lane.window!.completeTo),
    batches.map((batch) => batch.messages.length),
    segments.map(({ lane }) => lane),
    segments.map(({ segment }) => segment.relative),
    segments.map(({ segment }) => segment.count),
    segments.map(({ segment }) => segment.keys),
    segments.map(({ segment }) => segment.ends),
    segments.map(({ segment }) => segment.body),
  ];
}

const NOTHING: Omit<AppendResult, "batch"> = {
  status: APPEND.appended,
  atOffset: 0,
  createdAtUs: 0,
  missed: [],
};

// What rides is sent to the database and back; more than this is left to the cache.
const RIDDEN_BYTES_MAX = 64 * 1024;

const isSmall = ({ segments }: LaneBatch): boolean =>
  segments.reduce((bytes, segment) => bytes + segment.body.length, 0) <= RIDDEN_BYTES_MAX;

/** `riderFor`: who wants to go with an append to these lanes. */
export const appendKind = (
  riderFor: (lanes: readonly Lane[]) => Rider | undefined,
): BatchKind<Lane, AppendResult | AppendError> => ({
  name: "push",
  repeatable: false,
  traced: { procedure: "append", spans: (lane) => lane.pending.map((message) => message.owner.span) },
  weight: (lane) => (lane.alone > 0 ? Infinity : lane.pending.length + lane.pendingBytes / 1024),
  async run(session: Session, lanes: readonly Lane[]) {
    const all = lanes.map(takeLaneBatch);
    const batches = all.filter((batch) => batch.messages.length > 0);
    if (batches.length === 0) return all.map((batch) => ({ batch, ...NOTHING }));
    const values = [...appendParameters(batches), sealedLanes(batches)];
    const rider = riderFor(batches.filter(isSmall).map((batch) => batch.lane));
    let rows: AppendRow[];
    let ridden: TakeRow[] = [];
    try {
      const handed = rider?.only && (await tryHandOver(session, batches, rider.only));
      if (handed) ({ appended: rows, taken: ridden } = handed);
      else if (rider) [rows, ridden] = await session.runBoth({ statement: append, values }, rider.step);
      else rows = await session.run(append, values);
    } catch (error) {
      rider?.failed(error as Error);
      return all.map((batch) =>
        batch.messages.length > 0
          ? new AppendError(batch, batches.length === 1, error)
          : { batch, ...NOTHING },
      );
    }
    rider?.arrived(ridden);
    const results = new Map<LaneBatch, AppendResult>();
    const missed = new Map<number, AppendRow[]>();
    for (const row of rows) {
      if (row.status === APPEND.missed) {
        missed.set(row.lane, [...(missed.get(row.lane) ?? []), row]);
        continue;
      }
      const batch = batches[row.lane]!;
      batch.lane.isShared = row.status !== APPEND.appended || missed.has(row.lane);
      results.set(batch, {
        batch,
        status: row.status as AppendResult["status"],
        atOffset: row.atOffset ?? 0,
        createdAtUs: row.createdAtUs ?? 0,
        missed: missed.get(row.lane) ?? [],
      });
    }
    return all.map((batch) => results.get(batch) ?? { batch, ...NOTHING });
  },
});
