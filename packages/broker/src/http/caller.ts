/** Who asks, for the record: the user that a proxy in front of the broker names. */
import type { Request } from "./route.ts";

export function callerOf(request: Request): string {
  const user = request.headers["x-proxy-user"];
  return (typeof user === "string" ? user.trim().slice(0, 255) : "") || "unknown";
}
