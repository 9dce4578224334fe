/**
 * The transport brings a request to one of several brokers and sends it again, there or elsewhere, where that
 * is safe. A round tries each endpoint that may be used once, without waiting; between rounds it waits.
 */
import { ClosedError, TimeoutError } from "../errors.ts";
import { Balancer, type Balancing } from "./balancer.ts";
import { type Answer, type Call, call, type Query } from "./call.ts";
import { Endpoint } from "./endpoint.ts";
import { pause } from "./pause.ts";
import { judge } from "./retry.ts";
import type { Fetch } from "./runtime-fetch.ts";

export interface TransportOptions {
  readonly urls: readonly string[];
  readonly balancing: Balancing;
  readonly token: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMillis: number;
  /** Rounds after the first one. */
  readonly retries: number;
  readonly retryDelayMillis: number;
  readonly restMillisMax: number;
  readonly fetch: Fetch;
}

export interface RequestOptions {
  readonly query?: Query;
  /** Anything that JSON can hold. */
  readonly body?: unknown;
  /** The body, where it is JSON already. */
  readonly json?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMillis?: number;
  readonly signal?: AbortSignal;
  /** May be sent again when it is in doubt whether it was done. GET, PUT and DELETE may; POST may not unless said. */
  readonly repeatable?: boolean;
  /** Requests with the same key go to the same broker, with `affinity`. */
  readonly affinityKey?: string;
  /** Rounds after the first one, for this request. */
  readonly retries?: number;
}

// A server that asks for a longer wait gets its answer at once: the caller decides.
const WAIT_MILLIS_MAX = 30_000;
const DELAY_MILLIS_MAX = 5_000;
const PROBE_MILLIS = 2_000;
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

export class Transport {
  readonly #options: TransportOptions;
  readonly #balancer: Balancer;
  readonly #closing = new AbortController();
  readonly #probed = new Set<Endpoint>();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#balancer = new Balancer(
      options.urls.map((url) => new Endpoint(url, options.restMillisMax)),
      options.balancing,
    );
  }

  get endpoints(): readonly { readonly url: string; readonly isHealthy: boolean }[] {
    return this.#balancer.endpoints;
  }

  /** Requests whose keys have the same home go to the same broker while it is well. */
  home(affinityKey: string): string {
    return this.#balancer.home(affinityKey);
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Requests under way are aborted, and later ones refused. */
  close(): void {
    this.#closing.abort(new ClosedError());
  }

  async send<T>(method: string, path: string, options: RequestOptions = {}): Promise<Answer<T>> {
    this.#closing.signal.throwIfAborted();
    const isRepeatable = options.repeatable ?? REPEATABLE.has(method);
    const retries = options.retries ?? this.#options.retries;
    const request = await this.#call(method, path, options);
    for (let round = 0; ; round++) {
      let waitMillis = 0;
      let lastError: unknown;
      for (const endpoint of this.#round(options.affinityKey)) {
        try {
          const answer = await call<T>(this.#options.fetch, endpoint.url, request);
          endpoint.succeeded();
          return answer;
        } catch (error) {
          for (const signal of request.signals) signal.throwIfAborted();
          const verdict = judge(error, isRepeatable);
          if (verdict.isSick) endpoint.failed();
          else endpoint.succeeded();
          if (!verdict.again) throw error;
          lastError = error;
          waitMillis = Math.max(waitMillis, verdict.waitMillis);
          if (!verdict.elsewhere) break;
        }
      }
      const delayMillis = Math.max(waitMillis, this.#delayMillis(round));
      // After a wait of the whole timeout, whether to wait once more is for the caller to decide.
      const isOver = round >= retries || lastError instanceof TimeoutError;
      if (isOver || delayMillis > WAIT_MILLIS_MAX) throw lastError;
      await pause(delayMillis, ...request.signals);
    }
  }

  /** Those that are well; if none is, those whose rest is over, or the one that is back first. */
  #round(key: string | undefined): Endpoint[] {
    const order = this.#balancer.order(key);
    const healthy = order.filter((endpoint) => endpoint.isHealthy);
    const due = order.filter((endpoint) => endpoint.isDue);
    if (healthy.length === 0) return due.length > 0 ? due : order.slice(0, 1);
    for (const endpoint of due) void this.#probe(endpoint);
    return healthy;
  }

  /** Finds out whether an endpoint is back, while others do the work. */
  async #probe(endpoint: Endpoint): Promise<void> {
    if (this.#probed.has(endpoint)) return;
    this.#probed.add(endpoint);
    try {
      await call(this.#options.fetch, endpoint.url, {
        method: "GET",
        path: "/readyz",
        query: undefined,
        body: undefined,
        headers: this.#options.headers,
        timeoutMillis: PROBE_MILLIS,
        signals: [this.#closing.signal],
      });
      endpoint.succeeded();
    } catch (error) {
      if (judge(error, true).isSick) endpoint.failed();
      else endpoint.succeeded();
    } finally {
      this.#probed.delete(endpoint);
    }
  }

  /** Doubles from round to round; the random part keeps clients from coming back all at once. */
  #delayMillis(round: number): number {
    const delayMillis = Math.min(DELAY_MILLIS_MAX, this.#options.retryDelayMillis * 2 ** round);
    return delayMillis * (0.75 + Math.random() / 2);
  }

  async #call(method: string, path: string, options: RequestOptions): Promise<Call> {
    const { token } = this.#options;
    const credential = typeof token === "function" ? await token() : token;
    const body = options.json ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    return {
      method,
      path,
      query: options.query,
      body,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...this.#options.headers,
        ...options.headers,
      },
      timeoutMillis: options.timeoutMillis ?? this.#options.timeoutMillis,
      signals: options.signal ? [options.signal, this.#closing.signal] : [this.#closing.signal],
    };
  }
}
