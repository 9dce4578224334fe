/** The families that all brokers on a database share: every broker answers the same. */
import type { Family, LabelLimits, Sample } from "./family.ts";
import type { Gauges } from "./gauges.ts";

export interface QueueDepth {
  readonly name: string;
  readonly total: number;
  readonly unfinished: number;
  readonly dead: number;
}

export interface GroupLag {
  readonly queue: string;
  readonly group: string;
  readonly messages: number;
  readonly seconds: number;
}

/** As queen.recent_minutes tells them. */
export interface RecentQueue extends Readonly<Record<string, unknown>> {
  readonly queue: string;
  readonly age: number;
  readonly push_requests: number;
  readonly push_messages: number;
  readonly pop_messages: number;
  readonly pop_empty: number;
  readonly ack_success: number;
  readonly ack_failed: number;
  readonly transactions: number;
  readonly age_ms_sum: number;
  readonly age_count: number;
  readonly age_ms_max: number;
}

export interface RecentWorker {
  readonly hostname: string;
  readonly worker_id: number;
  readonly pid: number;
  readonly age: number;
  readonly push_requests: number;
  readonly push_messages: number;
  readonly pop_requests: number;
  readonly pop_messages: number;
  readonly ack_requests: number;
  readonly ack_messages: number;
  readonly ack_success: number;
  readonly ack_failed: number;
  readonly transactions: number;
  readonly dead_lettered: number;
  readonly database_errors: number;
  readonly age_ms_sum: number;
  readonly age_count: number;
  readonly age_ms_max: number;
  readonly samples: number;
  readonly gauges: Gauges;
}

export interface ClusterFigures {
  /** Counted since the beginning, by the name of the counter. */
  readonly totals: Readonly<Record<string, number>>;
  readonly queues: readonly QueueDepth[];
  readonly groups: readonly GroupLag[];
  readonly recentQueues: readonly RecentQueue[];
  readonly recentWorkers: readonly RecentWorker[];
}

type ClusterFamily = Family<ClusterFigures>;
type Read = ClusterFamily["read"];

const CLUSTER = { scope: "cluster" } as const;

const gauge = (name: string, help: string, read: Read, aggregator: "sum" | "max" = "sum"): ClusterFamily => ({
  name,
  help,
  type: "gauge",
  aggregator,
  read,
});

/** A total that queen.metric_totals keeps. */
const total = (name: string, column: string, help: string): ClusterFamily => ({
  name,
  help,
  type: "counter",
  aggregator: "sum",
  read: ({ totals }) => [{ labels: CLUSTER, value: totals[column] ?? 0 }],
});

const byQueue =
  (read: (queue: RecentQueue, labels: Sample["labels"]) => Sample[]): Read =>
  ({ recentQueues }: ClusterFigures, labels: LabelLimits) =>
    recentQueues.flatMap((queue) => read(queue, { queue: labels.queue(queue.queue) }));

const queueMinute = (name: string, column: keyof RecentQueue, help: string): ClusterFamily =>
  gauge(
    name,
    help,
    byQueue((queue, labels) => [{ labels, value: queue[column] as number }]),
  );

const byWorker =
  (read: (worker: RecentWorker, labels: Sample["labels"]) => Sample[]): Read =>
  ({ recentWorkers }: ClusterFigures) =>
    recentWorkers.flatMap((worker) => {
      const { hostname, worker_id, pid } = worker;
      return read(worker, { hostname, worker_id, pid });
    });

const workerMinute = (name: string, pick: (worker: RecentWorker) => number, help: string): ClusterFamily =>
  gauge(
    name,
    help,
    byWorker((worker, labels) => [{ labels, value: pick(worker) }]),
  );

const average = ({ gauges, samples }: RecentWorker, name: keyof Gauges): number =>
  (gauges[name]?.sum ?? 0) / Math.max(1, samples);

const sampled = (name: string, of: keyof Gauges, end: "min" | "max", help: string): ClusterFamily =>
  gauge(
    name,
    help,
    byWorker((worker, labels) => [
      { labels: { ...labels, stat: "avg" }, value: average(worker, of) },
      { labels: { ...labels, stat: end }, value: worker.gauges[of]?.[end] ?? 0 },
    ]),
  );

const ageOf = (
  each: { age_ms_sum: number; age_count: number; age_ms_max: number },
  labels: Sample["labels"],
): Sample[] => [
  { labels: { ...labels, stat: "avg" }, value: each.age_ms_sum / Math.max(1, each.age_count) },
  { labels: { ...labels, stat: "max" }, value: each.age_ms_max },
];

