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

export const OPEN_CURSOR = { open: 0, noPartition: 1, noGroup: 2 } as const;

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

// ------------------------------------------------------------------------------------------ consumer groups

export interface ListedGroupRow {
  readonly name: string;
  readonly queue: string;
  readonly subscriptionMode: string;
  readonly subscriptionFromUs: number | null;
  readonly createdAtUs: number;
  readonly members: number;
  readonly lagging: number;
  readonly pending: number;
  readonly oldestSeconds: number;
  readonly lastConsumedAtUs: number | null;
}

export const listGroups: Statement<ListedGroupRow> = {
  name: "queen_list_groups",
  text: `select name, queue_name, subscription_mode, subscription_from, created_at, members, lagging, pending,
                coalesce(extract(epoch from clock_timestamp() - oldest_at), 0)::float8, last_consumed_at
           from queen.list_groups($1)`,
  parameters: ["text"],
  read: (row) => ({
    name: row.text(0),
    queue: row.text(1),
    subscriptionMode: row.text(2),
    subscriptionFromUs: row.int8OrNull(3),
    createdAtUs: row.int8(4),
    members: row.int8(5),
    lagging: row.int8(6),
    pending: row.int8(7),
    oldestSeconds: row.float8(8),
    lastConsumedAtUs: row.int8OrNull(9),
  }),
};

export interface LaggingLaneRow {
  readonly group: string;
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: number;
  readonly leaseToken: number | null;
  readonly pending: number;
  readonly oldestAtUs: number;
  readonly lagSeconds: number;
  readonly lastConsumedAtUs: number | null;
}

export const listLaggingLanes: Statement<LaggingLaneRow> = {
  name: "queen_list_lagging_lanes",
  text: `select consumer_group, queue_name, partition_name, partition_id, lease_token, pending, oldest_at,
                lag_seconds, last_consumed_at from queen.list_lagging_lanes($1, $2)`,
  parameters: ["float8", "int4"],
  read: (row) => ({
    group: row.text(0),
    queue: row.text(1),
    partition: row.text(2),
    partitionId: row.int8(3),
    leaseToken: row.int8OrNull(4),
    pending: row.int8(5),
    oldestAtUs: row.int8(6),
    lagSeconds: row.float8(7),
    lastConsumedAtUs: row.int8OrNull(8),
  }),
};

export interface GroupLaneRow {
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: number;
  readonly leaseToken: number | null;
  readonly leaseActive: boolean;
  readonly pending: number;
  readonly finished: number;
  readonly lagSeconds: number | null;
  readonly lastConsumedAtUs: number | null;
  readonly total: number;
}

export const listGroupLanes: Statement<GroupLaneRow> = {
  name: "queen_list_group_lanes",
  text: `select queue_name, partition_name, partition_id, lease_token, lease_active, pending, finished,
                lag_seconds, last_consumed_at, total from queen.list_group_lanes($1, $2, $3, $4)`,
  parameters: ["text", "text", "int4", "int8"],
  read: (row) => ({
    queue: row.text(0),
    partition: row.text(1),
    partitionId: row.int8(2),
    leaseToken: row.int8OrNull(3),
    leaseActive: row.bool(4),
    pending: row.int8(5),
    finished: row.int8(6),
    lagSeconds: row.float8OrNull(7),
    lastConsumedAtUs: row.int8OrNull(8),
    total: row.int8(9),
  }),
};

export interface SeekRow {
  readonly queueId: number | null;
  readonly groupId: number | null;
  readonly partitionId: number | null;
  readonly lanes: number;
  readonly movedTo: number | null;
  readonly ready: readonly number[];
}

export const seek: Statement<SeekRow> = {
  name: "queen_seek",
  text: `select queue_id, group_id, partition_id, lanes, moved_to, array_to_string(ready, ',')
           from queen.seek($1, $2, $3, $4::timestamptz)`,
  parameters: ["text", "text", "text", "text"],
  read: (row) => ({
    queueId: row.int8OrNull(0),
    groupId: row.int4OrNull(1),
    partitionId: row.int8OrNull(2),
    lanes: row.int4(3),
    movedTo: row.int8OrNull(4),
    ready: numbers(row.text(5)),
  }),
};

export const setSubscription: Statement<number> = {
  name: "queen_set_subscription",
  text: "select queen.set_subscription($1, $2::timestamptz)",
  parameters: ["text", "text"],
  read: (row) => row.int4(0),
};

export interface DeletedGroupRow {
  readonly lanes: number;
  readonly queues: readonly string[];
}

export const deleteGroup: Statement<DeletedGroupRow> = {
  name: "queen_delete_group",
  text: "select lanes, to_json(queue_names)::text from queen.delete_group($1, $2, $3)",
  parameters: ["text", "text", "bool"],
  read: (row) => ({ lanes: row.int4(0), queues: JSON.parse(row.text(1)) as string[] }),
};

