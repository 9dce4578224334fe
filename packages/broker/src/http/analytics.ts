/** The handlers of analytics: series of the past minutes by worker and by queue, and PostgreSQL's own statistics. */
import { BrokerError } from "@queen/protocol";
import type {
  Analytics,
  GaugeLeaf,
  QueueBucketRow,
  Range,
  Scope,
  SystemReplica,
} from "../control/analytics.ts";
import { groupBy } from "../operations/group-by.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";
import { HOUR_MS, readRange, type TimeQuery } from "./time-range.ts";
import type { ReadTimestamp } from "./times.ts";

export interface WorkerQuery extends TimeQuery {
  readonly hostname: string | undefined;
  readonly workerId: string | undefined;
}

export interface QueueQuery extends TimeQuery {
  readonly queue: string | undefined;
}

export interface AnalyticsRoutesOptions {
  readonly analytics: Analytics;
  readonly readTimestamp: ReadTimestamp;
  /** The database's clock in milliseconds, as far as it is known. */
  readonly clockMs: () => number;
}

const NO_WORKERS = { hostname: undefined, worker: undefined } as const;

export class AnalyticsRoutes {
  readonly #options: AnalyticsRoutesOptions;

  constructor(options: AnalyticsRoutesOptions) {
    this.#options = options;
  }

  async systemMetrics(query: WorkerQuery): Promise<Answer> {
    const range = await this.#range(query);
    const replicas = await this.#options.analytics.systemSeries(range, workersOf(query));
    const points = new Set(
      replicas.flatMap(({ timeSeries }) => timeSeries.map(({ timestamp }) => timestamp)),
    );
    return json(200, {
      timeRange: timeRange(range),
      replicas: replicas.map(showReplica),
      replicaCount: replicas.length,
      bucketMinutes: range.bucketMinutes,
      pointCount: points.size,
    });
  }

  async workerMetrics(query: WorkerQuery): Promise<Answer> {
    const { analytics } = this.#options;
    const range = await this.#range(query);
    const chosen = workersOf(query);
    const everyQueue: Scope = { queue: undefined, namespace: undefined, task: undefined };
    const [series, workers, byQueue, counts] = await Promise.all([
      analytics.workerSeries(range, chosen),
      analytics.workers(range, chosen),
      analytics.queueSeries(range, everyQueue),
      analytics.counts(everyQueue),
    ]);
    const sum = (pick: (bucket: (typeof series)[number]) => number): number =>
      series.reduce((total, bucket) => total + pick(bucket), 0);
    return json(200, {
      timeRange: timeRange(range),
      bucketMinutes: range.bucketMinutes,
      pointCount: series.length,
      timeSeries: series.map((bucket) => ({
        timestamp: bucket.timestamp,
        pushMessages: bucket.pushMessages,
        popMessages: bucket.popMessages,
        ackMessages: bucket.ackMessages,
        pushRequests: bucket.pushRequests,
        popRequests: bucket.popRequests,
        ackRequests: bucket.ackRequests,
        jobsDone: bucket.jobsDone,
        pushPerSecond: bucket.pushPerSecond,
        popPerSecond: bucket.popPerSecond,
        ackPerSecond: bucket.ackPerSecond,
        avgEventLoopLagMs: bucket.avgEventLoopLagMs,
        maxEventLoopLagMs: bucket.maxEventLoopLagMs,
        avgFreeSlots: bucket.avgFreeSlots,
        minFreeSlots: bucket.minFreeSlots,
        dbConnections: bucket.poolSize ?? 0,
        avgJobQueueSize: bucket.avgJobQueueSize,
        maxJobQueueSize: bucket.maxJobQueueSize,
        backoffSize: 0,
        avgLagMs: bucket.avgLagMs,
        maxLagMs: bucket.maxLagMs,
        lagCount: bucket.lagCount,
        dbErrors: bucket.dbErrors,
        ackSuccess: bucket.ackSuccess,
        ackFailed: bucket.ackFailed,
        dlqCount: bucket.dlqCount,
      })),
      workers: workers.map((worker) => ({ ...worker, backoffSize: 0 })),
      queues: [...groupBy(byQueue, ({ queue }) => queue)]
        .map(([queueName, buckets]) => ({ queueName, ...lagOf(buckets) }))
        .filter(({ popCount }) => popCount > 0),
      summary: {
        totalPushMessages: sum((bucket) => bucket.pushMessages),
        totalPopMessages: sum((bucket) => bucket.popMessages),
        totalAckMessages: sum((bucket) => bucket.ackMessages),
        totalPushRequests: sum((bucket) => bucket.pushRequests),
        totalPopRequests: sum((bucket) => bucket.popRequests),
        totalAckRequests: sum((bucket) => bucket.ackRequests),
        totalDbErrors: sum((bucket) => bucket.dbErrors),
        totalAckFailed: sum((bucket) => bucket.ackFailed),
        totalDlq: sum((bucket) => bucket.dlqCount),
        pendingMessages: counts.queues.reduce((total, { unfinished }) => total + unfinished, 0),
      },
    });
  }

  async queueLag(query: QueueQuery): Promise<Answer> {
    const series = await this.#queueSeries(await this.#range(query), query.queue);
    return json(
      200,
      series
        .filter(({ ageCount }) => ageCount > 0)
        .reverse()
        .map((bucket) => ({ queueName: bucket.queue, ...lagOf([bucket]), bucketTime: bucket.bucket })),
    );
  }

