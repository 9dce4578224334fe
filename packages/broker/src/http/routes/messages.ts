/** The routes of single messages. */
import { z } from "zod";
import { MESSAGE_STATUSES } from "../../control/messages.ts";
import type { MessageRoutes } from "../messages.ts";
import { integer, moment, named, oneOf, text } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, id, nextPage, pagination, payload, time, timeOrNull, traceparent } from "./shapes.ts";

const MESSAGE = "/api/v1/messages/:partitionId/:transactionId";
const PER_PAGE_MAX = 1_000;

const status = z.enum(MESSAGE_STATUSES);
const modeType = z.enum(["queue", "bus", "hybrid", "none"]);

const place = {
  id,
  transactionId: z.string(),
  partitionId: id,
  queuePath: z.string(),
  queue: z.string(),
  partition: z.string(),
  status,
  createdAt: time,
};

const described = {
  ...place,
  traceId: z.string().nullable(),
  producerSub: z.string().nullable(),
  traceparent,
  namespace: z.string(),
  task: z.string(),
  leaseExpiresAt: timeOrNull,
};

const listed = z.object({
  ...described,
  isEncrypted: z.boolean(),
  queueStatus: z.enum(["pending", "processing", "completed"]).nullable(),
  busStatus: z.object({ consumedBy: count, totalGroups: count }),
  queuePriority: count,
});

const whole = z.object({
  ...described,
  payload,
  isEncrypted: z.boolean().describe("It is stored encrypted"),
  payloadError: z.string().nullable().describe("Why `payload` is shown encrypted, as it is stored"),
  errorMessage: z.string().nullable(),
  retryCount: count.nullable(),
  queueConfig: z.object({
    leaseTime: count,
    retryLimit: count,
    retryDelay: count,
    ttl: count,
    priority: count,
  }),
  mode: z.object({
    hasQueueMode: z.boolean(),
    busGroupsCount: count,
    consumedByGroups: count,
    type: modeType,
  }),
  consumerGroups: z.array(z.object({ name: z.string(), consumed: z.boolean(), leaseExpiresAt: timeOrNull })),
});

const act = {
  success: z.literal(true),
  partitionId: id,
  transactionId: z.string(),
  consumerGroup: z.string(),
  messageId: id,
};

const actBody = z.looseObject({
  consumerGroup: z.string().nullable().optional(),
  error: z.string().nullable().optional(),
});

export function messageRoutes(messages: MessageRoutes): Route[] {
  const facts = { tag: "Messages" } as const;
  const page = (limitDefault: number) => ({
    partition: named("Of this partition"),
    status: oneOf("In this state", MESSAGE_STATUSES),
    limit: integer("Messages at most", { fallback: limitDefault, min: 1, max: PER_PAGE_MAX }),
    offset: integer("Messages to skip", { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
    page: text("The `nextPage` of the answer before"),
  });
  const which = { id: text("The message's id, where several have the transactionId") };
  const actQuery = { ...which, consumerGroup: named("The group; queue mode if absent") };
  return [
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/messages",
      access: "read",
      summary: "Messages without payloads, the newest first, of the last hour unless `from` says otherwise",
      query: {
        queue: named("Of this queue"),
        transactionId: named(
          "With this transactionId, of any age; searched for in steps, `nextPage` goes on",
        ),
        ns: text("Of queues of this namespace"),
        task: text("Of queues of this task"),
        from: moment("Stored then or later"),
        to: moment("Stored then or earlier, to the end of its minute"),
        ...page(200),
      },
      answers: {
        200: {
          summary: "A page",
          shape: z.object({
            messages: z.array(listed),
            mode: z.object({ hasQueueMode: z.boolean(), busGroupsCount: count, type: modeType }),
            nextPage,
            search: z
              .object({ searched: count, total: count })
              .nullable()
              .describe(
                "With `transactionId`: how many messages were looked at so far, and how many there are",
              ),
            pagination,
          }),
        },
      },
      handle: (_request, { query }) => messages.list(query),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/status/queues/:queue/messages",
      access: "read",
      summary: "A queue's messages of any age, the newest first",
      query: page(50),
      answers: {
        200: {
          summary: "A page",
          headers: { "Queen-Next-Page": "The `page` of the next request, where there is more" },
          shape: z.array(z.object(place)),
        },
      },
      handle: (request, { query }) => messages.ofQueue(request, query),
    }),
    route({
      ...facts,
      method: "GET",
      path: MESSAGE,
      access: "read",
      summary: "One message with its payload and its state per group",
      query: which,
      answers: { 200: { summary: "The message", shape: whole } },
      handle: (request, { query }) => messages.read(request, query.id),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: MESSAGE,
      access: "write",
      summary: "Takes a message out of the log for everybody",
      query: which,
      answers: {
        200: {
          summary: "Whether it was there",
          shape: z.object({
            success: z.boolean(),
            partitionId: id,
            transactionId: z.string(),
            message: z.string(),
          }),
        },
      },
      handle: (request, { query }) => messages.delete(request, query.id),
    }),
    route({
      ...facts,
      method: "POST",
      path: `${MESSAGE}/retry`,
      access: "write",
      summary: "Has a group get the message again",
      query: actQuery,
      body: actBody,
      answers: {
        200: {
          summary: "What was done, and which message to look for",
          shape: z.object({
            ...act,
            action: z.enum(["requeued", "pending", "leased", "redelivered", "copied"]),
          }),
        },
      },
      handle: (request, { query, body }) => messages.retry(request, query, body),
    }),
    route({
      ...facts,
      method: "POST",
      path: `${MESSAGE}/dlq`,
      access: "write",
      summary: "Moves the message to a group's dead letters",
      query: actQuery,
      body: actBody,
      answers: { 200: { summary: "It was moved", shape: z.object(act) } },
      handle: (request, { query, body }) => messages.bury(request, query, body),
    }),
  ];
}
