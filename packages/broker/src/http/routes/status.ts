/** The routes of the status: throughput, and what there is now. */
import { z } from "zod";
import { moment, oneOf, queueName, text } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { INTERVALS, type StatusRoutes } from "../status.ts";
import { bucketMinutes, bucketTime, FOLLOWED_EVERY_MS, timeQuery, timeRange } from "./analytics.ts";
import { count, id, time } from "./shapes.ts";

const scopeQuery = {
  queue: queueName("Only this queue"),
  namespace: text("Only queues of this namespace"),
  task: text("Only queues of this task"),
};

const byOperation = z.object({ push: z.number(), pop: z.number(), ack: z.number() });

const status = z.object({
  timeRange,
  bucketMinutes,
  pointCount: count,
  statsAge: count.describe("Seconds since a worker wrote its figures; -1: none ever did"),
  throughput: z
    .array(
      z.object({
        timestamp: bucketTime,
        ingested: count,
        processed: count,
        popMessages: count,
        ingestedPerSecond: z.number(),
        processedPerSecond: z.number(),
        popPerSecond: z.number(),
        avgLagMs: z.number().describe("Age of messages at their delivery"),
        maxLagMs: z.number(),
        avgEventLoopLagMs: z.number(),
        maxEventLoopLagMs: z.number(),
        minFreeSlots: count,
        dbErrors: count,
        ackFailed: count,
        dlqCount: count,
        queenCpuUserPct: z.number().nullable(),
        queenCpuSysPct: z.number().nullable(),
        queenRssMb: z.number().nullable(),
        dbPoolActive: z.number().nullable(),
        dbPoolIdle: z.number().nullable(),
        dbPoolSize: z.number().nullable(),
      }),
    )
    .describe("The newest first"),
  queues: z
    .array(
      z.object({
        id,
        name: z.string(),
        namespace: z.string(),
        task: z.string(),
        partitions: count,
        totalConsumed: count,
      }),
    )
    .describe("Those that hold messages"),
  messages: z.object({
    total: count.describe("In the log"),
    pending: count.describe("Not finished and not leased"),
    processing: count.describe("Leased"),
    completed: count,
    failed: count.describe("Not finished, and failed before"),
    deadLetter: count,
    requests: byOperation.describe("In the range"),
    batchEfficiency: byOperation.describe("Messages per request in the range"),
  }),
  leases: z.object({
    active: count,
    partitionsWithLeases: count,
    totalBatchSize: count.describe("Messages under leases"),
    totalAcked: count.describe("Those of them that are finished"),
  }),
  deadLetterQueue: z.object({
    totalMessages: count,
    affectedPartitions: count,
    topErrors: z.array(z.object({ error: z.string(), count })).describe("The five most frequent"),
  }),
  workers: z.array(
    z.object({
      hostname: z.string(),
      workerId: count,
      avgEventLoopLagMs: z.number(),
      maxEventLoopLagMs: z.number(),
      freeSlots: count,
      dbConnections: count,
      jobQueueSize: count,
      messagesProcessed: count,
    }),
  ),
  errors: z.object({ dbErrors: count, ackFailed: count, dlqMessages: count }),
});

const statusAnalytics = z.object({
  dataPoints: z
    .array(z.object({ timestamp: bucketTime, messages: count }))
    .describe("Messages stored, the oldest interval first; intervals without any figure are left out"),
  interval: z.enum(INTERVALS),
  from: time,
  to: time,
});

export function statusRoutes(handlers: StatusRoutes): Route[] {
  const facts = { method: "GET", access: "read", tag: "Status", followedEveryMs: FOLLOWED_EVERY_MS } as const;
  return [
    route({
      ...facts,
      path: "/api/v1/status",
      summary: "Throughput, messages, leases, dead letters, workers and errors",
      query: { ...timeQuery, ...scopeQuery },
      answers: { 200: { summary: "Of all queues, or of those that the filters name", shape: status } },
      handle: (_request, { query }) => handlers.status(query),
    }),
    route({
      ...facts,
      path: "/api/v1/status/analytics",
      summary: "Messages stored by minute, hour or day",
      query: {
        interval: oneOf("By minute, hour (the default) or day", INTERVALS),
        from: moment("Start; a day before the end unless said"),
        to: moment("End; now unless said"),
        ...scopeQuery,
      },
      answers: { 200: { summary: "A series", shape: statusAnalytics } },
      handle: (_request, { query }) => handlers.analytics(query),
    }),
  ];
}
