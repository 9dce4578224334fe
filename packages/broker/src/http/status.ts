/** The handlers of the status: throughput of a stretch of time, and what there is now, of all queues or of some. */
import { BrokerError, queueId } from "@queen/protocol";
import type { Analytics, QueueBucketRow, Range, Scope, WorkerBucket } from "../control/analytics.ts";
import { groupBy } from "../operations/group-by.ts";
import { lagOf, perSecond, timeRange } from "./analytics.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";
import { DAY_MS, HOUR_MS, readRange, type TimeQuery } from "./time-range.ts";
import type { ReadTimestamp } from "./times.ts";

export interface StatusQuery extends TimeQuery, Scope {}

export const INTERVALS = ["minute", "hour", "day"] as const;
const INTERVAL_MINUTES = { minute: 1, hour: 60, day: 1440 } as const;
const POINTS_MAX = 10_000;
const MINUTE_MS = 60_000;

export interface StatusAnalyticsQuery extends StatusQuery {
  readonly interval: (typeof INTERVALS)[number] | undefined;
}

export interface StatusRoutesOptions {
  readonly analytics: Analytics;
  readonly readTimestamp: ReadTimestamp;
  /** The database's clock in milliseconds, as far as it is known. */
  readonly clockMs: () => number;
}

const ANY_WORKER = { hostname: undefined, worker: undefined } as const;

export class StatusRoutes {
  readonly #options: StatusRoutesOptions;

  constructor(options: StatusRoutesOptions) {
    this.#options = options;
  }

  async status(query: StatusQuery): Promise<Answer> {
    const { analytics, clockMs, readTimestamp } = this.#options;
    const range = await readRange(query, HOUR_MS, clockMs(), readTimestamp);
    const [series, workers, counts] = await Promise.all([
      this.#series(range, query),
      analytics.workers(range, ANY_WORKER),
      analytics.counts(query),
    ]);
    const sum = (pick: (bucket: Bucket) => number): number =>
      series.reduce((total, bucket) => total + pick(bucket), 0);
    const { queues, leases, letters } = counts;
    const count = (pick: (queue: (typeof queues)[number]) => number): number =>
      queues.reduce((total, queue) => total + pick(queue), 0);
    const [total, unfinished, leased] = [
      count((queue) => queue.total),
      count((queue) => queue.unfinished),
      count((queue) => Math.min(queue.leased, queue.unfinished)),
    ];
    const requests = {
      push: sum((bucket) => bucket.pushRequests),
      pop: sum((bucket) => bucket.popRequests),
      ack: sum((bucket) => bucket.ackRequests),
    };
    return json(200, {
      timeRange: timeRange(range),
      bucketMinutes: range.bucketMinutes,
      pointCount: series.length,
      statsAge: counts.ageSeconds === null ? -1 : Math.max(0, Math.floor(counts.ageSeconds)),
      throughput: series.map((bucket) => bucket.shown),
      queues: queues
        .filter((queue) => queue.total > 0)
        .map(({ id, name, namespace, task, partitions, consumed }) => ({
          id: queueId(id),
          name,
          namespace,
          task,
          partitions,
          totalConsumed: consumed,
        })),
      messages: {
        total,
        pending: unfinished - leased,
        processing: leased,
        completed: Math.max(0, total - unfinished - letters.letters),
        failed: count((queue) => queue.failed),
        deadLetter: letters.letters,
        requests,
        batchEfficiency: {
          push: perRequest(
            sum((bucket) => bucket.pushMessages),
            requests.push,
          ),
          pop: perRequest(
            sum((bucket) => bucket.popMessages),
            requests.pop,
          ),
          ack: perRequest(
            sum((bucket) => bucket.ackMessages),
            requests.ack,
          ),
        },
      },
      leases: {
        active: leases.active,
        partitionsWithLeases: leases.partitions,
        totalBatchSize: leases.messages,
        totalAcked: leases.acked,
      },
      deadLetterQueue: {
        totalMessages: letters.letters,
        affectedPartitions: letters.partitions,
        topErrors: letters.errors,
      },
      workers: workers.map(({ lastSeen: _, ...worker }) => worker),
      errors: {
        dbErrors: sum((bucket) => bucket.dbErrors),
        ackFailed: sum((bucket) => bucket.ackFailed),
        dlqMessages: sum((bucket) => bucket.dlqCount),
      },
    });
  }

  /** Messages stored, by minute, hour or day, the oldest first. */
  async analytics(query: StatusAnalyticsQuery): Promise<Answer> {
    const { clockMs, readTimestamp } = this.#options;
    const interval = query.interval ?? "hour";
    const bucketMinutes = INTERVAL_MINUTES[interval];
    const range = { ...(await readRange(query, DAY_MS, clockMs(), readTimestamp)), bucketMinutes };
    if (Date.parse(range.to) - Date.parse(range.from) > POINTS_MAX * bucketMinutes * MINUTE_MS) {
      throw new BrokerError(
        "VALIDATION_FAILED",
        `from ${range.from} to ${range.to} has more than ${POINTS_MAX} intervals: ask for less, or by a longer interval.`,
      );
    }
    const series = await this.#series(range, query);
    return json(200, {
      dataPoints: series
        .map(({ shown, pushMessages }) => ({ timestamp: shown.timestamp, messages: pushMessages }))
        .reverse(),
      interval,
      ...timeRange(range),
    });
  }

