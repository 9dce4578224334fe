/**
 * Whether a request that failed is sent again. Once is enough where it was refused before anything was done;
 * where it is in doubt, only a request that can be repeated without harm is sent again.
 */
import { ConnectionError, ServerError, TimeoutError } from "../errors.ts";

export interface Verdict {
  /** Send it again. */
  readonly again: boolean;
  /** At another endpoint at once, if there is one. */
  readonly elsewhere: boolean;
  /** The endpoint is not well: others are better for all requests. */
  readonly isSick: boolean;
  readonly waitMillis: number;
}

// The broker says these before it stores or changes anything.
const REFUSED_FIRST = new Set([
  "QUEUE_FULL",
  "TOO_MANY_REQUESTS",
  "OVERLOADED",
  "MAINTENANCE",
  "IDENTITY_PROVIDER_UNAVAILABLE",
]);

// Everybody's limit, not this endpoint's.
const SAME_EVERYWHERE = new Set(["QUEUE_FULL", "TOO_MANY_REQUESTS"]);
// This endpoint's, but only for one queue.
const OF_ONE_QUEUE = new Set(["ENCRYPTION_KEY_MISSING"]);

export function judge(error: unknown, isRepeatable: boolean): Verdict {
  if (error instanceof ConnectionError)
    return { again: isRepeatable || !error.inDoubt, elsewhere: true, isSick: true, waitMillis: 0 };
  if (error instanceof TimeoutError)
    return { again: isRepeatable, elsewhere: true, isSick: true, waitMillis: 0 };
  if (error instanceof ServerError && error.retryable) {
    const elsewhere = !SAME_EVERYWHERE.has(error.code);
    return {
      again: isRepeatable || REFUSED_FIRST.has(error.code),
      elsewhere,
      isSick: elsewhere && !OF_ONE_QUEUE.has(error.code),
      waitMillis: error.retryAfterMillis ?? 0,
    };
  }
  return { again: false, elsewhere: false, isSick: false, waitMillis: 0 };
}

/** Whether the same request may succeed later, however often it failed by now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServerError) return error.retryable || error.status >= 500;
  return error instanceof ConnectionError || error instanceof TimeoutError;
}
