/** Shapes that several routes share. */
import { z } from "zod";

export const id = z.string().describe("A UUID");
export const time = z.string().describe("UTC, such as 2026-11-15T19:00:00.000Z");
export const timeOrNull = time.nullable();
export const count = z.int();
export const payload = z.unknown().describe("Any JSON, as the producer sent it");
export const traceparent = z
  .string()
  .optional()
  .describe("W3C trace context of the push; absent where there is none");
export const pagination = z.object({ limit: count, offset: count });
export const nextPage = z
  .string()
  .nullable()
  .describe("The `page` of the next request; null: this was the last");

export const errorShape = z.object({
  error: z.string().describe("A sentence for people"),
  code: z.string().describe("Stable; see docs/errors.md"),
});
