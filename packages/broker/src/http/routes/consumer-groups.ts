/** The routes of consumer groups. */
import { z } from "zod";
import type { ConsumerGroupRoutes } from "../consumer-groups.ts";
import { flag, integer, moment, named } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { bucketMinutes, bucketTime, FOLLOWED_EVERY_MS, timeQuery, timeRange } from "./analytics.ts";
import { count, id, time, timeOrNull } from "./shapes.ts";

const LANES_PER_PAGE_MAX = 10_000;
const LAG_SECONDS_DEFAULT = 3_600;
const PATH = "/api/v1/consumer-groups";

const group = z.object({
  name: z.string(),
  topics: z.array(z.string()),
  queueName: z.string(),
  members: count.describe("Partitions that it has met"),
  partitionsWithLag: count,
  totalLag: count,
  maxTimeLag: count.describe("Seconds"),
  state: z.enum(["Stable", "Lagging", "Dead"]),
  subscriptionMode: z.string(),
  subscriptionTimestamp: timeOrNull,
  subscriptionCreatedAt: time,
});

const laggingLane = z.object({
  consumer_group: z.string(),
  queue_name: z.string(),
  partition_name: z.string(),
  partition_id: id,
  worker_id: z.string().nullable(),
  offset_lag: count,
  time_lag_seconds: count,
  lag_hours: z.number(),
  oldest_unconsumed_at: time,
  last_consumed_at: timeOrNull,
});

const place = z.object({
  partition: z.string(),
  workerId: z.string().nullable(),
  lastConsumedAt: timeOrNull,
  totalConsumed: count,
  offsetLag: count,
  timeLagSeconds: count,
  leaseActive: z.boolean(),
});

const deleted = {
  success: z.literal(true),
  consumerGroup: z.string(),
  deletedPartitions: count,
  metadataDeleted: z.boolean(),
};

const preview = z.object({
  targetTimestamp: timeOrNull.describe("Null: the end"),
  partitionsMoved: count,
  deliveredAgain: count.describe("Messages that the group has finished and would get again"),
  skipped: count.describe("Messages that the group has not finished and would not get"),
  leasesEnded: count,
});

const seekBody = z.looseObject({
  toEnd: z.unknown().optional().describe("`true`: behind everything"),
  timestamp: z.string().nullable().optional().describe("The first message stored then or later is the next"),
});

