/** Answers that are made the same way everywhere. */
import type { Answer } from "./route.ts";

export const json = (status: number, value: unknown, headers?: Answer["headers"]): Answer => ({
  status,
  body: JSON.stringify(value),
  isText: true,
  ...(headers ? { headers } : {}),
});
