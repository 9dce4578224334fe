/** The families that a broker knows by itself: figures of its workers, summed up, since each of them started. */
import { type Family, histogram, type LabelLimits, type Sample, single } from "./family.ts";
import type { QueueCounts } from "./figures.ts";
import { OPERATIONS, type Operation, type WorkerSnapshot } from "./snapshot.ts";

type BrokerFamily = Family<WorkerSnapshot>;
type Read = BrokerFamily["read"];

const counter = (name: string, help: string, read: Read): BrokerFamily => ({
  name,
  help,
  type: "counter",
  aggregator: "sum",
  read,
});

const gauge = (name: string, help: string, read: Read): BrokerFamily => ({
  name,
  help,
  type: "gauge",
  aggregator: "sum",
  read,
});

/** Of the broker as a whole: its workers do not add up. */
const shared = (name: string, aggregator: "max" | "min", help: string, read: Read): BrokerFamily => ({
  ...gauge(name, help, read),
  aggregator,
});

const duration = (name: string, operation: Operation, help: string): BrokerFamily => ({
  name,
  help,
  type: "histogram",
  aggregator: "sum",
  read: (worker) => histogram(name, worker.operations[operation].duration),
});

const one =
  (pick: (worker: WorkerSnapshot) => number): Read =>
  (worker) =>
    single(pick(worker));

const byQueue =
  (pick: (counts: QueueCounts) => number): Read =>
  (worker, labels) =>
    worker.queues.map(({ name, counts }) => ({ labels: { queue: labels.queue(name) }, value: pick(counts) }));

const byResult = ({ ack_success, ack_failed }: QueueCounts, labels: Sample["labels"] = {}): Sample[] => [
  { labels: { ...labels, result: "success" }, value: ack_success },
  { labels: { ...labels, result: "failed" }, value: ack_failed },
];

