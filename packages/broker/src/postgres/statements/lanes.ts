/** The calls that find queues, lanes, groups, cursors, and what is known of them. */
import type { Statement } from "../session.ts";
import type { SegmentRow } from "./data-plane.ts";

export interface LaneRow {
  readonly lane: number;
  readonly queueId: number | null;
  readonly partitionId: number | null;
  readonly nextOffset: number | null;
  readonly isNew: boolean;
}

export const openLanes: Statement<LaneRow> = {
  name: "queen_open_lanes",
  text: "select lane, queue_id, partition_id, next_offset, is_new from queen.open_lanes($1, $2, $3, $4)",
  parameters: ["text[]", "text[]", "bool", "int4[]"],
  read: (row) => ({
    lane: row.int4(0),
    queueId: row.int8OrNull(1),
    partitionId: row.int8OrNull(2),
    nextOffset: row.int8OrNull(3),
    isNew: row.bool(4),
  }),
};

export interface PartitionRow {
  readonly queueId: number;
  readonly name: string;
  readonly nextOffset: number;
}

export const readPartition: Statement<PartitionRow> = {
  name: "queen_read_partition",
  text: "select queue_id, name, next_offset from queen.partitions where id = $1",
  parameters: ["int8"],
  read: (row) => ({ queueId: row.int8(0), name: row.text(1), nextOffset: row.int8(2) }),
};

/** The row of each queue, and its `pauses` as an array of {lane, group}, null where all are meant. */
export const readQueues: Statement<Record<string, unknown>> = {
  name: "queen_read_queues",
  text: `select (to_jsonb(q) || jsonb_build_object('pauses', (
                  select coalesce(jsonb_agg(jsonb_build_object('lane', x.partition_id, 'group', x.group_id)), '[]')
                    from queen.pauses x where x.queue_id = q.id)))::text
           from queen.queues q where q.id = any ($1)`,
  parameters: ["int8[]"],
  read: (row) => JSON.parse(row.text(0)) as Record<string, unknown>,
};

/** The names of the queues of a namespace and a task ("": any), the most urgent first. */
export const queuesOf: Statement<string> = {
  name: "queen_queues_of",
  text: `select name from queen.queues
          where ($1 = '' or namespace = $1) and ($2 = '' or task = $2) order by priority desc, id`,
  parameters: ["text", "text"],
  read: (row) => row.text(0),
};

export interface GroupRow {
  readonly opening: number;
  readonly queueId: number | null;
  readonly groupId: number | null;
}

export const openGroups: Statement<GroupRow> = {
  name: "queen_open_groups",
  text: "select opening, queue_id, group_id from queen.try_open_groups($1, $2, $3, $4::timestamptz[])",
  parameters: ["text[]", "text[]", "text[]", "text[]"],
  read: (row) => ({ opening: row.int4(0), queueId: row.int8OrNull(1), groupId: row.int4OrNull(2) }),
};

/** The group of a queue where both exist; a group is made only by its first pop. */
export const findGroup: Statement<number> = {
  name: "queen_find_group",
  text: `select g.id from queen.consumer_groups g join queen.partitions p on p.queue_id = g.queue_id
          where p.id = $1 and g.name = $2`,
  parameters: ["int8", "text"],
  read: (row) => row.int4(0),
};

export interface CursorRow {
  readonly cursor: number;
  readonly status: number;
}

export const OPEN_CURSOR = { open: 0, noPartition: 1, noGroup: 2 } as const;

export const openCursors: Statement<CursorRow> = {
  name: "queen_open_cursors",
  text: "select cursor, status from queen.try_open_cursors($1, $2)",
  parameters: ["int8[]", "int4[]"],
  read: (row) => ({ cursor: row.int4(0), status: row.int2(1) }),
};

export interface KeysRow {
  readonly lane: number;
  readonly nextOffset: number | null;
  readonly createdAtUs: number | null;
  readonly keys: string | null;
}

export const readKeys: Statement<KeysRow> = {
  name: "queen_read_keys",
  text: "select lane, next_offset, created_at, keys from queen.read_keys($1)",
  parameters: ["int8[]"],
  read: (row) => ({
    lane: row.int4(0),
    nextOffset: row.int8OrNull(1),
    createdAtUs: row.int8OrNull(2),
    keys: row.latin1OrNull(3),
  }),
};

export interface FoundRow {
  readonly search: number;
  readonly atOffset: number;
  readonly fragment: string;
}

export const findMessages: Statement<FoundRow> = {
  name: "queen_find_messages",
  text: "select search, at_offset, fragment from queen.find_messages($1, $2, $3)",
  parameters: ["int8[]", "bytea[]", "int8[]"],
  read: (row) => ({ search: row.int4(0), atOffset: row.int8(1), fragment: row.latin1(2) }),
};

export interface SpooledKeysRow {
  readonly lane: number;
  readonly fromOffset: number;
  readonly nextOffset: number;
  readonly keys: string;
}

/** The keys of the log among which messages may be that come from the spool. */
export const spooledKeys: Statement<SpooledKeysRow> = {
  name: "queen_spooled_keys",
  text: "select lane, from_offset, next_offset, keys from queen.spooled_keys($1, $2, $3, $4)",
  parameters: ["int8[]", "int8[]", "int8[]", "int8[]"],
  read: (row) => ({
    lane: row.int4(0),
    fromOffset: row.int8(1),
    nextOffset: row.int8(2),
    keys: row.latin1(3),
  }),
};

export interface LeaseRow {
  readonly cursor: number;
  readonly token: number | null;
  readonly committed: number;
  readonly nextOffset: number;
  readonly acked: string | null;
  readonly leaseUntil: number | null;
  readonly segment: SegmentRow | null;
}

export const readLeases: Statement<LeaseRow> = {
  name: "queen_read_leases",
  text: `select cursor, token, committed, next_offset, acked, lease_until,
                first_offset, count, created_at, ends, body from queen.read_leases($1, $2)`,
  parameters: ["int8[]", "int4[]"],
  read: (row) => ({
    cursor: row.int4(0),
    token: row.int8OrNull(1),
    committed: row.int8(2),
    nextOffset: row.int8(3),
    acked: row.textOrNull(4),
    leaseUntil: row.int8OrNull(5),
    segment: row.isNull(6)
      ? null
      : {
          firstOffset: row.int8(6),
          count: row.int4(7),
          createdAtUs: row.int8(8),
          ends: row.latin1(9),
          body: row.latin1(10),
        },
  }),
};
