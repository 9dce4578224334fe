/** The calls of background sweeps, and those that tell what they did. */
import type { Statement } from "../session.ts";

export type Counts = Readonly<Record<string, number>>;

export interface SweepRow {
  readonly state: "elsewhere" | "not due" | "under way" | "finished";
  readonly waitMs: number;
  readonly done: Counts | null;
  readonly rounds: number | null;
}

export const sweep: Statement<SweepRow> = {
  name: "queen_sweep",
  text: "select state, wait_ms, done::text, rounds from queen.sweep($1, $2, $3, $4, $5)",
  parameters: ["text", "text", "int8", "int4", "float8"],
  read: (row) => ({
    state: row.text(0) as SweepRow["state"],
    waitMs: row.int8(1),
    done: row.isNull(2) ? null : (JSON.parse(row.text(2)) as Counts),
    rounds: row.int4OrNull(3),
  }),
};

export interface ListedSweepRow {
  readonly name: string;
  readonly isUnderWay: boolean;
  readonly worker: string | null;
  readonly startedAtUs: number | null;
  readonly finishedAtUs: number | null;
  readonly rounds: number;
  readonly busyMs: number;
  readonly done: Counts;
  readonly passes: number;
  readonly total: Counts;
}

export const listSweeps: Statement<ListedSweepRow> = {
  name: "queen_list_sweeps",
  text: `select name, position is not null, worker, started_at, finished_at, rounds, busy_ms, done::text, passes,
                total::text from queen.sweeps order by name`,
  parameters: [],
  read: (row) => ({
    name: row.text(0),
    isUnderWay: row.bool(1),
    worker: row.textOrNull(2),
    startedAtUs: row.int8OrNull(3),
    finishedAtUs: row.int8OrNull(4),
    rounds: row.int4(5),
    busyMs: row.float8(6),
    done: JSON.parse(row.text(7)) as Counts,
    passes: row.int8(8),
    total: JSON.parse(row.text(9)) as Counts,
  }),
};

export interface RetentionRow {
  readonly bucketUs: number;
  readonly retention: number;
  readonly completedRetention: number;
  readonly eviction: number;
  readonly events: number;
}

export const retentionSeries: Statement<RetentionRow> = {
  name: "queen_retention_series",
  text: `select bucket, retention, completed_retention, eviction, events
           from queen.retention_series($1::timestamptz, $2::timestamptz, $3, $4)`,
  parameters: ["text", "text", "int4", "text"],
  read: (row) => ({
    bucketUs: row.int8(0),
    retention: row.int8(1),
    completedRetention: row.int8(2),
    eviction: row.int8(3),
    events: row.int8(4),
  }),
};