export const BROKER_FAMILIES: readonly BrokerFamily[] = [
  {
    ...gauge("queen_uptime_seconds", "Time since the oldest worker started", (worker) =>
      single(worker.uptimeSeconds),
    ),
    aggregator: "max",
  },
  counter(
    "queen_cpu_user_microseconds_total",
    "Processor time in user mode",
    one((worker) => worker.cpuUserUs),
  ),
  counter(
    "queen_cpu_system_microseconds_total",
    "Processor time in the kernel",
    one((worker) => worker.cpuSystemUs),
  ),
  gauge(
    "queen_process_resident_memory_bytes",
    "Memory in use",
    one((worker) => worker.rssBytes),
  ),
  gauge(
    "queen_process_heap_bytes",
    "Memory of objects, those that nobody uses any more included until they are collected",
    one((worker) => worker.heapBytes),
  ),
  gauge(
    "queen_process_virtual_memory_bytes",
    "Address space reserved; 0 where the system does not say",
    one((worker) => worker.virtualBytes),
  ),
  gauge(
    "queen_db_pool_size",
    "Connections to PostgreSQL",
    one((worker) => worker.poolSize),
  ),
  gauge(
    "queen_db_pool_idle",
    "Connections without a call",
    one((worker) => worker.poolIdle),
  ),
  gauge(
    "queen_db_pool_active",
    "Connections with a call in flight",
    one((worker) => worker.poolActive),
  ),
  gauge("queen_response_registry_size", "Requests that are not answered yet", (worker) => [
    { labels: { worker_id: worker.workerId }, value: worker.requestsActive },
  ]),
  gauge(
    "queen_operations_waiting",
    "Operations that wait for a connection",
    one((worker) => worker.operationsWaiting),
  ),
  gauge(
    "queen_pops_parked",
    "Pops that wait for a message",
    one((worker) => worker.popsParked),
  ),
  shared("queen_file_buffer_pending", "max", "Messages that wait on the broker's disk", (worker) =>
    single(worker.spoolPending),
  ),
  shared(
    "queen_file_buffer_failed",
    "max",
    "Messages on the broker's disk that the database refused",
    (worker) => single(worker.spoolRejected),
  ),
  shared(
    "queen_file_buffer_db_healthy",
    "min",
    "1: pushes go to the database; 0: a worker cannot use it, and they go to the disk",
    (worker) => single(worker.isDatabaseHealthy ? 1 : 0),
  ),
  shared("queen_maintenance_mode_enabled", "max", "1: push maintenance is on", (worker) =>
    single(worker.isPushMaintenance ? 1 : 0),
  ),
  shared("queen_pop_maintenance_mode_enabled", "max", "1: pop maintenance is on", (worker) =>
    single(worker.isPopMaintenance ? 1 : 0),
  ),
  gauge(
    "queen_event_loop_lag_seconds",
    "How late a worker's event loop is: on average this minute, at most this minute and the one before",
    (worker) => [
      { labels: { worker_id: worker.workerId, stat: "avg" }, value: worker.loopLagMsAverage / 1000 },
      { labels: { worker_id: worker.workerId, stat: "max" }, value: worker.loopLagMsMax / 1000 },
    ],
  ),
  counter("queen_requests_total", "Requests answered", (worker) =>
    OPERATIONS.map((op) => ({ labels: { op }, value: worker.operations[op].requests })),
  ),
  counter("queen_messages_total", "Messages stored, delivered, and acknowledged by requests", (worker) => [
    { labels: { op: "push" }, value: worker.counts.push_messages },
    { labels: { op: "pop" }, value: worker.counts.pop_messages },
    { labels: { op: "ack" }, value: worker.counts.ack_messages },
  ]),
  counter(
    "queen_acks_total",
    "Messages finished, and messages reported as failed or whose ack was refused",
    (worker) => byResult(worker.counts),
  ),
  counter(
    "queen_pops_empty_total",
    "Pops answered without a message",
    one((worker) => worker.counts.pop_empty),
  ),
  counter(
    "queen_dead_letters_total",
    "Messages that went to the dead letters",
    one((worker) => worker.counts.dead_lettered),
  ),
  counter(
    "queen_database_errors_total",
    "Calls to PostgreSQL that failed",
    one((worker) => worker.counts.database_errors),
  ),
  duration("queen_push_duration_seconds", "push", "From a push's arrival to its answer"),
  duration("queen_pop_wait_seconds", "pop", "From a pop's arrival to its answer, long polls included"),
  duration("queen_ack_duration_seconds", "ack", "From an ack's arrival to its answer"),
  duration("queen_transaction_duration_seconds", "transaction", "From a transaction's arrival to its answer"),
  {
    name: "queen_database_duration_seconds",
    help: "Calls to PostgreSQL, one for many operations of a kind",
    type: "histogram",
    aggregator: "sum",
    read: (worker) =>
      OPERATIONS.flatMap((op) =>
        histogram("queen_database_duration_seconds", worker.operations[op].database, { op }),
      ),
  },
  {
    name: "queen_message_age_seconds",
    help: "Age of messages when they are delivered",
    type: "histogram",
    aggregator: "sum",
    read: (worker) => histogram("queen_message_age_seconds", worker.ages),
  },
  counter(
    "queen_queue_push_messages_total",
    "Messages stored in a queue",
    byQueue((counts) => counts.push_messages),
  ),
  counter(
    "queen_queue_pop_requests_total",
    "Pops of a queue answered",
    byQueue((counts) => counts.pop_requests),
  ),
  counter(
    "queen_queue_pop_messages_total",
    "Messages delivered from a queue",
    byQueue((counts) => counts.pop_messages),
  ),
  counter(
    "queen_queue_pop_empty_total",
    "Pops of a queue answered without a message",
    byQueue((counts) => counts.pop_empty),
  ),
  counter(
    "queen_queue_ack_messages_total",
    "Messages of a queue finished, and messages reported as failed or whose ack was refused",
    (worker, labels) =>
      worker.queues.flatMap(({ name, counts }) => byResult(counts, { queue: labels.queue(name) })),
  ),
  counter(
    "queen_queue_dead_letters_total",
    "Messages of a queue that went to the dead letters",
    byQueue((counts) => counts.dead_lettered),
  ),
  gauge("queen_queue_parked_consumers", "Pops of a queue that wait", (worker, labels: LabelLimits) =>
    worker.queues.map(({ name, parked }) => ({ labels: { queue: labels.queue(name) }, value: parked })),
  ),
];