// --------------------------------------------------------------------------------------------- dead letters

export interface DeadLetterRow {
  readonly id: number;
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
}

/** The newest failure first. */
export const listDeadLetters: Statement<DeadLetterRow> = {
  name: "queen_list_dead_letters",
  text: `select d.id, d.partition_id, d.message_offset, q.name, d.partition_name, d.consumer_group,
                d.error_message, d.retry_count, d.fragment, d.created_at, d.failed_at
           from queen.dead_letters_matching($1, $2, $3, $4::timestamptz, $5::timestamptz,
                  timestamptz '2000-01-01Z' + $6 * interval '1 microsecond', $7, $8, $9) m
           join queen.dead_letters d on d.id = m.letter_id join queen.queues q on q.id = d.queue_id
          order by d.failed_at desc, d.id desc`,
  parameters: ["text", "text", "text", "text", "text", "int8", "int8", "int8", "int8"],
  read: (row) => ({
    id: row.int8(0),
    partitionId: row.int8(1),
    offset: row.int8(2),
    queue: row.text(3),
    partition: row.text(4),
    consumerGroup: row.text(5),
    errorMessage: row.text(6),
    retryCount: row.int4(7),
    fragment: row.latin1(8),
    createdAtUs: row.int8(9),
    failedAtUs: row.int8(10),
  }),
};

export const countDeadLetters: Statement<number> = {
  name: "queen_count_dead_letters",
  text: "select queen.count_dead_letters($1, $2, $3, $4::timestamptz, $5::timestamptz)",
  parameters: ["text", "text", "text", "text", "text"],
  read: (row) => row.int8(0),
};

export const matchDeadLetters: Statement<number> = {
  name: "queen_match_dead_letters",
  text: `select letter_id from queen.dead_letters_matching($1, $2, $3, $4::timestamptz, $5::timestamptz,
                                                           null, null, $6, 0)`,
  parameters: ["text", "text", "text", "text", "text", "int8"],
  read: (row) => row.int8(0),
};

/** The letters of messages; a group's only, or ("") those of all groups. */
export const lettersOfMessages: Statement<number> = {
  name: "queen_letters_of_messages",
  text: `select d.id
           from unnest($1, $2) as m (partition_id, message_offset)
           join queen.dead_letters d on d.partition_id = m.partition_id and d.message_offset = m.message_offset
          where $3 = '' or d.consumer_group = $3`,
  parameters: ["int8[]", "int8[]", "text"],
  read: (row) => row.int8(0),
};

export interface RequeuedRow {
  readonly letter: number;
  readonly queueId: number;
  readonly partitionId: number;
  readonly offset: number;
}

export const requeue: Statement<RequeuedRow> = {
  name: "queen_requeue",
  text: "select letter_id, queue_id, partition_id, at_offset from queen.requeue($1)",
  parameters: ["int8[]"],
  read: (row) => ({
    letter: row.int8(0),
    queueId: row.int8(1),
    partitionId: row.int8(2),
    offset: row.int8(3),
  }),
};

export const purgeDeadLetters: Statement<number> = {
  name: "queen_purge_dead_letters",
  text: `with gone as (delete from queen.dead_letters where id = any ($1) returning 1)
         select count(*) from gone`,
  parameters: ["int8[]"],
  read: (row) => row.int8(0),
};

// ------------------------------------------------------------------------------------------------- messages

export interface ListedMessageRow {
  readonly partitionId: number;
  readonly offset: number;
  readonly createdAtUs: number;
  /** The fragment without the payload; null: no message, the page ends here and more may follow. */
  readonly header: string | null;
  readonly queue: string;
  readonly namespace: string;
  readonly task: string;
  readonly priority: number;
  readonly partition: string;
  readonly isDead: boolean;
  /** Null: nobody reads in queue mode. */
  readonly queueFinished: boolean | null;
  readonly queueLeaseExpiresAtUs: number | null;
  readonly consumedBy: number;
  readonly groups: number;
}