export function consumerGroupRoutes(groups: ConsumerGroupRoutes): Route[] {
  const facts = { tag: "Consumer groups" } as const;
  const limit = integer("Partitions at most", {
    fallback: LANES_PER_PAGE_MAX,
    min: 1,
    max: LANES_PER_PAGE_MAX,
  });
  const deleteQuery = { deleteMetadata: flag("Forget where the group starts, too", true) };
  return [
    route({
      ...facts,
      method: "GET",
      path: PATH,
      access: "read",
      summary: "Every group of every queue, with its lag",
      query: { queue: named("Groups of this queue only") },
      answers: { 200: { summary: "One entry per group and queue", shape: z.array(group) } },
      handle: (_request, { query }) => groups.list(query.queue),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/lagging`,
      access: "read",
      summary: "Partitions whose oldest unfinished message waits longest",
      query: {
        minLagSeconds: integer("Only those that wait at least so long", {
          fallback: LAG_SECONDS_DEFAULT,
          min: 0,
          max: Number.MAX_SAFE_INTEGER,
        }),
        limit,
      },
      answers: { 200: { summary: "The longest first", shape: z.array(laggingLane) } },
      handle: (_request, { query }) => groups.lagging(query.minLagSeconds, query.limit),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/:group`,
      access: "read",
      summary: "The group's places, by queue",
      query: {
        queue: named("In this queue only"),
        limit,
        offset: integer("Partitions to skip", { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
      },
      answers: {
        200: {
          summary: "Places by queue; empty where there is no such group",
          headers: { "Queen-Total": "Partitions in all" },
          shape: z.record(z.string(), z.object({ partitions: z.array(place) })),
        },
      },
      handle: (request, { query }) => groups.detail(request, query),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: `${PATH}/:group`,
      access: "admin",
      summary: "Forgets the group in all queues",
      query: deleteQuery,
      answers: { 200: { summary: "It is gone", shape: z.object(deleted) } },
      handle: (request, { query }) => groups.delete(request, query.deleteMetadata),
    }),
    route({
      ...facts,
      method: "POST",
      path: `${PATH}/:group/subscription`,
      access: "write",
      summary: "Says where the group starts in partitions it has not met",
      body: z.looseObject({
        subscriptionTimestamp: z
          .string("Missing subscriptionTimestamp in request body")
          .min(1, "Missing subscriptionTimestamp in request body"),
      }),
      answers: {
        200: {
          summary: "The new start",
          shape: z.object({
            success: z.literal(true),
            consumerGroup: z.string(),
            newTimestamp: time,
            rowsUpdated: count.describe("Queues"),
          }),
        },
      },
      handle: (request, { body }) => groups.subscribe(request, body.subscriptionTimestamp),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: `${PATH}/:group/queues/:queue`,
      access: "admin",
      summary: "Forgets the group in one queue",
      query: deleteQuery,
      answers: { 200: { summary: "It is gone", shape: z.object({ ...deleted, queueName: z.string() }) } },
      handle: (request, { query }) => groups.deleteInQueue(request, query.deleteMetadata),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/:group/queues/:queue/lag`,
      access: "read",
      summary: "How far the group was behind, over time",
      query: timeQuery,
      followedEveryMs: FOLLOWED_EVERY_MS,
      answers: {
        200: {
          summary: "The oldest first; stretches of which nothing is known are left out",
          shape: z.object({
            timeRange,
            bucketMinutes,
            series: z.array(
              z.object({
                bucket: bucketTime,
                messages: count.describe("Most unfinished ones that were seen in the bucket"),
                oldestSeconds: count.describe("The greatest age of the oldest of them"),
              }),
            ),
          }),
        },
      },
      handle: (request, { query }) => groups.lagSeries(request, query),
    }),
    ...[`${PATH}/:group/queues/:queue/seek`, `${PATH}/:group/queues/:queue/partitions/:partition/seek`].map(
      (path) =>
        route({
          ...facts,
          method: "GET",
          path,
          access: "read",
          summary: path.includes(":partition")
            ? "What a seek in one partition would do"
            : "What a seek would do; nothing is moved",
          query: {
            toEnd: flag("Behind everything"),
            timestamp: moment("The first message stored then or later is the next"),
          },
          answers: { 200: { summary: "Counted from offsets", shape: preview } },
          handle: (request, { query }) => groups.previewSeek(request, query),
        }),
    ),
    route({
      ...facts,
      method: "POST",
      path: `${PATH}/:group/queues/:queue/seek`,
      access: "write",
      summary: "Moves the group in all partitions of a queue, to the end or to a time",
      body: seekBody,
      answers: {
        200: {
          summary: "Where it is now",
          shape: z.object({
            success: z.literal(true),
            consumerGroup: z.string(),
            queueName: z.string(),
            seekToEnd: z.boolean(),
            targetTimestamp: timeOrNull,
            partitionsUpdated: count,
          }),
        },
      },
      handle: (request, { body }) => groups.seekQueue(request, body),
    }),
    route({
      ...facts,
      method: "POST",
      path: `${PATH}/:group/queues/:queue/partitions/:partition/seek`,
      access: "write",
      summary: "Moves the group in one partition; without a body to the end",
      body: seekBody,
      answers: {
        200: {
          summary: "Where it is now",
          shape: z.object({
            success: z.literal(true),
            consumerGroup: z.string(),
            queueName: z.string(),
            partitionName: z.string(),
            updated: z.literal(true),
            cursorMovedTo: z.string().nullable().describe("The last message before the new place"),
          }),
        },
      },
      handle: (request, { body }) => groups.seekPartition(request, body),
    }),
  ];
}