  async queueOps(query: QueueQuery): Promise<Answer> {
    const range = await this.#range(query);
    const series = await this.#queueSeries(range, query.queue);
    return json(200, {
      timeRange: timeRange(range),
      bucketMinutes: range.bucketMinutes,
      series: series.map(showOperations),
      queues: [...new Set(series.map(({ queue }) => queue))].sort(),
    });
  }

  async queueParkedReplicas(query: QueueQuery): Promise<Answer> {
    const range = await this.#range(query);
    const series = await this.#options.analytics.parkedSeries(range, query.queue);
    const replicas = groupBy(series, ({ hostname, workerId }) => `${hostname}\0${workerId}`);
    return json(200, {
      timeRange: timeRange(range),
      bucketMinutes: range.bucketMinutes,
      series,
      replicas: [...replicas.values()].map(([{ hostname, workerId }]) => ({ hostname, workerId })),
    });
  }

  async postgresStats(): Promise<Answer> {
    return json(200, await this.#options.analytics.postgres());
  }

  #range(query: TimeQuery): Promise<Range> {
    const { clockMs, readTimestamp } = this.#options;
    return readRange(query, HOUR_MS, clockMs(), readTimestamp);
  }

  #queueSeries(range: Range, queue: string | undefined): Promise<QueueBucketRow[]> {
    return this.#options.analytics.queueSeries(range, { queue, namespace: undefined, task: undefined });
  }
}

export const timeRange = ({ from, to }: Range): { from: string; to: string } => ({ from, to });

export const perSecond = (count: number, seconds: number): number =>
  Math.round((count / seconds) * 100) / 100;

function workersOf({ hostname, workerId }: WorkerQuery): {
  hostname: string | undefined;
  worker: number | undefined;
} {
  if (workerId === undefined) return { ...NO_WORKERS, hostname };
  if (/^\d{1,9}$/.test(workerId)) return { hostname, worker: Number(workerId) };
  throw new BrokerError(
    "VALIDATION_FAILED",
    `workerId must be the number of a worker, such as 0, got "${workerId.slice(0, 40)}".`,
  );
}

export function lagOf(buckets: readonly QueueBucketRow[]): {
  popCount: number;
  avgLagMs: number;
  maxLagMs: number;
} {
  const popCount = buckets.reduce((sum, { ageCount }) => sum + ageCount, 0);
  const ageMs = buckets.reduce((sum, { ageMsSum }) => sum + ageMsSum, 0);
  return {
    popCount,
    avgLagMs: popCount === 0 ? 0 : Math.round((ageMs / popCount) * 100) / 100,
    maxLagMs: Math.round(Math.max(0, ...buckets.map(({ ageMsMax }) => ageMsMax)) * 100) / 100,
  };
}

function showOperations(bucket: QueueBucketRow): Record<string, unknown> {
  const { seconds } = bucket;
  const { avgLagMs, maxLagMs } = lagOf([bucket]);
  return {
    bucket: bucket.bucket,
    queueName: bucket.queue,
    pushRequests: bucket.pushRequests,
    pushMessages: bucket.pushMessages,
    popMessages: bucket.popMessages,
    popEmpty: bucket.popEmpty,
    ackRequests: bucket.ackRequests,
    ackSuccess: bucket.ackSuccess,
    ackFailed: bucket.ackFailed,
    transactions: bucket.transactions,
    partitionsCreated: bucket.partitionsCreated,
    partitionsDeleted: bucket.partitionsDeleted,
    partitionCount: bucket.partitions,
    avgLagMs,
    maxLagMs,
    pushPerSecond: perSecond(bucket.pushMessages, seconds),
    popPerSecond: perSecond(bucket.popMessages, seconds),
    ackPerSecond: perSecond(bucket.ackSuccess, seconds),
    emptyPerSecond: perSecond(bucket.popEmpty, seconds),
    parkedCount: bucket.parked,
  };
}

const ZERO: GaugeLeaf = { avg: 0, min: 0, max: 0, last: 0 };

function showReplica({ hostname, port, workerId, timeSeries }: SystemReplica): Record<string, unknown> {
  return {
    hostname,
    port,
    workerId: String(workerId),
    timeSeries: timeSeries.map(({ timestamp, sampleCount, gauges }) => {
      const leaf = (name: string): GaugeLeaf => gauges[name] ?? ZERO;
      return {
        timestamp,
        sampleCount,
        metrics: {
          cpu: { user_us: leaf("cpu_user_us"), system_us: leaf("cpu_system_us") },
          memory: { rss_bytes: leaf("rss_bytes"), virtual_bytes: leaf("virtual_bytes") },
          database: {
            pool_size: leaf("pool_size"),
            pool_idle: leaf("pool_idle"),
            pool_active: leaf("pool_active"),
          },
          threadpool: {
            db: { pool_size: leaf("slots"), queue_size: leaf("job_queue") },
            system: { pool_size: leaf("secondary_connections"), queue_size: leaf("secondary_waiting") },
          },
          registries: { response: leaf("requests_active") },
          shared_state: { peers: leaf("bus_peers") },
        },
      };
    }),
  };
}
