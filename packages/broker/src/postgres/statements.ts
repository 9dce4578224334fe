/** The calls of Queen's procedures: their parameters and how a row is read. The SQL is in packages/schema. */
import type { Statement } from "./session.ts";

const SEGMENTS = ["int4[]", "int4[]", "int4[]", "bytea[]", "bytea[]", "bytea[]"] as const;

export interface AppendRow {
  readonly lane: number;
  readonly status: number;
  readonly atOffset: number | null;
  readonly createdAtUs: number | null;
  readonly keys: string | null;
}

export const APPEND = { appended: 0, busy: 1, gone: 2, behind: 3, conflict: 4, missed: 5 } as const;

export const append: Statement<AppendRow> = {
  name: "queen_append",
  text: "select lane, status, at_offset, created_at, keys from queen.append($1, $2, $3, $4, $5, $6, $7, $8, $9)",
  parameters: ["int8[]", "int8[]", "int4[]", ...SEGMENTS],
  read: (row) => ({
    lane: row.int4(0),
    status: row.int2(1),
    atOffset: row.int8OrNull(2),
    createdAtUs: row.int8OrNull(3),
    keys: row.latin1OrNull(4),
  }),
};

export interface SegmentRow {
  readonly firstOffset: number;
  readonly count: number;
  readonly createdAtUs: number;
  readonly ends: string;
  readonly body: string;
}

export interface TakeRow {
  readonly lane: number;
  readonly status: number;
  readonly fromOffset: number;
  readonly toOffset: number;
  readonly nextOffset: number;
  readonly expiresAtUs: number;
  readonly dueMs: number;
  readonly acked: string | null;
  readonly segment: SegmentRow | null;
}

export const TAKE = {
  taken: 0,
  busy: 1,
  missing: 2,
  empty: 3,
  leased: 4,
  delayed: 5,
  window: 6,
  retryDelay: 7,
  exhausted: 8,
  notTried: 9,
} as const;

