/**
 * An endpoint is one broker's URL and what is known of its health. After a failure it rests; when the rest is
 * over, the next request may try it again, and a success makes it healthy.
 *
 *   healthy ──failed──▶ resting ──time──▶ on trial ──succeeded──▶ healthy
 *                          ▲                  └──failed, rests twice as long──▶ resting
 */
const REST_MILLIS_FIRST = 500;

export class Endpoint {
  readonly url: string;
  readonly #restMillisMax: number;
  readonly #now: () => number;
  #restMillis = 0;
  #restsUntil = 0;
  #isOnTrial = false;

  constructor(url: string, restMillisMax: number, now: () => number = () => performance.now()) {
    this.url = url;
    this.#restMillisMax = restMillisMax;
    this.#now = now;
  }

  get isHealthy(): boolean {
    return this.#restMillis === 0;
  }

  /** Whether a request may go here. Of an endpoint that failed, one request at a time finds out. */
  get isUsable(): boolean {
    return this.isHealthy || (!this.#isOnTrial && this.#now() >= this.#restsUntil);
  }

  get restsUntil(): number {
    return this.#restsUntil;
  }

  /** A request is sent here; the function that it returns is called when the request is over. */
  begin(): () => void {
    if (this.isHealthy || this.#isOnTrial) return () => undefined;
    this.#isOnTrial = true;
    return () => {
      this.#isOnTrial = false;
    };
  }

  succeeded(): void {
    this.#restMillis = 0;
    this.#restsUntil = 0;
  }

  failed(): void {
    // Requests that were under way together fail together: that is one failure.
    if (!this.isHealthy && this.#now() < this.#restsUntil) return;
    this.#restMillis = Math.min(this.#restMillisMax, this.#restMillis * 2 || REST_MILLIS_FIRST);
    this.#restsUntil = this.#now() + this.#restMillis;
  }
}
