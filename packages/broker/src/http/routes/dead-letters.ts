/** The routes of dead letters. */
import { z } from "zod";
import type { DeadLetterRoutes } from "../dead-letters.ts";
import { integer, moment, named, text } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, id, nextPage, pagination, payload, time, traceparent } from "./shapes.ts";

const PER_PAGE_MAX = 1_000;

const letter = z.object({
  id,
  transactionId: z.string(),
  traceId: z.string().nullable(),
  producerSub: z.string().nullable(),
  traceparent,
  data: payload,
  partitionId: id,
  queue: z.string(),
  partition: z.string(),
  consumerGroup: z.string(),
  errorMessage: z.string(),
  retryCount: count,
  createdAt: time,
  failedAt: time,
  deadLetterId: id,
  isEncrypted: z.boolean().describe("It is stored encrypted"),
  payloadError: z.string().nullable().describe("Why `data` is shown encrypted, as it is stored"),
});

const chosen = z.looseObject({
  ids: z.array(z.string()).min(1).optional().describe("deadLetterIds, or ids of messages"),
  queue: z.string().nullable().optional(),
  consumerGroup: z.string().nullable().optional(),
  partition: z.string().nullable().optional(),
  error: z.string().nullable().optional().describe("The whole error message"),
  from: z.string().nullable().optional(),
  to: z.string().nullable().optional(),
  all: z.boolean().optional().describe("Without a filter, all of them are meant only if this says so"),
  limit: z.int().min(1).optional(),
});

export function deadLetterRoutes(letters: DeadLetterRoutes): Route[] {
  const facts = { tag: "Dead letters" } as const;
  return [
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/dlq",
      access: "read",
      summary: "Dead letters, the newest failure first",
      query: {
        queue: named("Of this queue"),
        consumerGroup: named("Of this group"),
        partition: named("Of this partition"),
        error: text("With exactly this error"),
        from: moment("Failed then or later"),
        to: moment("Failed then or earlier"),
        limit: integer("Letters at most", { fallback: 100, min: 1, max: PER_PAGE_MAX }),
        offset: integer("Letters to skip", { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
        page: text("The `nextPage` of the answer before"),
      },
      answers: {
        200: {
          summary: "A page",
          shape: z.object({ messages: z.array(letter), total: count, nextPage, pagination }),
        },
      },
      handle: (_request, { query }) => letters.list(query),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/dlq/errors",
      access: "read",
      summary: "Dead letters by their error, the most frequent first",
      query: {
        queue: named("Of this queue"),
        consumerGroup: named("Of this group"),
        limit: integer("Errors at most", { fallback: 100, min: 1, max: PER_PAGE_MAX }),
      },
      answers: {
        200: {
          summary: "One entry per error message",
          shape: z.object({
            errors: z.array(
              z.object({
                error: z.string(),
                count,
                queues: count.describe("In so many queues"),
                partitions: count,
                firstFailedAt: time,
                lastFailedAt: time,
              }),
            ),
          }),
        },
      },
      handle: (_request, { query }) => letters.errors(query),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/dlq/requeue",
      access: "write",
      summary: "Makes dead letters messages again, at the end of their partitions",
      bytes: chosen,
      answers: {
        200: {
          summary: "The new messages, and how many letters are left",
          shape: z.object({
            success: z.literal(true),
            requeued: count,
            remaining: count,
            messages: z.array(z.object({ deadLetterId: id, id, partitionId: id })),
          }),
        },
      },
      handle: (request) => letters.requeue(request),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/dlq/purge",
      access: "write",
      summary: "Deletes dead letters",
      bytes: chosen,
      answers: {
        200: {
          summary: "How many were deleted, and how many are left",
          shape: z.object({ success: z.literal(true), purged: count, remaining: count }),
        },
      },
      handle: (request) => letters.purge(request),
    }),
  ];
}
