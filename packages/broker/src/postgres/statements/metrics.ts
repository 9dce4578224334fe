/** The calls about metrics: minutes are written and summed up, messages are counted by offsets. */
import type { RowReader } from "../row-reader.ts";
import type { Statement } from "../session.ts";

const json = <T>(row: RowReader): T => JSON.parse(row.text(0)) as T;

/** Microseconds since 2000-01-01 UTC, by the database's clock. */
export const readClock: Statement<number> = {
  name: "queen_read_clock",
  text: "select clock_timestamp()",
  parameters: [],
  read: (row) => row.int8(0),
};

export const saveMinutes: Statement<number> = {
  name: "queen_save_minutes",
  text: "select queen.save_minutes($1::uuid, $2, $3, $4, $5, $6::jsonb, $7::jsonb)",
  parameters: ["text", "text", "int4", "int4", "int4", "text", "text"],
  read: (row) => row.int8(0),
};

/** As queen.worker_series tells it. */
export interface WorkerBucket {
  readonly timestamp: string;
  readonly pushRequests: number;
  readonly pushMessages: number;
  readonly popRequests: number;
  readonly popMessages: number;
  readonly ackRequests: number;
  readonly ackMessages: number;
  readonly ackSuccess: number;
  readonly ackFailed: number;
  readonly dlqCount: number;
  readonly dbErrors: number;
  readonly jobsDone: number;
  readonly pushPerSecond: number;
  readonly popPerSecond: number;
  readonly ackPerSecond: number;
  readonly avgLagMs: number;
  readonly maxLagMs: number;
  readonly lagCount: number;
  readonly avgEventLoopLagMs: number;
  readonly maxEventLoopLagMs: number;
  readonly avgFreeSlots: number;
  readonly minFreeSlots: number;
  readonly avgJobQueueSize: number;
  readonly maxJobQueueSize: number;
  readonly cpuUserPct: number | null;
  readonly cpuSystemPct: number | null;
  readonly rssMb: number | null;
  readonly poolSize: number | null;
  readonly poolIdle: number | null;
  readonly poolActive: number | null;
}

export const workerSeries: Statement<readonly WorkerBucket[]> = {
  name: "queen_worker_series",
  text: "select queen.worker_series($1::timestamptz, $2::timestamptz, $3, $4, $5)::text",
  parameters: ["text", "text", "int4", "text", "int4"],
  read: json,
};

export interface ListedWorker {
  readonly hostname: string;
  readonly workerId: number;
  readonly avgEventLoopLagMs: number;
  readonly maxEventLoopLagMs: number;
  readonly freeSlots: number;
  readonly dbConnections: number;
  readonly jobQueueSize: number;
  readonly messagesProcessed: number;
  readonly lastSeen: string;
}

export const workerList: Statement<readonly ListedWorker[]> = {
  name: "queen_worker_list",
  text: "select queen.worker_list($1::timestamptz, $2::timestamptz, $3, $4)::text",
  parameters: ["text", "text", "text", "int4"],
  read: json,
};

export interface QueueBucketRow {
  readonly bucket: string;
  readonly queue: string;
  readonly seconds: number;
  readonly pushRequests: number;
  readonly pushMessages: number;
  readonly popRequests: number;
  readonly popMessages: number;
  readonly popEmpty: number;
  readonly ackRequests: number;
  readonly ackSuccess: number;
  readonly ackFailed: number;
  readonly transactions: number;
  readonly deadLettered: number;
  readonly partitionsCreated: number;
  readonly partitionsDeleted: number;
  readonly partitions: number;
  readonly ageMsSum: number;
  readonly ageCount: number;
  readonly ageMsMax: number;
  readonly parked: number;
}

export const queueSeries: Statement<QueueBucketRow> = {
  name: "queen_queue_series",
  text: `select queen.utc_seconds(bucket), queue_name, seconds, push_requests, push_messages, pop_requests, pop_messages,
                pop_empty, ack_requests, ack_success, ack_failed, transactions, dead_lettered, partitions_created,
                partitions_deleted, partitions, age_ms_sum, age_count, age_ms_max, parked
           from queen.queue_series($1::timestamptz, $2::timestamptz, $3, $4, $5, $6) order by bucket, queue_name`,
  parameters: ["text", "text", "int4", "text", "text", "text"],
  read: (row) => ({
    bucket: row.text(0),
    queue: row.text(1),
    seconds: row.float8(2),
    pushRequests: row.int8(3),
    pushMessages: row.int8(4),
    popRequests: row.int8(5),
    popMessages: row.int8(6),
    popEmpty: row.int8(7),
    ackRequests: row.int8(8),
    ackSuccess: row.int8(9),
    ackFailed: row.int8(10),
    transactions: row.int8(11),
    deadLettered: row.int8(12),
    partitionsCreated: row.int8(13),
    partitionsDeleted: row.int8(14),
    partitions: row.int8(15),
    ageMsSum: row.float8(16),
    ageCount: row.int8(17),
    ageMsMax: row.float8(18),
    parked: row.int8(19),
  }),
};

