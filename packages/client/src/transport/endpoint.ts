/**
 * An endpoint is one broker's URL and what is known of its health. After a failure it rests; when the rest is
 * over, somebody finds out whether it is back.
 *
 *   healthy ──failed──▶ resting ──time──▶ due ──succeeded──▶ healthy
 *                          ▲               └──failed, rests twice as long──▶ resting
 */
const REST_MILLIS_FIRST = 500;

export class Endpoint {
  readonly url: string;
  readonly #restMillisMax: number;
  readonly #now: () => number;
  #restMillis = 0;
  #restsUntil = 0;

  constructor(url: string, restMillisMax: number, now: () => number = () => performance.now()) {
    this.url = url;
    this.#restMillisMax = restMillisMax;
    this.#now = now;
  }

  get isHealthy(): boolean {
    return this.#restMillis === 0;
  }

  get isDue(): boolean {
    return !this.isHealthy && this.#now() >= this.#restsUntil;
  }

  get restsUntil(): number {
    return this.#restsUntil;
  }

  succeeded(): void {
    this.#restMillis = 0;
    this.#restsUntil = 0;
  }

  failed(): void {
    // Requests that were under way together fail together: that is one failure.
    if (!this.isHealthy && !this.isDue) return;
    this.#restMillis = Math.max(1, Math.min(this.#restMillisMax, this.#restMillis * 2 || REST_MILLIS_FIRST));
    this.#restsUntil = this.#now() + this.#restMillis;
  }
}
