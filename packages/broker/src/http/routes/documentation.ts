/** The routes that describe the interface. */
import { z } from "zod";
import type { Documentation } from "../documentation.ts";
import { type Route, route } from "../route.ts";

/** The documentation describes these routes too, so it is asked for only when somebody reads. */
export function documentationRoutes(documentation: () => Documentation): Route[] {
  const facts = { method: "GET", access: "open", tag: "System" } as const;
  return [
    route({
      ...facts,
      path: "/openapi.json",
      summary: "This interface as an OpenAPI document",
      answers: { 200: { summary: "OpenAPI 3.1", shape: z.record(z.string(), z.unknown()) } },
      handle: () => documentation().document(),
    }),
    route({
      ...facts,
      path: "/docs",
      summary: "This interface as a page to read",
      answers: { 200: { summary: "A page without scripts", shape: "text/html" } },
      handle: () => documentation().page(),
    }),
  ];
}
