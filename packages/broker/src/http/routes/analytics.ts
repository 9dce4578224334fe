/** The routes of analytics: what happened, minute by minute. */
import { z } from "zod";
import type { AnalyticsRoutes } from "../analytics.ts";
import { integer, moment, queueName, text } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, time } from "./shapes.ts";

/** Workers write their figures every ten seconds. */
export const FOLLOWED_EVERY_MS = 5_000;

export const timeRange = z.object({ from: time, to: time });
export const bucketTime = z.string().describe("When the bucket begins, such as 2026-11-15T19:00:00Z");
export const bucketMinutes = count.describe(
  "1 up to an hour, 5 up to 6 hours, 15 up to a day, 60 up to a week, else 360",
);
const rate = z.number().describe("Per second of the bucket that has passed");

export const timeQuery = {
  from: moment("Start; an hour before the end unless said"),
  to: moment("End; now unless said"),
  minutes: integer("Instead of `from`: so long before the end", { fallback: 0, min: 0, max: 525_600 }),
};
const workerQuery = {
  ...timeQuery,
  hostname: text("Only workers of this host"),
  workerId: text("Only workers with this number"),
};
const queueQuery = { ...timeQuery, queue: queueName("Only this queue") };

const leaf = z.object({ avg: z.number(), min: z.number(), max: z.number(), last: z.number() });

const systemMetrics = z.object({
  timeRange,
  replicas: z.array(
    z.object({
      hostname: z.string(),
      port: count,
      workerId: z.string(),
      timeSeries: z.array(
        z.object({
          timestamp: bucketTime,
          sampleCount: count,
          metrics: z.object({
            cpu: z
              .object({ user_us: leaf, system_us: leaf })
              .describe("Microseconds of processor time per second"),
            memory: z.object({ rss_bytes: leaf, virtual_bytes: leaf }),
            database: z.object({ pool_size: leaf, pool_idle: leaf, pool_active: leaf }),
            threadpool: z
              .object({
                db: z.object({ pool_size: leaf, queue_size: leaf }),
                system: z.object({ pool_size: leaf, queue_size: leaf }),
              })
              .describe(
                "Connections of the data plane (`db`) and for everything else, and what waits for one",
              ),
            registries: z.object({ response: leaf.describe("Requests that are not answered yet") }),
            shared_state: z.object({ peers: leaf.describe("Other workers that the bus hears") }),
          }),
        }),
      ),
    }),
  ),
  replicaCount: count,
  bucketMinutes,
  pointCount: count,
});

const workerMetrics = z.object({
  timeRange,
  bucketMinutes,
  pointCount: count,
  timeSeries: z
    .array(
      z.object({
        timestamp: bucketTime,
        pushMessages: count,
        popMessages: count,
        ackMessages: count,
        pushRequests: count,
        popRequests: count,
        ackRequests: count,
        jobsDone: count,
        pushPerSecond: rate,
        popPerSecond: rate,
        ackPerSecond: rate,
        avgEventLoopLagMs: z.number(),
        maxEventLoopLagMs: z.number(),
        avgFreeSlots: z.number(),
        minFreeSlots: count,
        dbConnections: z.number(),
        avgJobQueueSize: z.number(),
        maxJobQueueSize: count,
        backoffSize: count.describe("Always 0: a waiting pop does not poll"),
        avgLagMs: z.number().describe("Age of messages at their delivery"),
        maxLagMs: z.number(),
        lagCount: count,
        dbErrors: count,
        ackSuccess: count,
        ackFailed: count,
        dlqCount: count,
      }),
    )
    .describe("The newest first"),
  workers: z.array(
    z.object({
      hostname: z.string(),
      workerId: count,
      avgEventLoopLagMs: z.number(),
      maxEventLoopLagMs: z.number(),
      freeSlots: count,
      dbConnections: count,
      jobQueueSize: count,
      backoffSize: count,
      messagesProcessed: count,
      lastSeen: time,
    }),
  ),
  queues: z.array(
    z.object({ queueName: z.string(), popCount: count, avgLagMs: z.number(), maxLagMs: z.number() }),
  ),
  summary: z.object({
    totalPushMessages: count,
    totalPopMessages: count,
    totalAckMessages: count,
    totalPushRequests: count,
    totalPopRequests: count,
    totalAckRequests: count,
    totalDbErrors: count,
    totalAckFailed: count,
    totalDlq: count,
    pendingMessages: count,
  }),
});

const queueLag = z.array(
  z.object({
    queueName: z.string(),
    popCount: count,
    avgLagMs: z.number(),
    maxLagMs: z.number(),
    bucketTime,
  }),
);

const queueOps = z.object({
  timeRange,
  bucketMinutes,
  series: z
    .array(
      z.object({
        bucket: bucketTime,
        queueName: z.string(),
        pushRequests: count,
        pushMessages: count,
        popMessages: count,
        popEmpty: count,
        ackRequests: count,
        ackSuccess: count,
        ackFailed: count,
        transactions: count,
        partitionsCreated: count.describe("Of those that still exist"),
        partitionsDeleted: count,
        partitionCount: count.describe("Now"),
        avgLagMs: z.number(),
        maxLagMs: z.number(),
        pushPerSecond: rate,
        popPerSecond: rate,
        ackPerSecond: rate,
        emptyPerSecond: rate,
        parkedCount: count.describe("Most consumers that waited at once"),
      }),
    )
    .describe("The oldest first"),
  queues: z.array(z.string()),
});

