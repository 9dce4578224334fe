/**
 * A request's id names it in log lines, in spans and towards its client. It is what the client sent as
 * X-Request-Id, or one that is made here: this process's prefix and a number.
 */
import { randomBytes } from "node:crypto";

// Visible ASCII: whatever else a client sends could not be copied into a header or a line of the log.
const SANE = /^[\x21-\x7e]{1,128}$/;

const PREFIX = randomBytes(6).toString("base64url");
let made = 0;

/** The id that a client chose; undefined: none, or one that is not sane. */
export function givenRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && SANE.test(header) ? header : undefined;
}

export function newRequestId(): string {
  return `${PREFIX}-${++made}`;
}
