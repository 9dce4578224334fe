/** The routes of what workers know of each other. */
import { z } from "zod";
import { type Route, route } from "../route.ts";
import type { SharedState } from "../shared-state.ts";
import { count } from "./shapes.ts";

export const sharedState = z.object({
  enabled: z.boolean(),
  running: z.boolean(),
  server_id: z.string(),
  queue_config_cache: z.object({ size: count, hits: count, misses: count, hit_rate: z.number() }),
  server_health: z.object({
    servers_tracked: count,
    servers_alive: count,
    servers_dead: count,
    heartbeats_received: count,
    restarts_detected: count,
  }),
  maintenance_mode: z.boolean(),
  pop_maintenance_mode: z.boolean(),
});

export function sharedStateRoutes(state: SharedState): Route[] {
  const facts = { tag: "System", access: "admin" } as const;
  return [
    ...[
      "/api/v1/system/shared-state",
      "/internal/api/shared-state/stats",
      "/internal/api/inter-instance/stats",
    ].map((path) =>
      route({
        ...facts,
        method: "GET",
        path,
        summary: "What the worker that answers knows of the others",
        answers: { 200: { summary: "From memory", shape: sharedState } },
        handle: () => state.answer(),
      }),
    ),
    route({
      ...facts,
      method: "POST",
      path: "/internal/api/notify",
      summary: "Has parked pops of a queue, or of one of its partitions, look for work on every broker",
      body: z.looseObject({ queue: z.string(), partition: z.string().nullish() }),
      answers: { 200: { summary: "They look", shape: z.object({ status: z.literal("ok") }) } },
      handle: (_request, { body }) => state.notify(body.queue, body.partition),
    }),
  ];
}
