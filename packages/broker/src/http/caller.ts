/** Who asks, for the record: whoever showed a credential, otherwise the user that a proxy in front names. */
import type { Request } from "./route.ts";

export function callerOf(request: Request): string {
  if (request.identity.isKnown) return request.identity.name;
  const user = request.headers["x-proxy-user"];
  return (typeof user === "string" ? user.trim().slice(0, 255) : "") || "unknown";
}
