/** The calls that count messages, from offsets only. */
import type { Statement } from "../session.ts";

export interface QueueFiguresRow {
  readonly id: number;
  readonly name: string;
  readonly namespace: string;
  readonly task: string;
  readonly createdAtUs: number;
  readonly partitions: number;
  readonly total: number;
  readonly pending: number;
  readonly processing: number;
  readonly failed: number;
  readonly deadLetters: number;
  /** Messages that were ever stored, and those of them that are neither pending nor processing. */
  readonly appended: number;
  readonly finished: number;
}

/** The newest queue first. */
export const queueFigures: Statement<QueueFiguresRow> = {
  name: "queen_queue_figures",
  text: `select queue_id, name, namespace, task, created_at, partitions, total, pending, processing, failed, dead_letters,
                appended, finished from queen.queue_figures($1)`,
  parameters: ["int8"],
  read: (row) => ({
    id: row.int8(0),
    name: row.text(1),
    namespace: row.text(2),
    task: row.text(3),
    createdAtUs: row.int8(4),
    partitions: row.int8(5),
    total: row.int8(6),
    pending: row.int8(7),
    processing: row.int8(8),
    failed: row.int8(9),
    deadLetters: row.int8(10),
    appended: row.int8(11),
    finished: row.int8(12),
  }),
};

export interface LaneFiguresRow {
  readonly id: number;
  readonly queue: string;
  readonly name: string;
  readonly createdAtUs: number;
  readonly total: number;
  readonly pending: number;
  readonly processing: number;
  readonly finished: number;
  /** Unfinished messages that failed before. */
  readonly failed: number;
  readonly deadLetters: number;
  readonly oldestAtUs: number | null;
  readonly newestAtUs: number | null;
  readonly waitingSinceUs: number | null;
  readonly activeAtUs: number | null;
}

export interface LanePageRow {
  /** How many there are in all. */
  readonly lanes: number;
  /** Null: the page is empty. */
  readonly lane: LaneFiguresRow | null;
}

export const listLanes: Statement<LanePageRow> = {
  name: "queen_list_lanes",
  text: `select lanes, partition_id, queue_name, name, created_at, total, pending, processing, finished, failed,
                dead_letters, oldest_at, newest_at, waiting_since, active_at from queen.list_lanes($1, $2, $3, $4, $5)`,
  parameters: ["int8", "text", "text", "int4", "int8"],
  read: (row) => ({
    lanes: row.int8(0),
    lane: row.isNull(1)
      ? null
      : {
          id: row.int8(1),
          queue: row.text(2),
          name: row.text(3),
          createdAtUs: row.int8(4),
          total: row.int8(5),
          pending: row.int8(6),
          processing: row.int8(7),
          finished: row.int8(8),
          failed: row.int8(9),
          deadLetters: row.int8(10),
          oldestAtUs: row.int8OrNull(11),
          newestAtUs: row.int8OrNull(12),
          waitingSinceUs: row.int8OrNull(13),
          activeAtUs: row.int8OrNull(14),
        },
  }),
};

/** Times are as PostgreSQL writes them in JSON, in UTC. See show_lane.sql. */
export interface ShownLane {
  readonly partition: {
    readonly id: number;
    readonly name: string;
    readonly created_at: string;
    readonly last_at: string | null;
    readonly start_offset: number;
    readonly next_offset: number;
    readonly dead_letters: number;
  };
  readonly groups: readonly {
    readonly name: string;
    readonly place: number;
    readonly pending: number;
    readonly ahead: readonly (readonly [number, number])[];
    readonly leased_until: number | null;
    readonly lease_expires_at: string | null;
  }[];
}

/** Null: there is no such queue or partition. */
export const showLane: Statement<ShownLane | null> = {
  name: "queen_show_lane",
  text: "select queen.show_lane($1, $2)::text",
  parameters: ["text", "text"],
  read: (row) => JSON.parse(row.textOrNull(0) ?? "null") as ShownLane | null,
};
