/** The routes of users. */
import { z } from "zod";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../access/password.ts";
import { ROLES } from "../../access/roles.ts";
import { type Route, route } from "../route.ts";
import type { UserRoutes } from "../users.ts";
import { queuePatterns } from "./access.ts";
import { count, time, timeOrNull } from "./shapes.ts";

const PATH = "/api/v1/system/users";

const described = {
  name: z.string(),
  role: z.enum(ROLES),
  queues: z.array(z.string()).nullable().describe("Patterns; null: every queue"),
  createdAt: time,
  expiresAt: timeOrNull,
};

const password = z.string().min(PASSWORD_LENGTH_MIN).max(PASSWORD_LENGTH_MAX);

export function userRoutes(users: UserRoutes): Route[] {
  const facts = { access: "admin", tag: "System" } as const;
  return [
    route({
      ...facts,
      method: "POST",
      path: PATH,
      summary: "Makes a user, who signs in to the page by name and password",
      body: z.looseObject({
        name: z.string().min(1).max(255),
        password,
        role: z.enum(ROLES),
        queues: queuePatterns,
        expiresAt: z.string().nullable().optional().describe("A time; without one he never expires"),
      }),
      answers: { 201: { summary: "The user", shape: z.object(described) } },
      handle: (request, { body }) => users.add(request, body),
    }),
    route({
      ...facts,
      method: "GET",
      path: PATH,
      summary: "Every user, by name",
      answers: {
        200: {
          summary: "The users",
          shape: z.object({
            users: z.array(
              z.object({
                ...described,
                createdBy: z.string(),
                passwordChangedAt: time,
                sessions: count.describe("Browsers in which he is signed in"),
              }),
            ),
          }),
        },
      },
      handle: () => users.list(),
    }),
    route({
      ...facts,
      method: "DELETE",
      path: `${PATH}/:user`,
      summary: "Removes a user; his sessions end on every broker within a second",
      answers: {
        200: { summary: "He is removed", shape: z.object({ removed: z.literal(true), name: z.string() }) },
      },
      handle: (request) => users.remove(request),
    }),
    route({
      ...facts,
      method: "POST",
      path: `${PATH}/:user/password`,
      summary: "Gives a user another password; his sessions end on every broker within a second",
      body: z.looseObject({ password }),
      answers: {
        200: { summary: "It is changed", shape: z.object({ changed: z.literal(true), name: z.string() }) },
      },
      handle: (request, { body }) => users.changePassword(request, body.password),
    }),
  ];
}
