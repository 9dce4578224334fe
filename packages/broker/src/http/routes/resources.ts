/** The routes that show queues, partitions and their figures. */
import { z } from "zod";
import { LANE_SORTS } from "../../control/figures.ts";
import { integer, oneOf, queueName, text } from "../parameters.ts";
import { QUEUE_SORTS, type ResourceRoutes } from "../resources.ts";
import { type Route, route } from "../route.ts";
import { count, id, pagination, time, timeOrNull } from "./shapes.ts";

const RESOURCES = "/api/v1/resources";
const STATUS = "/api/v1/status";
const PER_PAGE_MAX = 10_000;
const LANES_PER_PAGE = 1_000;
const TOTAL = { "Queen-Total": "How many there are in all" };

const sums = { total: count, pending: count.describe("Without what is processing"), processing: count };
const counts = z.object({
  ...sums,
  total: count.describe("In the log; the places of deleted messages count"),
  completed: count.describe("Neither pending nor processing"),
  failed: count.describe("Always 0: a message that failed is pending again or a dead letter"),
  deadLetter: count,
});

const identity = { id, name: z.string(), namespace: z.string(), task: z.string(), createdAt: time };
const queue = z.object({ ...identity, partitions: count, messages: z.object(sums) });

const activity = {
  lagSeconds: count.describe("Age of the oldest message that one of its groups has not finished"),
  inPerSecond: z.number().describe("Messages stored, in its last finished minute"),
  outPerSecond: z.number().describe("Messages finished, in its last finished minute"),
  deadLetters: count,
};

const lane = { id, name: z.string(), createdAt: time };
const laneTimes = {
  oldestMessage: timeOrNull,
  newestMessage: timeOrNull,
  oldestPending: timeOrNull.describe("When the oldest unfinished message was stored"),
  retrying: count.describe("Unfinished messages that failed before"),
};
const lanePagination = z.object({ limit: count, offset: count, total: count.describe("Partitions in all") });

const group = { queues: count, partitions: count, messages: z.object(sums) };
const spread = z.object({ avg: z.number(), median: z.number(), min: z.number(), max: z.number() });

