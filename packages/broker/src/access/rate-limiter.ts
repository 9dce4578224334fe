/** A token bucket per key: so many requests a second on average, and some more at once. */
export interface RateLimiterOptions {
  readonly perSecond: number;
  /** Requests that may come at once after a pause. */
  readonly burst: number;
  readonly now: () => number;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

// Beyond, the bucket that was used longest ago is forgotten; it is full by then, or its owner is lucky.
const KEYS_MAX = 100_000;

export class RateLimiter {
  readonly #options: RateLimiterOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /** Takes a token. Returns 0, or the milliseconds after which there will be one. */
  take(key: string): number {
    const { perSecond, burst, now } = this.#options;
    const nowMs = now();
    const known = this.#buckets.get(key);
    const tokens = known
      ? Math.min(burst, known.tokens + ((nowMs - known.filledAtMs) / 1000) * perSecond)
      : burst;
    const isTaken = tokens >= 1;
    // Out and in again: the map's order is that of use.
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: isTaken ? tokens - 1 : tokens, filledAtMs: nowMs });
    if (this.#buckets.size > KEYS_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
    return isTaken ? 0 : Math.ceil(((1 - tokens) / perSecond) * 1000);
  }
}