const queueParkedReplicas = z.object({
  timeRange,
  bucketMinutes,
  series: z.array(
    z.object({
      bucket: bucketTime,
      queueName: z.string(),
      hostname: z.string(),
      workerId: count,
      parkedCount: count,
    }),
  ),
  replicas: z.array(z.object({ hostname: z.string(), workerId: count })),
});

const cache = { diskReads: count, cacheHits: count };
const ratio = z.number().describe("Percent");
const seconds = bucketTime.nullable();
const bytes = z.string().describe("For people, such as 8192 bytes");

const postgresStats = z.object({
  timestamp: time,
  database: z.string(),
  databaseCache: z.object({ database: z.string(), ...cache, cacheHitRatio: ratio }),
  tableCache: z.array(z.object({ schema: z.string(), table: z.string(), ...cache, cacheHitRatio: ratio })),
  indexCache: z.array(
    z.object({ schema: z.string(), table: z.string(), index: z.string(), ...cache, cacheHitRatio: ratio }),
  ),
  cacheSummary: z.object({
    tables: z.object({ ...cache, hitRatio: ratio }),
    indexes: z.object({ ...cache, hitRatio: ratio }),
  }),
  deadTuples: z.array(
    z.object({
      schema: z.string(),
      table: z.string(),
      deadTuples: count,
      liveTuples: count,
      deadPercentage: ratio,
      lastVacuum: seconds,
      lastAutovacuum: seconds,
    }),
  ),
  hotUpdates: z.array(
    z.object({
      schema: z.string(),
      table: z.string(),
      totalUpdates: count,
      hotUpdates: count,
      hotUpdatePercentage: ratio,
    }),
  ),
  activeQueries: z.array(
    z.object({
      pid: count,
      duration: z.number().nullable().describe("Seconds"),
      state: z.string().nullable(),
      query: z.string().nullable(),
      waitEventType: z.string().nullable(),
      waitEvent: z.string().nullable(),
    }),
  ),
  autovacuumStatus: z.array(
    z.object({
      table: z.string(),
      lastAutovacuum: seconds,
      deadTuples: count,
      autovacuumCount: count,
      autoanalyzeCount: count,
    }),
  ),
  bufferConfig: z.object({ sharedBuffers: count.describe("Blocks"), sharedBuffersSize: z.string() }),
  bufferUsage: z
    .array(z.object({ object: z.string(), bufferedSize: bytes, bufferedBytes: count, percentOfCache: ratio }))
    .describe("Empty unless the extension pg_buffercache is installed and may be read"),
  tableSizes: z.array(
    z.object({
      table: z.string(),
      totalSize: bytes,
      totalSizeBytes: count,
      tableSize: bytes,
      tableSizeBytes: count,
      indexSize: bytes,
      indexSizeBytes: count,
    }),
  ),
});

export function analyticsRoutes(analytics: AnalyticsRoutes): Route[] {
  const facts = {
    method: "GET",
    access: "read",
    tag: "Analytics",
    followedEveryMs: FOLLOWED_EVERY_MS,
  } as const;
  return [
    route({
      ...facts,
      path: "/api/v1/analytics/system-metrics",
      summary: "Memory, processor time and connections of every worker",
      query: workerQuery,
      answers: { 200: { summary: "Series by worker", shape: systemMetrics } },
      handle: (_request, { query }) => analytics.systemMetrics(query),
    }),
    route({
      ...facts,
      path: "/api/v1/analytics/worker-metrics",
      summary: "What workers did",
      query: workerQuery,
      answers: { 200: { summary: "A series, and its sums by worker and by queue", shape: workerMetrics } },
      handle: (_request, { query }) => analytics.workerMetrics(query),
    }),
    route({
      ...facts,
      path: "/api/v1/analytics/queue-lag",
      summary: "How old messages were when they were delivered",
      query: queueQuery,
      answers: { 200: { summary: "By queue, the newest bucket first", shape: queueLag } },
      handle: (_request, { query }) => analytics.queueLag(query),
    }),
    route({
      ...facts,
      path: "/api/v1/analytics/queue-ops",
      summary: "What was done with queues",
      query: queueQuery,
      answers: { 200: { summary: "A series by queue", shape: queueOps } },
      handle: (_request, { query }) => analytics.queueOps(query),
    }),
    route({
      ...facts,
      path: "/api/v1/analytics/queue-parked-replicas",
      summary: "How many consumers waited at which worker",
      query: queueQuery,
      answers: {
        200: { summary: "A series by queue and worker, the oldest first", shape: queueParkedReplicas },
      },
      handle: (_request, { query }) => analytics.queueParkedReplicas(query),
    }),
    route({
      ...facts,
      path: "/api/v1/analytics/postgres-stats",
      summary: "How PostgreSQL is doing with Queen's tables",
      answers: { 200: { summary: "From PostgreSQL's own statistics", shape: postgresStats } },
      handle: () => analytics.postgresStats(),
    }),
  ];
}