  /** The newest first: by workers, or where some queues are meant, by queues. */
  async #series(range: Range, scope: Scope): Promise<Bucket[]> {
    const { analytics } = this.#options;
    const { queue, namespace, task } = scope;
    const byWorkers = await analytics.workerSeries(range, ANY_WORKER);
    if (queue === undefined && namespace === undefined && task === undefined)
      return byWorkers.map(workerBucket);
    const workersAt = new Map(byWorkers.map((bucket) => [bucket.timestamp, bucket]));
    const rows = await analytics.queueSeries(range, scope);
    return [...groupBy(rows, ({ bucket }) => bucket)]
      .map(([timestamp, buckets]) => queueBucket(timestamp, buckets, workersAt.get(timestamp)))
      .reverse();
  }
}

/** What the sums are made of, and the bucket as it is shown. */
interface Bucket {
  readonly pushRequests: number;
  readonly pushMessages: number;
  readonly popRequests: number;
  readonly popMessages: number;
  readonly ackRequests: number;
  readonly ackMessages: number;
  readonly ackFailed: number;
  readonly dlqCount: number;
  readonly dbErrors: number;
  readonly shown: { readonly timestamp: string } & Readonly<Record<string, unknown>>;
}

const perRequest = (messages: number, requests: number): number =>
  requests === 0 ? 0 : Math.round((messages / requests) * 100) / 100;

function workerBucket(bucket: WorkerBucket): Bucket {
  return {
    ...bucket,
    shown: {
      timestamp: bucket.timestamp,
      ingested: bucket.pushMessages,
      processed: bucket.ackSuccess,
      popMessages: bucket.popMessages,
      ingestedPerSecond: bucket.pushPerSecond,
      processedPerSecond: bucket.ackPerSecond,
      popPerSecond: bucket.popPerSecond,
      avgLagMs: bucket.avgLagMs,
      maxLagMs: bucket.maxLagMs,
      dbErrors: bucket.dbErrors,
      ackFailed: bucket.ackFailed,
      dlqCount: bucket.dlqCount,
      ...stateOfWorkers(bucket),
    },
  };
}

function queueBucket(
  timestamp: string,
  buckets: readonly [QueueBucketRow, ...QueueBucketRow[]],
  workers: WorkerBucket | undefined,
): Bucket {
  const sum = (pick: (bucket: QueueBucketRow) => number): number =>
    buckets.reduce((total, bucket) => total + pick(bucket), 0);
  const [{ seconds }] = buckets;
  const { avgLagMs, maxLagMs } = lagOf(buckets);
  const [pushMessages, popMessages, ackSuccess, ackFailed, dlqCount] = [
    sum((bucket) => bucket.pushMessages),
    sum((bucket) => bucket.popMessages),
    sum((bucket) => bucket.ackSuccess),
    sum((bucket) => bucket.ackFailed),
    sum((bucket) => bucket.deadLettered),
  ];
  return {
    pushRequests: sum((bucket) => bucket.pushRequests),
    pushMessages,
    popRequests: sum((bucket) => bucket.popRequests),
    popMessages,
    ackRequests: sum((bucket) => bucket.ackRequests),
    ackMessages: ackSuccess + ackFailed,
    ackFailed,
    dlqCount,
    dbErrors: workers?.dbErrors ?? 0,
    shown: {
      timestamp,
      ingested: pushMessages,
      processed: ackSuccess,
      popMessages,
      ingestedPerSecond: perSecond(pushMessages, seconds),
      processedPerSecond: perSecond(ackSuccess, seconds),
      popPerSecond: perSecond(popMessages, seconds),
      avgLagMs,
      maxLagMs,
      dbErrors: workers?.dbErrors ?? 0,
      ackFailed,
      dlqCount,
      ...stateOfWorkers(workers),
    },
  };
}

const stateOfWorkers = (workers: WorkerBucket | undefined) => ({
  avgEventLoopLagMs: workers?.avgEventLoopLagMs ?? 0,
  maxEventLoopLagMs: workers?.maxEventLoopLagMs ?? 0,
  minFreeSlots: workers?.minFreeSlots ?? 0,
  queenCpuUserPct: workers?.cpuUserPct ?? null,
  queenCpuSysPct: workers?.cpuSystemPct ?? null,
  queenRssMb: workers?.rssMb ?? null,
  dbPoolActive: workers?.poolActive ?? null,
  dbPoolIdle: workers?.poolIdle ?? null,
  dbPoolSize: workers?.poolSize ?? null,
});