export const CLUSTER_FAMILIES: readonly ClusterFamily[] = [
  total("queen_cluster_push_requests_total", "push_requests", "Pushes answered by all brokers"),
  total("queen_cluster_pop_requests_total", "pop_requests", "Pops answered by all brokers"),
  total("queen_cluster_ack_requests_total", "ack_requests", "Acks answered by all brokers"),
  total("queen_cluster_transactions_total", "transactions", "Transactions answered by all brokers"),
  total("queen_cluster_push_messages_total", "push_messages", "Messages stored by all brokers"),
  total("queen_cluster_pop_messages_total", "pop_messages", "Messages delivered by all brokers"),
  total("queen_cluster_ack_messages_total", "ack_messages", "Messages acknowledged through all brokers"),
  total(
    "queen_cluster_db_errors_total",
    "database_errors",
    "Calls to PostgreSQL that failed, of all brokers",
  ),
  total("queen_cluster_dlq_total", "dead_lettered", "Messages that all brokers brought to the dead letters"),
  {
    name: "queen_cluster_ack_total",
    help: "Messages finished through all brokers, and messages failed or whose ack was refused",
    type: "counter",
    aggregator: "sum",
    read: ({ totals }) => [
      { labels: { ...CLUSTER, result: "success" }, value: totals.ack_success ?? 0 },
      { labels: { ...CLUSTER, result: "failed" }, value: totals.ack_failed ?? 0 },
    ],
  },
  gauge("queen_queue_messages", "Messages in the log of a queue", ({ queues }, labels) =>
    queues.map(({ name, total }) => ({ labels: { queue: labels.queue(name) }, value: total })),
  ),
  gauge("queen_queue_depth", "Messages of a queue that are not finished", ({ queues }, labels) =>
    queues.map(({ name, unfinished }) => ({ labels: { queue: labels.queue(name) }, value: unfinished })),
  ),
  gauge("queen_queue_lag_messages", "Messages that a consumer group has not finished", ({ groups }, labels) =>
    groups.map(({ queue, group, messages }) => ({ labels: labels.group(queue, group), value: messages })),
  ),
  gauge(
    "queen_queue_lag_seconds",
    "Age of the oldest message that a consumer group has not finished",
    ({ groups }, labels) =>
      groups.map(({ queue, group, seconds }) => ({ labels: labels.group(queue, group), value: seconds })),
    "max",
  ),
  gauge("queen_dlq_depth", "Dead letters", ({ queues }) => [
    { labels: CLUSTER, value: queues.reduce((sum, { dead }) => sum + dead, 0) },
  ]),
  gauge("queen_dlq_depth_by_queue", "Dead letters of a queue", ({ queues }, labels) =>
    queues.map(({ name, dead }) => ({ labels: { queue: labels.queue(name) }, value: dead })),
  ),
  queueMinute("queen_queue_push_requests_per_minute", "push_requests", "Pushes in the last whole minute"),
  queueMinute(
    "queen_queue_push_messages_per_minute",
    "push_messages",
    "Messages stored in the last whole minute",
  ),
  queueMinute(
    "queen_queue_pop_messages_per_minute",
    "pop_messages",
    "Messages delivered in the last whole minute",
  ),
  queueMinute(
    "queen_queue_pop_empty_per_minute",
    "pop_empty",
    "Pops without a message in the last whole minute",
  ),
  queueMinute("queen_queue_transactions_per_minute", "transactions", "Transactions in the last whole minute"),
  gauge(
    "queen_queue_ack_per_minute",
    "Messages finished, and failed or refused, in the last whole minute",
    byQueue(({ ack_success, ack_failed }, labels) => [
      { labels: { ...labels, result: "success" }, value: ack_success },
      { labels: { ...labels, result: "failed" }, value: ack_failed },
    ]),
  ),
  gauge(
    "queen_queue_pop_lag_milliseconds",
    "Age of messages when they were delivered in the last whole minute",
    byQueue(ageOf),
    "max",
  ),
  gauge(
    "queen_queue_metrics_age_seconds",
    "Time since the last minute with figures began",
    byQueue(({ age }, labels) => [{ labels, value: age }]),
    "max",
  ),
  sampled(
    "queen_worker_event_loop_lag_milliseconds",
    "event_loop_lag_ms",
    "max",
    "How late a worker's event loop was in the last whole minute",
  ),
  sampled(
    "queen_worker_free_slots",
    "free_slots",
    "min",
    "Connections of the data plane without a call in the last whole minute",
  ),
  sampled(
    "queen_worker_job_queue_size",
    "job_queue",
    "max",
    "Operations that waited for a connection in the last whole minute",
  ),
  gauge(
    "queen_worker_lag_milliseconds",
    "Age of messages when they were delivered in the last whole minute",
    byWorker(ageOf),
  ),
  workerMinute(
    "queen_worker_db_connections",
    ({ gauges }) => gauges.pool_size?.last ?? 0,
    "Connections to PostgreSQL in the last whole minute",
  ),
  workerMinute(
    "queen_worker_jobs_done_per_minute",
    (worker) => worker.push_requests + worker.pop_requests + worker.ack_requests + worker.transactions,
    "Requests answered in the last whole minute",
  ),
  workerMinute(
    "queen_worker_db_errors_per_minute",
    (worker) => worker.database_errors,
    "Calls to PostgreSQL that failed in the last whole minute",
  ),
  workerMinute(
    "queen_worker_dlq_per_minute",
    (worker) => worker.dead_lettered,
    "Messages dead-lettered in the last whole minute",
  ),
  gauge(
    "queen_worker_requests_per_minute",
    "Requests answered, by operation in the last whole minute",
    byWorker((worker, labels) => [
      { labels: { ...labels, op: "push" }, value: worker.push_requests },
      { labels: { ...labels, op: "pop" }, value: worker.pop_requests },
      { labels: { ...labels, op: "ack" }, value: worker.ack_requests },
      { labels: { ...labels, op: "transaction" }, value: worker.transactions },
    ]),
  ),
  gauge(
    "queen_worker_messages_per_minute",
    "Messages stored, delivered and acknowledged in the last whole minute",
    byWorker((worker, labels) => [
      { labels: { ...labels, op: "push" }, value: worker.push_messages },
      { labels: { ...labels, op: "pop" }, value: worker.pop_messages },
      { labels: { ...labels, op: "ack" }, value: worker.ack_messages },
    ]),
  ),
  gauge(
    "queen_worker_ack_per_minute",
    "Messages finished, and failed or refused, in the last whole minute",
    byWorker((worker, labels) => [
      { labels: { ...labels, result: "success" }, value: worker.ack_success },
      { labels: { ...labels, result: "failed" }, value: worker.ack_failed },
    ]),
  ),
  workerMinute(
    "queen_worker_metrics_age_seconds",
    (worker) => worker.age,
    "Time since the last minute with figures began",
  ),
];
