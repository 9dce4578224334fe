/** The routes that tell how the broker is. */
import { z } from "zod";
import type { Admin } from "../admin.ts";
import { type Route, route } from "../route.ts";
import { count } from "./shapes.ts";
import { sharedState } from "./shared-state.ts";

const health = z.object({
  status: z.enum(["healthy", "unhealthy"]),
  database: z.enum(["connected", "disconnected"]),
  server: z.string(),
  worker_id: count,
  version: z.string(),
  shared_state: sharedState,
  queen: z.object({ worker_id: count, status: z.string() }),
});
const state = z.object({ status: z.string() });

export function stateRoutes(admin: Admin): Route[] {
  const facts = { method: "GET", tag: "System" } as const;
  const open = { ...facts, access: "open" } as const;
  // Open by JWT_SKIP_PATHS, as long as it says so.
  const readable = { ...facts, access: "read" } as const;
  return [
    route({
      ...readable,
      path: "/health",
      summary: "Whether the database can be used, and the broker is not stopping",
      answers: {
        200: { summary: "It can", shape: health },
        503: { summary: "It cannot", shape: health },
      },
      handle: () => admin.health(),
    }),
    route({
      ...open,
      path: "/livez",
      summary: "Whether the process lives",
      answers: { 200: { summary: "It does", shape: state } },
      handle: () => admin.alive(),
    }),
    route({
      ...open,
      path: "/readyz",
      summary: "Whether requests can be served",
      answers: {
        200: { summary: "They can", shape: state },
        503: { summary: "They cannot yet, or soon no more", shape: state },
      },
      handle: () => admin.ready(),
    }),
    ...["/metrics", "/api/v1/system/metrics"].map((path) =>
      route({
        ...readable,
        path,
        summary: "Figures of all workers of this broker",
        answers: { 200: { summary: "Figures by part", shape: z.record(z.string(), z.unknown()) } },
        handle: () => admin.metrics(),
      }),
    ),
    route({
      ...readable,
      path: "/metrics/prometheus",
      summary: "Figures of all workers of this broker, and of all brokers, for Prometheus",
      answers: { 200: { summary: "Prometheus' text format", shape: "text/plain" } },
      handle: () => admin.prometheus(),
    }),
  ];
}
