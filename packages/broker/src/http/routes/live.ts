/** The route of the live stream. */
import type { Live } from "../live.ts";
import { text } from "../parameters.ts";
import { type Route, route } from "../route.ts";

export function liveRoutes(live: Live): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/stream",
      access: "read",
      scope: "handler",
      tag: "Status",
      summary: "Tells what the named GET routes answer, again whenever it changes, at most once a second",
      query: { follow: text("Paths with their queries, percent-encoded, separated by spaces; up to 12") },
      answers: { 200: { summary: "Server-sent events", shape: "text/event-stream" } },
      handle: (request, { query }) => live.follow(request, query.follow),
    }),
  ];
}
