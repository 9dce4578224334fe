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

  /** 0, or the milliseconds after which there will be a token. */
  waitMs(key: string): number {
    return this.#waitMs(this.#tokens(key, this.#options.now()));
  }

  /** Takes a token. Returns 0, or the milliseconds after which there will be one. */
  take(key: string): number {
    const nowMs = this.#options.now();
    const tokens = this.#tokens(key, nowMs);
    const isTaken = tokens >= 1;
    // Out and in again: the map's order is that of use.
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: isTaken ? tokens - 1 : tokens, filledAtMs: nowMs });
    if (this.#buckets.size > KEYS_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
    return this.#waitMs(tokens);
  }

  /** Puts a token back that turned out not to count. */
  giveBack(key: string): void {
    const known = this.#buckets.get(key);
    if (known) known.tokens = Math.min(this.#options.burst, known.tokens + 1);
  }

  #tokens(key: string, nowMs: number): number {
    const { perSecond, burst } = this.#options;
    const known = this.#buckets.get(key);
    return known ? Math.min(burst, known.tokens + ((nowMs - known.filledAtMs) / 1000) * perSecond) : burst;
  }

  #waitMs(tokens: number): number {
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / this.#options.perSecond) * 1000);
  }
}
