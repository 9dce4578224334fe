/** The routes of the modes of maintenance. */
import { z } from "zod";
import type { MaintenanceRoutes } from "../maintenance.ts";
import { type Route, route } from "../route.ts";
import { count } from "./shapes.ts";

const enabled = z.looseObject({ enabled: z.boolean({ error: "enabled (boolean) is required" }) });
const popMode = z.object({ popMaintenanceMode: z.boolean(), message: z.string() });

export function maintenanceRoutes(maintenance: MaintenanceRoutes): Route[] {
  const facts = { tag: "System", access: "admin" } as const;
  return [
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/system/maintenance",
      summary: "Which modes of maintenance are on, and what waits on the broker's disk",
      answers: {
        200: {
          summary: "As the database says",
          shape: z.object({
            maintenanceMode: z.boolean(),
            popMaintenanceMode: z.boolean(),
            bufferedMessages: count,
            bufferHealthy: z.boolean(),
            bufferStats: z.object({
              pendingCount: count,
              failedCount: count,
              dbHealthy: z.boolean(),
              failedFiles: z.object({
                count,
                totalBytes: count,
                totalMB: z.number(),
                failoverCount: count,
                qos0Count: count,
              }),
            }),
          }),
        },
      },
      handle: () => maintenance.read(),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/system/maintenance",
      summary: "Switches push maintenance: while it is on, pushes wait on the brokers' disks",
      body: enabled,
      answers: {
        200: {
          summary: "It is as asked for, on every broker within a second",
          shape: z.object({
            maintenanceMode: z.boolean(),
            bufferedMessages: count,
            bufferHealthy: z.boolean(),
            message: z.string(),
          }),
        },
      },
      handle: (_request, { body }) => maintenance.set(body.enabled),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/system/maintenance/pop",
      summary: "Whether pop maintenance is on",
      answers: { 200: { summary: "As the database says", shape: popMode } },
      handle: () => maintenance.readPop(),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/system/maintenance/pop",
      summary: "Switches pop maintenance: while it is on, every pop is answered at once, with nothing",
      body: enabled,
      answers: { 200: { summary: "It is as asked for, on every broker within a second", shape: popMode } },
      handle: (_request, { body }) => maintenance.setPop(body.enabled),
    }),
    route({
      tag: "Status",
      access: "read",
      method: "GET",
      path: "/api/v1/status/buffers",
      summary: "What waits on the broker's disk",
      answers: {
        200: {
          summary: "Of the worker that answers",
          shape: z.object({ pending: count, failed: count, dbHealthy: z.boolean(), worker: count }),
        },
      },
      handle: () => maintenance.buffers(),
    }),
  ];
}
