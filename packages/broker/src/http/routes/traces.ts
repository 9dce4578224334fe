/** The routes of traces. */
import { z } from "zod";
import { integer } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import type { TraceRoutes } from "../traces.ts";
import { count, id, pagination, payload, time } from "./shapes.ts";

const PATH = "/api/v1/traces";
const PER_PAGE_MAX = 1_000;

const trace = {
  id,
  event_type: z.string(),
  data: z.unknown().describe("Any JSON, as the consumer sent it"),
  consumer_group: z.string(),
  worker_id: z.string().describe("The worker that took the trace"),
  created_at: time,
  trace_names: z.array(z.string()),
};

export function traceRoutes(traces: TraceRoutes): Route[] {
  const facts = { tag: "Traces" } as const;
  const page = (limitDefault: number) => ({
    limit: integer("Entries at most", { fallback: limitDefault, min: 1, max: PER_PAGE_MAX }),
    offset: integer("Entries to skip", { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER }),
  });
  return [
    route({
      ...facts,
      method: "POST",
      path: PATH,
      access: "write",
      summary: "Notes something about a message",
      bytes: z.looseObject({
        transactionId: z.string(),
        partitionId: id,
        data: z.unknown(),
        consumerGroup: z.string().nullable().optional().describe("Queue mode if absent"),
        eventType: z.string().nullable().optional().describe("`info` if absent"),
        traceNames: z
          .union([z.string(), z.array(z.string()).max(100)])
          .nullable()
          .optional()
          .describe("Names under which it is found again"),
      }),
      answers: {
        201: { summary: "It is noted", shape: z.object({ success: z.literal(true), traceId: id }) },
      },
      handle: (request) => traces.add(request),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/names`,
      access: "read",
      summary: "The names of traces, the one used last first",
      query: page(50),
      answers: {
        200: {
          summary: "A page",
          shape: z.object({
            trace_names: z.array(
              z.object({ trace_name: z.string(), trace_count: count, message_count: count, last_seen: time }),
            ),
            total: count,
            pagination,
          }),
        },
      },
      handle: (_request, { query }) => traces.names(query),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/by-name/:traceName`,
      access: "read",
      summary: "The traces with a name, of all messages, the oldest first",
      query: page(100),
      answers: {
        200: {
          summary: "A page",
          shape: z.object({
            traces: z.array(
              z.object({
                ...trace,
                transaction_id: z.string(),
                partition_id: id,
                queue_name: z.string(),
                partition_name: z.string(),
                message_payload: payload.describe("Of the message; null where it is gone"),
              }),
            ),
            total: count,
            pagination,
          }),
        },
      },
      handle: (request, { query }) => traces.named(request, query),
    }),
    route({
      ...facts,
      method: "GET",
      path: `${PATH}/:partitionId/:transactionId`,
      access: "read",
      summary: "The traces of a message, the oldest first",
      query: page(PER_PAGE_MAX),
      answers: { 200: { summary: "A page", shape: z.object({ traces: z.array(z.object(trace)) }) } },
      handle: (request, { query }) => traces.ofMessage(request, query),
    }),
  ];
}