export const take: Statement<TakeRow> = {
  name: "queen_take",
  text: `select lane, status, from_offset, to_offset, next_offset, expires_at, due_ms, acked,
                first_offset, count, created_at, ends, body
           from queen.take($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
  parameters: [
    "int4[]",
    "int4[]",
    "int8[]",
    "int4[]",
    "int8[]",
    "int4[]",
    "bool[]",
    "int4[]",
    "int4[]",
    "int4[]",
    "int8[]",
    "int8[]",
  ],
  read: (row) => ({
    lane: row.int4(0),
    status: row.int2(1),
    fromOffset: row.int8(2),
    toOffset: row.int8(3),
    nextOffset: row.int8(4),
    expiresAtUs: row.int8(5),
    dueMs: row.int8(6),
    acked: row.textOrNull(7),
    segment: row.isNull(8)
      ? null
      : {
          firstOffset: row.int8(8),
          count: row.int4(9),
          createdAtUs: row.int8(10),
          ends: row.latin1(11),
          body: row.latin1(12),
        },
  }),
};

export interface SettleRow {
  readonly lease: number;
  readonly status: number;
  readonly committed: number;
  readonly released: boolean;
}

export const SETTLE = { done: 0, busy: 1, stale: 2, gone: 3 } as const;

export const settle: Statement<SettleRow> = {
  name: "queen_settle",
  text: "select lease, status, committed, released from queen.settle($1, $2, $3, $4, $5, $6, $7)",
  parameters: ["int8[]", "int4[]", "int8[]", "int8[]", "int8[]", "text[]", "bool[]"],
  read: (row) => ({
    lease: row.int4(0),
    status: row.int2(1),
    committed: row.int8(2),
    released: row.bool(3),
  }),
};

export interface SettleLeaseRow {
  readonly status: number;
  readonly committed: number;
  readonly released: boolean;
  readonly buried: readonly number[];
}

export const settleLease: Statement<SettleLeaseRow> = {
  name: "queen_settle_lease",
  text: `select status, coalesce(committed, 0), released, array_to_string(buried, ',')
           from queen.settle_lease($1, $2, $3, $4::int8multirange, $5, $6, $7, $8, $9, $10)`,
  parameters: ["int8", "int4", "int8", "text", "int8[]", "int8[]", "text[]", "bool", "int4", "int4"],
  read: (row) => ({
    status: row.int2(0),
    committed: row.int8(1),
    released: row.bool(2),
    buried: row.text(3) === "" ? [] : row.text(3).split(",").map(Number),
  }),
};

export const buryExpired: Statement<boolean> = {
  name: "queen_bury_expired",
  text: "select queen.bury_expired($1, $2, $3)",
  parameters: ["int8", "int4", "int4"],
  read: (row) => row.bool(0),
};

export interface RenewRow {
  readonly lease: number;
  readonly status: number;
  readonly expiresAtUs: number | null;
}

export const RENEW = { extended: 0, busy: 1, notHeld: 2 } as const;

export const renew: Statement<RenewRow> = {
  name: "queen_renew",
  text: "select lease, status, expires_at from queen.renew($1, $2, $3)",
  parameters: ["int8[]", "int8[]", "int4[]"],
  read: (row) => ({ lease: row.int4(0), status: row.int2(1), expiresAtUs: row.int8OrNull(2) }),
};

export interface TransactResult {
  readonly appended: readonly { lane: number; status: number; at: number; created: number }[];
  readonly settled: readonly {
    status: number;
    committed: number | null;
    released: boolean;
    buried: number[];
  }[];
}

export const transact: Statement<TransactResult> = {
  name: "queen_transact",
  text: "select queen.transact($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11, $12)::text",
  parameters: ["int8[]", "int8[]", "int4[]", ...SEGMENTS, "text", "int8[]", "int8[]"],
  read: (row) => JSON.parse(row.text(0)) as TransactResult,
};

export interface LaneRow {
  readonly lane: number;
  readonly queueId: number | null;
  readonly partitionId: number | null;
  readonly nextOffset: number | null;
}

export const openLanes: Statement<LaneRow> = {
  name: "queen_open_lanes",
  text: "select lane, queue_id, partition_id, next_offset from queen.open_lanes($1, $2, $3)",
  parameters: ["text[]", "text[]", "bool"],
  read: (row) => ({
    lane: row.int4(0),
    queueId: row.int8OrNull(1),
    partitionId: row.int8OrNull(2),
    nextOffset: row.int8OrNull(3),
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

export const readQueues: Statement<Record<string, unknown>> = {
  name: "queen_read_queues",
  text: "select to_jsonb(q)::text from queen.queues q where q.id = any ($1)",
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
  readonly queueId: number | null;
  readonly groupId: number | null;
}

export const openGroup: Statement<GroupRow> = {
  name: "queen_open_group",
  text: "select queue_id, group_id from queen.open_group($1, $2, $3, $4::timestamptz)",
  parameters: ["text", "text", "text", "text"],
  read: (row) => ({ queueId: row.int8OrNull(0), groupId: row.int4OrNull(1) }),
};

/** The group of a queue where both exist; a group is made only by its first pop. */
export const findGroup: Statement<number> = {
  name: "queen_find_group",
  text: `select g.id from queen.consumer_groups g join queen.partitions p on p.queue_id = g.queue_id
          where p.id = $1 and g.name = $2`,
  parameters: ["int8", "text"],
  read: (row) => row.int4(0),
};

/** The time that a text means to PostgreSQL, as PostgreSQL writes it. */
export const readTimestamp: Statement<string> = {
  name: "queen_read_timestamp",
  text: "select $1::timestamptz::text",
  parameters: ["text"],
  read: (row) => row.text(0),
};

export interface CursorRow {
  readonly cursor: number;
  readonly status: number;
}

export const openCursors: Statement<CursorRow> = {
  name: "queen_open_cursors",
  text: "select cursor, status from queen.open_cursors($1, $2)",
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

export interface HintRow {
  readonly snapshot: string | null;
  readonly queueId: number | null;
  readonly partitionId: number | null;
  readonly name: string | null;
  readonly nextOffset: number | null;
}

export const readHints: Statement<HintRow> = {
  name: "queen_read_hints",
  text: "select snapshot, queue_id, partition_id, name, next_offset from queen.read_hints($1, $2)",
  parameters: ["text", "int8[]"],
  read: (row) => ({
    snapshot: row.textOrNull(0),
    queueId: row.int8OrNull(1),
    partitionId: row.int8OrNull(2),
    name: row.textOrNull(3),
    nextOffset: row.int8OrNull(4),
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

export interface ConfigureRow {
  readonly queue: Record<string, unknown>;
  readonly partitionId: number;
}

export const configureQueue: Statement<ConfigureRow> = {
  name: "queen_configure_queue",
  text: "select queue::text, partition_id from queen.configure_queue($1, $2, $3, $4::jsonb, $5)",
  parameters: ["text", "text", "text", "text", "bool"],
  read: (row) => ({ queue: JSON.parse(row.text(0)) as Record<string, unknown>, partitionId: row.int8(1) }),
};

export const deleteQueue: Statement<boolean> = {
  name: "queen_delete_queue",
  text: "with gone as (delete from queen.queues where name = $1 returning 1) select exists (select 1 from gone)",
  parameters: ["text"],
  read: (row) => row.bool(0),
};

export interface DeadLetterRow {
  readonly partitionId: number;
  readonly offset: number;
  readonly queue: string;
  readonly partition: string;
  readonly consumerGroup: string;
  readonly errorMessage: string;
  readonly retryCount: number;
  readonly fragment: string;
  readonly createdAtUs: number;
  readonly failedAtUs: number;
  readonly total: number;
}

/** Newest first; "" stands for any queue, any group. The total is that of the filter. */
export const listDeadLetters: Statement<DeadLetterRow> = {
  name: "queen_list_dead_letters",
  text: `select d.partition_id, d.message_offset, q.name, d.partition_name, d.consumer_group, d.error_message,
                d.retry_count, d.fragment, d.created_at, d.failed_at, count(*) over ()
           from queen.dead_letters d join queen.queues q on q.id = d.queue_id
          where ($1 = '' or q.name = $1) and ($2 = '' or d.consumer_group = $2)
            and ($3 = '' or d.partition_name = $3)
          order by d.id desc limit $4 offset $5`,
  parameters: ["text", "text", "text", "int8", "int8"],
  read: (row) => ({
    partitionId: row.int8(0),
    offset: row.int8(1),
    queue: row.text(2),
    partition: row.text(3),
    consumerGroup: row.text(4),
    errorMessage: row.text(5),
    retryCount: row.int4(6),
    fragment: row.latin1(7),
    createdAtUs: row.int8(8),
    failedAtUs: row.int8(9),
    total: row.int8(10),
  }),
};

export const notify: Statement<null> = {
  name: "queen_notify",
  text: "select pg_notify($1, $2)",
  parameters: ["text", "text"],
  read: () => null,
};

export const ping: Statement<number> = {
  name: "queen_ping",
  text: "select 1",
  parameters: [],
  read: (row) => row.int4(0),
};
