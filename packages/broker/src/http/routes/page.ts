/** The routes of the web page. */
import type { Page } from "../page.ts";
import { type Route, route } from "../route.ts";

/** Open: without a credential it shows the sign-in, and nothing of the broker. */
export function pageRoutes(page: Page): Route[] {
  const facts = { method: "GET", access: "open", tag: "System" } as const;
  return [
    route({
      ...facts,
      path: "/",
      summary: "The web page",
      answers: {
        200: { summary: "A document that loads its files beside it", shape: "text/html" },
        304: { summary: "It is as the browser has it" },
      },
      handle: (request) => page.home(request),
    }),
    route({
      ...facts,
      path: "/assets/:file",
      summary: "A file of the web page",
      answers: {
        200: { summary: "Its name changes with its content", shape: "*/*" },
        304: { summary: "It is as the browser has it" },
      },
      handle: (request) => page.asset(request),
    }),
  ];
}
