/** What a worker tells of itself when it, or another worker of the broker, is asked for metrics. */
import type { DistributionFigures } from "./distribution.ts";
import { QUEUE_COUNTERS, type QueueCounts, type WorkerCounts, zeros } from "./figures.ts";
import type { Meter } from "./meter.ts";

export const OPERATIONS = ["push", "pop", "ack", "transaction", "renew_lease"] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface OperationSnapshot {
  readonly requests: number;
  readonly duration: DistributionFigures;
  readonly database: DistributionFigures;
}

export interface QueueSnapshot {
  readonly name: string;
  readonly counts: QueueCounts;
  readonly parked: number;
}

export interface WorkerSnapshot {
  readonly workerId: number;
  readonly uptimeSeconds: number;
  readonly cpuUserUs: number;
  readonly cpuSystemUs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly virtualBytes: number;
  readonly poolSize: number;
  readonly poolIdle: number;
  readonly poolActive: number;
  readonly requestsActive: number;
  readonly operationsWaiting: number;
  readonly popsParked: number;
  /** Of the broker: all its workers say the same. */
  readonly spoolPending: number;
  readonly spoolRejected: number;
  readonly isDatabaseHealthy: boolean;
  readonly isPushMaintenance: boolean;
  readonly isPopMaintenance: boolean;
  readonly loopLagMsAverage: number;
  readonly loopLagMsMax: number;
  readonly counts: WorkerCounts;
  readonly operations: Readonly<Record<Operation, OperationSnapshot>>;
  readonly ages: DistributionFigures;
  readonly queues: readonly QueueSnapshot[];
}

/** Messages that came or went: what a queue is ranked by. */
export const trafficOf = (counts: QueueCounts): number =>
  counts.push_messages + counts.pop_messages + counts.ack_success + counts.ack_failed;

/** The queues of a worker, the busiest by name, at most `max`; all others together under `rest`. */
export function queueSnapshots(
  meter: Meter,
  parked: ReadonlyMap<number, number>,
  max: number,
  rest: string,
): QueueSnapshot[] {
  const queues = [...meter.queues.values()].map((queue) => ({
    name: queue.name,
    counts: queue.counts,
    parked: parked.get(queue.id) ?? 0,
  }));
  if (queues.length <= max) return queues;
  queues.sort((a, b) => trafficOf(b.counts) - trafficOf(a.counts));
  const others = { name: rest, counts: zeros(QUEUE_COUNTERS), parked: 0 };
  for (const { counts, parked } of queues.splice(max)) {
    for (const name of QUEUE_COUNTERS) others.counts[name] += counts[name];
    others.parked += parked;
  }
  return [...queues, others];
}
