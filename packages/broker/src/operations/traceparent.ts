/**
 * A traceparent says in which trace something happened, and under which span (W3C Trace Context, version 00):
 *
 *   00-<trace id, 32 hex digits>-<span id, 16>-<flags, 2>
 *
 * What is not exactly that is ignored, as the standard has it: a trace is never a reason to refuse a message.
 */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export function readTraceparent(value: unknown): string | undefined {
  return typeof value === "string" && TRACEPARENT.test(value) ? value : undefined;
}
