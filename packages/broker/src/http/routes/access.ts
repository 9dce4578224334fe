/** The routes of API keys and of the audit log. */
import { z } from "zod";
import { ROLES } from "../../access/roles.ts";
import type { ApiKeyRoutes } from "../api-keys.ts";
import { integer } from "../parameters.ts";
import { type Route, route } from "../route.ts";
import { count, time, timeOrNull } from "./shapes.ts";

const KEYS = "/api/v1/system/keys";

export const queuePatterns = z.array(z.string().min(1).max(255)).min(1).max(100).nullable().optional();

const described = {
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  queues: z.array(z.string()).nullable().describe("Patterns; null: every queue"),
  createdAt: time,
  expiresAt: timeOrNull,
};

export function accessRoutes(keys: ApiKeyRoutes): Route[] {
  const facts = { access: "admin", tag: "System" } as const;
  return [
    route({
      ...facts,
      method: "POST",
      path: KEYS,
      summary: "Makes an API key; the key is shown this once",
      body: z.looseObject({
        name: z.string().min(1).max(255),
        role: z.enum(ROLES),
        queues: queuePatterns,
        expiresAt: z.string().nullable().optional().describe("A time; without one it never expires"),
      }),
      answers: { 201: { summary: "The key", shape: z.object({ ...described, key: z.string() }) } },
      handle: (request, { body }) => keys.make(request, body),
    }),
    route({
      ...facts,
      method: "GET",
      path: KEYS,
      summary: "Every API key, without its secret, the newest first",
      answers: {
        200: {
          summary: "The keys",
          shape: z.object({
            keys: z.array(z.object({ ...described, createdBy: z.string(), revokedAt: timeOrNull })),
          }),
        },
      },
      handle: () => keys.list(),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: `${KEYS}/:id`,
      summary: "Revokes an API key, on every broker within a second",
      answers: {
        200: { summary: "It is revoked", shape: z.object({ revoked: z.literal(true), id: z.string() }) },
      },
      handle: (request) => keys.revoke(request),
    }),
    route({
      ...facts,
      method: "GET",
      path: "/api/v1/system/audit",
      summary: "Who changed what, and what was refused, the newest first",
      query: {
        before: integer("Entries older than the one with this id", {
          fallback: 0,
          min: 0,
          max: Number.MAX_SAFE_INTEGER,
        }),
        limit: integer("Entries at most", { fallback: 100, min: 1, max: 1_000 }),
      },
      answers: {
        200: {
          summary: "A page",
          shape: z.object({
            entries: z.array(
              z.object({
                id: count,
                at: time,
                actor: z.string(),
                address: z.string(),
                action: z.string(),
                target: z.string(),
                status: count,
                times: count.describe("Refusals that repeat are counted"),
              }),
            ),
            nextBefore: count
              .nullable()
              .describe("The `before` of the next request; null: this was the last"),
          }),
        },
      },
      handle: (_request, { query }) => keys.audit(query),
    }),
  ];
}
