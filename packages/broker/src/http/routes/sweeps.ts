/** The routes that tell what background sweeps did. */
import { z } from "zod";
import { moment, queueName } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import type { SweepRoutes } from "../sweeps.ts";
import { count, time, timeOrNull } from "./shapes.ts";

const removed = {
  retentionMsgs: count.describe("Too old, or expired"),
  completedRetentionMsgs: count.describe("Old, and finished by every group"),
  evictionMsgs: count.describe("Moved to dead letters because they waited too long"),
  totalMsgs: count,
  eventCount: count.describe("Rounds"),
};
const counts = z.record(z.string(), count);

export function sweepRoutes(sweeps: SweepRoutes): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/analytics/retention",
      access: "read",
      tag: "Analytics",
      summary: "Messages that retention and eviction took from readers, over time",
      query: {
        from: moment("Default: an hour before `to`"),
        to: moment("Default: now"),
        queue: queueName("Of this queue only"),
      },
      answers: {
        200: {
          summary: "Points of time at which something was taken, the oldest first",
          shape: z.object({
            timeRange: z.object({ from: time, to: time }),
            bucketMinutes: count,
            series: z.array(z.object({ bucket: time, ...removed })),
            totals: z.object(removed),
          }),
        },
      },
      handle: (_request, { query }) => sweeps.retention(query),
    }),
    route({
      method: "GET",
      path: "/api/v1/system/sweeps",
      access: "read",
      tag: "System",
      summary: "Background sweeps: which is under way, what each did last and ever",
      answers: {
        200: {
          summary: "One entry per sweep",
          shape: z.object({
            sweeps: z.array(
              z.object({
                name: z.string(),
                underWay: z.boolean(),
                worker: z.string().nullable().describe("Who did the last round"),
                startedAt: timeOrNull.describe("Of the pass under way, or of the last one"),
                finishedAt: timeOrNull.describe("Of the last whole pass"),
                rounds: count.describe("Of the pass under way, or of the last one"),
                busyMs: count.describe("Time spent in these rounds"),
                done: counts.describe("What they did, by kind"),
                passes: count.describe("Whole passes ever"),
                total: counts.describe("What was ever done, by kind"),
              }),
            ),
          }),
        },
      },
      handle: () => sweeps.list(),
    }),
  ];
}
