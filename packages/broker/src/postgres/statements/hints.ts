/** The calls by which brokers learn what happened elsewhere. */
import type { Statement } from "../session.ts";

export interface HintRow {
  readonly snapshot: string | null;
  readonly queueId: number | null;
  readonly partitionId: number | null;
  readonly name: string | null;
  readonly nextOffset: number | null;
  readonly appended: boolean | null;
}

export const readHints: Statement<HintRow> = {
  name: "queen_read_hints",
  text: "select snapshot, queue_id, partition_id, name, next_offset, appended from queen.read_hints($1, $2)",
  parameters: ["text", "int8[]"],
  read: (row) => ({
    snapshot: row.textOrNull(0),
    queueId: row.int8OrNull(1),
    partitionId: row.int8OrNull(2),
    name: row.textOrNull(3),
    nextOffset: row.int8OrNull(4),
    appended: row.boolOrNull(5),
  }),
};

export const trimHints: Statement<number> = {
  name: "queen_trim_hints",
  text: "select queen.trim_hints()",
  parameters: [],
  read: (row) => row.int4(0),
};

export interface ScanRow {
  readonly scan: number;
  readonly partitionId: number | null;
  readonly name: string | null;
  readonly nextOffset: number | null;
  readonly last: number | null;
}

export const scanReady: Statement<ScanRow> = {
  name: "queen_scan_ready",
  text: "select scan, partition_id, name, next_offset, last from queen.scan_ready($1, $2, $3, $4)",
  parameters: ["int8[]", "int4[]", "int8[]", "int4"],
  read: (row) => ({
    scan: row.int4(0),
    partitionId: row.int8OrNull(1),
    name: row.textOrNull(2),
    nextOffset: row.int8OrNull(3),
    last: row.int8OrNull(4),
  }),
};

export const touchWatermarks: Statement<null> = {
  name: "queen_touch_watermarks",
  text: "select queen.touch_watermarks($1, $2)",
  parameters: ["text[]", "text[]"],
  read: () => null,
};

// A hint that is lost in a crash costs a look; it need not wait for the disk. Only this transaction does not wait.
export const notify: Statement<null> = {
  name: "queen_notify",
  text: "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
  parameters: ["text", "text"],
  read: () => null,
};
