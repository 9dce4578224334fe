/**
 * Whether a request that failed is sent again. Once is enough where it was refused before anything was done;
 * where it is in doubt, only a request that can be repeated without harm is sent again.
 */
import { ConnectionError, ServerError, TimeoutError } from "../errors.ts";

export type Verdict =
  /** Send it again; `elsewhere`: this endpoint is not well, another one may be. */
  | { readonly again: true; readonly elsewhere: boolean; readonly waitMillis: number }
  | { readonly again: false; readonly elsewhere: boolean };

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

export function judge(error: unknown, isRepeatable: boolean): Verdict {
  if (error instanceof ConnectionError)
    return { again: isRepeatable || !error.inDoubt, elsewhere: true, waitMillis: 0 };
  if (error instanceof TimeoutError) return { again: isRepeatable, elsewhere: true, waitMillis: 0 };
  if (error instanceof ServerError && error.retryable) {
    const elsewhere = !SAME_EVERYWHERE.has(error.code);
    if (isRepeatable || REFUSED_FIRST.has(error.code))
      return { again: true, elsewhere, waitMillis: error.retryAfterMillis ?? 0 };
    return { again: false, elsewhere };
  }
  return { again: false, elsewhere: false };
}

/** Whether the same request may succeed later, however often it failed by now. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServerError) return error.retryable || error.status >= 500;
  return error instanceof ConnectionError || error instanceof TimeoutError;
}