export const listMessages: Statement<ListedMessageRow> = {
  name: "queen_list_messages",
  text: `select partition_id, at_offset, created_at, header, queue_name, namespace, task, priority, partition_name,
                is_dead, queue_finished, queue_lease_expires_at, consumed_by, groups
           from queen.list_messages($1, $2, $3, $4, $5,
                  coalesce($6::timestamptz, '-infinity'),
                  coalesce(date_trunc('minute', $7::timestamptz) + interval '1 minute', 'infinity'),
                  timestamptz '2000-01-01Z' + $8 * interval '1 microsecond', $9, $10, $11, $12)`,
  parameters: [
    "int8",
    "int8",
    "text",
    "text",
    "text",
    "text",
    "text",
    "int8",
    "int8",
    "int8",
    "int4",
    "int8",
  ],
  read: (row) => ({
    partitionId: row.int8(0),
    offset: row.int8(1),
    createdAtUs: row.int8(2),
    header: row.latin1OrNull(3),
    queue: row.text(4),
    namespace: row.text(5),
    task: row.text(6),
    priority: row.int4(7),
    partition: row.text(8),
    isDead: row.bool(9),
    queueFinished: row.boolOrNull(10),
    queueLeaseExpiresAtUs: row.int8OrNull(11),
    consumedBy: row.int8(12),
    groups: row.int8(13),
  }),
};

export interface PlaceRow {
  readonly queueId: number;
  readonly partitionId: number | null;
}

/** A queue and one of its partitions, by name; a partition of null: only the queue is meant. */
export const findPlace: Statement<PlaceRow> = {
  name: "queen_find_place",
  text: `select q.id, p.id from queen.queues q
           left join queen.partitions p on p.queue_id = q.id and p.name = $2 where q.name = $1`,
  parameters: ["text", "text"],
  read: (row) => ({ queueId: row.int8(0), partitionId: row.int8OrNull(1) }),
};

export interface ReadersRow {
  readonly hasQueueMode: boolean;
  readonly namedGroups: number;
}

/** Who reads the queues of a filter. */
export const readersOf: Statement<ReadersRow> = {
  name: "queen_readers_of",
  text: `select coalesce(bool_or(g.name = '__QUEUE_MODE__'), false),
                count(distinct g.name) filter (where g.name <> '__QUEUE_MODE__')
           from queen.consumer_groups g join queen.queues q on q.id = g.queue_id
          where ($1::int8 is null or q.id = $1) and ($2::text is null or q.namespace = $2)
            and ($3::text is null or q.task = $3)`,
  parameters: ["int8", "text", "text"],
  read: (row) => ({ hasQueueMode: row.bool(0), namedGroups: row.int8(1) }),
};

export interface FoundInLaneRow {
  readonly offset: number;
  readonly fragment: string;
}

export const findInLane: Statement<FoundInLaneRow> = {
  name: "queen_find_in_lane",
  text: "select at_offset, fragment from queen.find_in_lane($1, $2, $3, $4)",
  parameters: ["int8", "bytea", "int8", "int8"],
  read: (row) => ({ offset: row.int8(0), fragment: row.latin1(1) }),
};

/** A message that may be gone from the log, by its dead letter; the newest. */
export const findLetterOffset: Statement<number> = {
  name: "queen_find_letter_offset",
  text: `select message_offset from queen.dead_letters where partition_id = $1 and transaction_id = $2
          order by message_offset desc limit 1`,
  parameters: ["int8", "text"],
  read: (row) => row.int8(0),
};

export interface MessageRow {
  readonly queue: Readonly<Record<string, unknown>>;
  readonly partition: string;
  readonly createdAtUs: number;
  readonly fragment: string;
  readonly groups: readonly { name: string; consumed: boolean; leaseExpiresAtUs: number | null }[];
  readonly letters: readonly { group: string; error: string; retries: number }[];
}

export const readMessage: Statement<MessageRow> = {
  name: "queen_read_message",
  text: `select queue::text, partition_name, created_at, fragment, groups::text, letters::text
           from queen.read_message($1, $2)`,
  parameters: ["int8", "int8"],
  read: (row) => ({
    queue: JSON.parse(row.text(0)) as MessageRow["queue"],
    partition: row.text(1),
    createdAtUs: row.int8(2),
    fragment: row.latin1(3),
    groups: JSON.parse(row.text(4)) as MessageRow["groups"],
    letters: JSON.parse(row.text(5)) as MessageRow["letters"],
  }),
};

export const deleteMessage: Statement<boolean> = {
  name: "queen_delete_message",
  text: "select queen.delete_message($1, $2)",
  parameters: ["int8", "int8"],
  read: (row) => row.bool(0),
};

export interface RetryRow {
  readonly action: string;
  readonly offset: number | null;
}

export const retryMessage: Statement<RetryRow> = {
  name: "queen_retry_message",
  text: "select action, at_offset from queen.retry_message($1, $2, $3)",
  parameters: ["int8", "int8", "text"],
  read: (row) => ({ action: row.text(0), offset: row.int8OrNull(1) }),
};

export const buryMessage: Statement<string> = {
  name: "queen_bury_message",
  text: "select queen.bury_message($1, $2, $3, $4)",
  parameters: ["int8", "int8", "text", "text"],
  read: (row) => row.text(0),
};

const numbers = (list: string): number[] => (list === "" ? [] : list.split(",").map(Number));
