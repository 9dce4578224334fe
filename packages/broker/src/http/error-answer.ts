/** What a client is told of an error. */
import type { BrokerError } from "@queen/protocol";
import { TooManyRequests } from "../access/too-many-requests.ts";
import type { Answer } from "./route.ts";
import { MethodNotAllowed } from "./router.ts";

export const RETRY_AFTER_S = "1";

/** `known`: the same error, as the wire knows it. */
export function errorAnswer(error: unknown, known: BrokerError): Answer {
  const { status, code } = known;
  const message =
    code === "INTERNAL"
      ? "The broker failed to handle the request; its log has the reason beside this answer's X-Request-Id."
      : known.message;
  const headers: Record<string, string> = {};
  if (status === 503 || status === 429) headers["Retry-After"] = RETRY_AFTER_S;
  if (status === 401) headers["WWW-Authenticate"] = "Bearer";
  if (error instanceof TooManyRequests) headers["Retry-After"] = String(Math.ceil(error.waitMs / 1000));
  if (error instanceof MethodNotAllowed) headers.Allow = error.allowed.join(", ");
  return { status, body: JSON.stringify({ error: message, code }), isText: true, headers };
}
