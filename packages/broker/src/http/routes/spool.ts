/** The routes of the spool. */
import { z } from "zod";
import { integer } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import type { SpoolRoutes } from "../spool.ts";
import { count, pagination, payload, time } from "./shapes.ts";

const PER_PAGE_MAX = 1_000;

const rejected = z.object({
  id: z.string(),
  queue: z.string(),
  partition: z.string(),
  transactionId: z.string().nullable(),
  traceId: z.string().nullable(),
  producerSub: z.string().nullable(),
  traceparent: z.string().optional(),
  data: payload,
  reason: z.string(),
  spooledAt: time,
  rejectedAt: time,
});

const chosen = z.looseObject({
  ids: z.array(z.string()).min(1).optional().describe("Of rejected messages"),
  all: z.boolean().optional(),
});

export function spoolRoutes(spool: SpoolRoutes): Route[] {
  const facts = { access: "admin", tag: "System" } as const;
  return [
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/system/spool",
      summary: "Messages on the broker's disk: how many wait, and which the database refused",
      query: {
        limit: integer("Rejected messages at most", { fallback: 100, min: 1, max: PER_PAGE_MAX }),
        offset: integer("Rejected messages to skip", { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
      },
      answers: {
        200: {
          summary: "Of this broker, with a page of rejected messages, the oldest first",
          shape: z.object({
            enabled: z.boolean(),
            folder: z.string().nullable(),
            databaseAway: z.boolean().describe("Whether the worker that answers sends pushes to the disk"),
            healthy: z.boolean().describe("Whether the last write went well"),
            draining: z.boolean(),
            pending: count.describe("Messages that wait"),
            bytes: count,
            files: count,
            bytesMax: count,
            damaged: count.describe("Pieces of damaged bytes found at the start; copies are in quarantine/"),
            rejectedCount: count,
            rejectedBytes: count,
            rejected: z.array(rejected),
            pagination,
          }),
        },
      },
      handle: (_request, { query }) => spool.show(query),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/system/spool/retry",
      summary: "Tries rejected messages again, at the end of their partitions",
      body: chosen,
      answers: {
        200: {
          summary: "They wait again",
          shape: z.object({ success: z.literal(true), retried: count, remaining: count }),
        },
      },
      handle: (_request, { body }) => spool.retry(body),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/system/spool/discard",
      summary: "Deletes rejected messages",
      body: chosen,
      answers: {
        200: {
          summary: "They are gone",
          shape: z.object({ success: z.literal(true), discarded: count, remaining: count }),
        },
      },
      handle: (_request, { body }) => spool.discard(body),
    }),
  ];
}
