/** The routes that make, change and delete queues. */
import { z } from "zod";
import type { Admin } from "../admin.ts";
import { flag, named } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, id } from "./shapes.ts";

export function queueRoutes(admin: Admin): Route[] {
  const facts = { tag: "Queues" } as const;
  return [
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/configure",
      access: "write",
      summary: "Makes or configures a queue; an option that is not named returns to its default",
      bytes: z.looseObject({
        queue: z.string().max(255),
        namespace: z.unknown().optional().describe("A string; anything else counts as not said"),
        task: z.unknown().optional().describe("A string; anything else counts as not said"),
        options: z.record(z.string(), z.unknown()).nullable().optional(),
        mode: z.enum(["replace", "merge"]).nullable().optional(),
      }),
      answers: {
        200: {
          summary: "The queue as it is now",
          shape: z.object({
            configured: z.literal(true),
            queueId: id,
            partitionId: id.describe("Of partition `Default`"),
            queue: z.string(),
            namespace: z.string(),
            task: z.string(),
            options: z.record(z.string(), z.union([z.number(), z.boolean()])),
            unknownOptions: z.array(z.string()).optional(),
          }),
        },
      },
      handle: (request) => admin.configure(request),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: "/api/v1/resources/queues/:queue",
      access: "admin",
      summary: "Deletes a queue with everything in it",
      answers: {
        200: {
          summary: "It is gone, whether it existed or not",
          shape: z.object({ deleted: z.literal(true), queue: z.string(), existed: z.boolean() }),
        },
      },
      handle: (request) => admin.deleteQueue(request),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: "/api/v1/queues/:queue/clear",
      access: "admin",
      summary: "Removes all messages of a queue or of one partition; every group ends up behind them",
      query: {
        partition: named("Of this partition only"),
        deadLetters: flag("Remove the dead letters, too"),
      },
      answers: {
        200: {
          summary: "What was removed",
          shape: z.object({
            cleared: z.literal(true),
            queue: z.string(),
            partition: z.string().optional(),
            messages: count.describe("Messages that were removed; the places of deleted ones count"),
            partitions: count.describe("Partitions that were cleared"),
            deadLetters: count.describe("Dead letters that were removed"),
          }),
        },
      },
      handle: (request, { query }) => admin.clearQueue(request, query),
    }),
  ];
}
