/** The routes that stop and resume the delivery of a queue or of a part of it. */
import { z } from "zod";
import type { PauseRoutes } from "../pauses.ts";
import { type Route, route } from "../route.ts";
import { count, time } from "./shapes.ts";

const REASON_LENGTH_MAX = 1_000;

const what = {
  consumerGroup: z.string().nullish().describe("Only for this group; absent: for all"),
  partition: z.string().nullish().describe("Only this partition; absent: all"),
};

const place = {
  success: z.literal(true),
  queue: z.string(),
  partition: z.string().nullable(),
  consumerGroup: z.string().nullable(),
};

export function pauseRoutes(pauses: PauseRoutes): Route[] {
  const facts = { tag: "Queues" } as const;
  return [
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/queues/:queue/pause",
      access: "write",
      summary: "Stops the delivery of a queue, of a partition, to a group, or of a partition to a group",
      body: z.looseObject({ ...what, reason: z.string().max(REASON_LENGTH_MAX).nullish() }),
      answers: {
        200: {
          summary: "It is paused, on every broker within a second; `changed` is false if it was already",
          shape: z.object({
            ...place,
            paused: z.literal(true),
            changed: z.boolean(),
            pausedBy: z.string(),
            pausedAt: time,
            reason: z.string().nullable(),
            message: z.string(),
          }),
        },
      },
      handle: (request, { body }) => pauses.pause(request, body),
    }),
    route({
      ...facts,
      method: "POST",
      path: "/api/v1/queues/:queue/resume",
      access: "write",
      summary: "Ends the pause of exactly what is named",
      body: z.looseObject(what),
      answers: {
        200: {
          summary: "It is not paused; `changed` is false if it was not before",
          shape: z.object({
            ...place,
            paused: z.literal(false),
            changed: z.boolean(),
            remainingPauses: count.describe("Other pauses of the queue"),
            message: z.string(),
          }),
        },
      },
      handle: (request, { body }) => pauses.resume(request, body),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/queues/:queue/pauses",
      access: "read",
      summary: "What of a queue is paused, by whom, why and since when",
      answers: {
        200: {
          summary: "The oldest first",
          shape: z.object({
            queue: z.string(),
            pauses: z.array(
              z.object({
                partition: z.string().nullable(),
                consumerGroup: z.string().nullable(),
                reason: z.string().nullable(),
                pausedBy: z.string(),
                pausedAt: time,
                message: z.string(),
              }),
            ),
          }),
        },
      },
      handle: (request) => pauses.list(request),
    }),
  ];
}