export function resourceRoutes(resources: ResourceRoutes): Route[] {
  const facts = { method: "GET", access: "read", tag: "Queues" } as const;
  const paged = (what: string, fallback: number) => ({
    limit: integer(`${what} at most`, { fallback, min: 1, max: PER_PAGE_MAX }),
    offset: integer(`${what} to skip`, { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
  });
  const filter = { namespace: text("Of this namespace"), task: text("Of this task") };
  const search = text("A part of the name, in any case");
  const lanes = {
    search,
    sort: oneOf(
      "By name, by unfinished messages (most first), by the oldest unfinished message, or by dead letters and retries",
      LANE_SORTS,
    ),
    ...paged("Partitions", LANES_PER_PAGE),
  };
  return [
    route({
      ...facts,
      path: `${RESOURCES}/queues`,
      summary: "Queues with their figures, the newest first",
      query: {
        search,
        sort: oneOf("`newest` unless said; by name, or the largest figure first", QUEUE_SORTS),
        ...filter,
        ...paged("Queues", PER_PAGE_MAX),
      },
      answers: {
        200: {
          summary: "A page",
          headers: TOTAL,
          shape: z.object({ queues: z.array(queue.extend(activity)) }),
        },
      },
      handle: (_request, { query }) => resources.queues(query),
    }),
    route({
      ...facts,
      path: `${RESOURCES}/queues/:queue`,
      summary: "A queue with a page of its partitions and the totals over all of them",
      query: lanes,
      answers: {
        200: {
          summary: "The queue",
          headers: TOTAL,
          shape: z.object({
            ...identity,
            partitions: z.array(z.object({ ...lane, stats: counts, ...laneTimes })),
            totals: counts,
            pagination: lanePagination,
          }),
        },
      },
      handle: (request, { query }) => resources.queue(request, query),
    }),
    route({
      ...facts,
      path: `${RESOURCES}/partitions`,
      summary: "Partitions of a queue or of all, with their figures",
      query: { queue: queueName("Of this queue"), ...lanes },
      answers: {
        200: {
          summary: "A page",
          headers: TOTAL,
          shape: z.object({
            partitions: z.array(
              z.object({
                ...lane,
                queue: z.string(),
                messages: counts,
                ...laneTimes,
                lastActivity: timeOrNull.describe("When it was last pushed to or consumed"),
              }),
            ),
            total: count,
            pagination,
          }),
        },
      },
      handle: (_request, { query }) => resources.partitions(query),
    }),
    route({
      ...facts,
      path: "/api/v1/queues/:queue/partitions/:partition",
      summary: "A partition with the places of its consumer groups",
      answers: {
        200: {
          summary: "From offsets",
          shape: z.object({
            ...lane,
            queue: z.string(),
            newestMessage: timeOrNull,
            startOffset: count.describe("The first message that the log holds"),
            nextOffset: count.describe("The next message that is stored"),
            deadLetter: count,
            consumerGroups: z.array(
              z.object({
                name: z.string(),
                offset: count.describe("The first message that it has not finished"),
                pending: count,
                finishedAhead: z
                  .array(z.tuple([count, count]))
                  .describe("Offsets behind it that are finished, from and to; the first hundred"),
                leasedUntil: count.nullable().describe("The offset after the last one under a lease"),
                leaseExpiresAt: timeOrNull,
              }),
            ),
          }),
        },
      },
      handle: (request) => resources.lane(request),
    }),
    route({
      ...facts,
      path: `${RESOURCES}/namespaces`,
      summary: "Namespaces with the sums over their queues",
      answers: {
        200: {
          summary: "By name",
          shape: z.object({ namespaces: z.array(z.object({ namespace: z.string(), ...group })) }),
        },
      },
      handle: () => resources.namespaces(),
    }),
    route({
      ...facts,
      path: `${RESOURCES}/tasks`,
      summary: "Tasks with the sums over their queues",
      answers: {
        200: {
          summary: "By name",
          shape: z.object({ tasks: z.array(z.object({ task: z.string(), ...group })) }),
        },
      },
      handle: () => resources.tasks(),
    }),
    route({
      ...facts,
      tag: "Status",
      path: `${RESOURCES}/overview`,
      summary: "The sums over everything",
      answers: {
        200: {
          summary: "As of now",
          shape: z.object({
            queues: count,
            partitions: count,
            namespaces: count,
            tasks: count,
            messages: counts,
            lag: z.object({
              time: spread.describe("Seconds that the oldest unfinished message waits, over all groups"),
              offset: spread.describe("Unfinished messages, over all groups"),
            }),
            throughput: z.object({ ingestedPerSecond: z.number(), processedPerSecond: z.number() }),
            timestamp: time,
            statsAge: count.describe("Seconds since the figures were read"),
          }),
        },
      },
      handle: () => resources.overview(),
    }),
    route({
      ...facts,
      tag: "Status",
      path: `${STATUS}/queues`,
      summary: "Queues with their figures, the newest first; `pending` is with what is processing",
      query: { search, ...filter, ...paged("Queues", 100) },
      answers: {
        200: {
          summary: "A page",
          headers: TOTAL,
          shape: z.object({
            queues: z.array(
              queue.extend({ messages: z.object({ ...sums, pending: count.describe("With processing") }) }),
            ),
            pagination,
          }),
        },
      },
      handle: (_request, { query }) => resources.statusQueues(query),
    }),
    route({
      ...facts,
      tag: "Status",
      path: `${STATUS}/queues/:queue`,
      summary: "A queue with its options, a page of its partitions and the totals over all of them",
      query: lanes,
      answers: {
        200: {
          summary: "The queue",
          headers: TOTAL,
          shape: z.object({
            queue: z.object({
              ...identity,
              priority: count,
              options: z
                .record(z.string(), z.union([z.number(), z.boolean(), z.null()]))
                .describe("All of them; null: nobody has said it"),
              config: z.object({
                leaseTime: count,
                retryLimit: count,
                retryDelay: count,
                ttl: count,
                maxQueueSize: count,
                deadLetterQueue: z.boolean(),
              }),
            }),
            partitions: z.array(
              z.object({
                ...lane,
                messages: counts,
                stats: counts,
                cursor: z.object({
                  totalConsumed: count.describe("Offsets that are finished"),
                  batchesConsumed: count.describe("Always 0: batches are not counted"),
                }),
                lastActivity: timeOrNull,
                ...laneTimes,
              }),
            ),
            totals: counts.extend({ messages: counts }),
            pagination: lanePagination,
          }),
        },
      },
      handle: (request, { query }) => resources.statusQueue(request, query),
    }),
    route({
      ...facts,
      tag: "Status",
      method: "POST",
      path: "/api/v1/stats/refresh",
      access: "admin",
      summary:
        "Reads the figures of all queues anew; nothing needs it, because figures are made when asked for",
      answers: {
        200: {
          summary: "How much was read",
          shape: z.object({
            partition: z.object({
              partitionsUpdated: count,
              dirtyPartitionsScanned: count,
              partitionsSkippedByWatermark: count,
              newPartitions: count,
            }),
            queue: z.object({ queuesUpdated: count }),
            namespace: z.object({ namespacesUpdated: count }),
            task: z.object({ tasksUpdated: count }),
            system: z.object({ systemUpdated: count }),
            cleanup: z.object({ orphanedDeleted: count }),
          }),
        },
      },
      handle: () => resources.refresh(),
    }),
  ];
}
