/** The routes of sessions. */
import { z } from "zod";
import { PASSWORD_LENGTH_MAX } from "../../access/password.ts";
import { ACCESSES, ROLES } from "../../access/roles.ts";
import { type Route, route } from "../route.ts";
import type { SessionRoutes } from "../sessions.ts";

const PATH = "/api/v1/session";

const session = z.object({
  authentication: z.boolean().describe("Whether it is on; if not, everybody may do everything"),
  passwords: z.boolean().describe("Whether users sign in by name and password"),
  name: z.string().nullable().describe("Null: nobody has signed in"),
  roles: z.array(z.enum(ROLES)),
  access: z.array(z.enum(ACCESSES)).describe("What the caller may do"),
  queues: z.array(z.string()).nullable().describe("Patterns; null: every queue"),
  version: z.string(),
});

export function sessionRoutes(sessions: SessionRoutes): Route[] {
  const facts = { tag: "System", access: "open", path: PATH } as const;
  const headers = { "Set-Cookie": "The session" };
  return [
    route({
      ...facts,
      method: "GET",
      summary: "Who asks, and what he may do",
      answers: { 200: { summary: "By credential or session", shape: session } },
      handle: (request) => sessions.read(request),
    }),
    route({
      ...facts,
      method: "POST",
      summary:
        "Signs a browser in with a token or an API key, or by user and password; needs the header Queen-Page",
      body: z.looseObject({
        credential: z.string().min(1).max(16_384).optional().describe("A token or an API key"),
        user: z.string().min(1).max(255).optional().describe("In its place, with `password`"),
        password: z.string().min(1).max(PASSWORD_LENGTH_MAX).optional(),
      }),
      answers: { 200: { summary: "The session is in a cookie", shape: session, headers } },
      handle: (request, { body }) => sessions.signIn(request, body),
    }),
    route({
      ...facts,
      method: "DELETE",
      summary: "Signs a browser out; needs the header Queen-Page",
      answers: { 204: { summary: "The cookie is gone", headers } },
      handle: (request) => sessions.signOut(request),
    }),
  ];
}