export interface ParkedBucket {
  readonly bucket: string;
  readonly queueName: string;
  readonly hostname: string;
  readonly workerId: number;
  readonly parkedCount: number;
}

export const parkedSeries: Statement<readonly ParkedBucket[]> = {
  name: "queen_parked_series",
  text: "select queen.parked_series($1::timestamptz, $2::timestamptz, $3, $4)::text",
  parameters: ["text", "text", "int4", "text"],
  read: json,
};

export interface GaugeLeaf {
  readonly avg: number;
  readonly min: number;
  readonly max: number;
  readonly last: number;
}

export interface SystemReplica {
  readonly hostname: string;
  readonly port: number;
  readonly workerId: number;
  readonly timeSeries: readonly {
    readonly timestamp: string;
    readonly sampleCount: number;
    readonly gauges: Readonly<Record<string, GaugeLeaf>>;
  }[];
}

export const systemSeries: Statement<readonly SystemReplica[]> = {
  name: "queen_system_series",
  text: "select queen.system_series($1::timestamptz, $2::timestamptz, $3, $4, $5)::text",
  parameters: ["text", "text", "int4", "text", "int4"],
  read: json,
};

export interface LeaseCountsRow {
  readonly active: number;
  readonly partitions: number;
  readonly messages: number;
  readonly acked: number;
}

export const leaseCounts: Statement<LeaseCountsRow> = {
  name: "queen_lease_counts",
  text: "select active, partitions, messages, acked from queen.lease_counts($1, $2, $3)",
  parameters: ["text", "text", "text"],
  read: (row) => ({
    active: row.int8(0),
    partitions: row.int8(1),
    messages: row.int8(2),
    acked: row.int8(3),
  }),
};

export interface DeadLetterCountsRow {
  readonly letters: number;
  readonly partitions: number;
  readonly errors: readonly { readonly error: string; readonly count: number }[];
}

export const deadLetterCounts: Statement<DeadLetterCountsRow> = {
  name: "queen_dead_letter_counts",
  text: "select letters, partitions, errors::text from queen.dead_letter_counts($1, $2, $3)",
  parameters: ["text", "text", "text"],
  read: (row) => ({
    letters: row.int8(0),
    partitions: row.int8(1),
    errors: JSON.parse(row.text(2)) as DeadLetterCountsRow["errors"],
  }),
};

export const metricTotals: Statement<{ readonly name: string; readonly value: number }> = {
  name: "queen_metric_totals",
  text: "select name, value from queen.metric_totals",
  parameters: [],
  read: (row) => ({ name: row.text(0), value: row.int8(1) }),
};

/** Of queues and workers, as rows of the minute tables. */
export const recentMinutes: Statement<{
  readonly queues: readonly Record<string, unknown>[];
  readonly workers: readonly Record<string, unknown>[];
}> = {
  name: "queen_recent_minutes",
  text: "select queen.recent_minutes()::text",
  parameters: [],
  read: json,
};

export interface ThroughputRow {
  readonly pushed: number;
  readonly finished: number;
  readonly seconds: number;
}

/** Of the last whole minute and the one that is going on. */
export const readThroughput: Statement<ThroughputRow> = {
  name: "queen_read_throughput",
  text: "select pushed, finished, seconds from queen.read_throughput()",
  parameters: [],
  read: (row) => ({ pushed: row.int8(0), finished: row.int8(1), seconds: row.float8(2) }),
};

/** Seconds since a worker wrote its figures; null: none ever did. */
export const metricsAge: Statement<number | null> = {
  name: "queen_metrics_age",
  text: "select queen.metrics_age()",
  parameters: [],
  read: (row) => row.float8OrNull(0),
};

export const postgresStats: Statement<unknown> = {
  name: "queen_postgres_stats",
  text: "select queen.postgres_stats()::text",
  parameters: [],
  read: json,
};
