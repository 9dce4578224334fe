/** What a Queen is made of: where the brokers are, who asks, and how patient it is. */
import type { Balancing } from "./transport/balancer.ts";
import { runtimeFetch, standardFetch } from "./transport/runtime-fetch.ts";
import type { TransportOptions } from "./transport/transport.ts";

export interface QueenOptions {
  /** One broker. */
  readonly url?: string;
  /** Several brokers on one database. */
  readonly urls?: readonly string[];
  /** How requests are spread over several brokers; `affinity` unless said. */
  readonly balancing?: Balancing;
  /** A token or an API key, or a function that fetches one for each request. */
  readonly token?: string | (() => string | Promise<string>);
  readonly headers?: Readonly<Record<string, string>>;
  /** For one request; a long poll has its own time on top. 30,000 unless said. */
  readonly timeoutMillis?: number;
  /** How often a request is tried again, where that is safe; 4 unless said. */
  readonly retries?: number;
  /** Before the first retry; doubles with each. 250 unless said. */
  readonly retryDelayMillis?: number;
  /** A broker that failed is tried again after at most so long; 5,000 unless said. */
  readonly recoverMillis?: number;
  /** Instead of the runtime's own HTTP; leases are renewed without a worker thread then. */
  readonly fetch?: typeof fetch;
  /** Whether leases are renewed by a worker thread, also while a handler blocks this one; true unless said. */
  readonly useWorker?: boolean;
  /**
   * Told what went wrong where nobody else is: a handler that threw without an `onError`, a pop that is tried
   * again, an ack without effect. `console.warn` unless said.
   */
  readonly onWarning?: (message: string, cause?: unknown) => void;
}

export const DEFAULT_URL = "http://localhost:6632";

export function transportOptions(given: string | QueenOptions): TransportOptions {
  const options = typeof given === "string" ? { url: given } : given;
  if (options.url !== undefined && options.urls !== undefined)
    throw new TypeError("Give `url` or `urls`, not both.");
  const urls = options.urls ?? [options.url ?? DEFAULT_URL];
  if (urls.length === 0) throw new TypeError("`urls` is empty: name at least one broker.");
  return {
    urls: [...new Set(urls.map(checkedUrl))],
    balancing: options.balancing ?? "affinity",
    token: options.token,
    headers: options.headers ?? {},
    timeoutMillis: atLeast(1, "timeoutMillis", options.timeoutMillis ?? 30_000),
    retries: atLeast(0, "retries", options.retries ?? 4),
    retryDelayMillis: atLeast(0, "retryDelayMillis", options.retryDelayMillis ?? 250),
    restMillisMax: atLeast(0, "recoverMillis", options.recoverMillis ?? 5_000),
    fetch: options.fetch ? standardFetch(options.fetch) : runtimeFetch,
  };
}

function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/i.test(text))
    throw new TypeError(`"${text}" is not a URL of a broker: use one like ${DEFAULT_URL}.`);
  const url = new URL(text);
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function atLeast(min: number, name: string, value: number): number {
  if (Number.isFinite(value) && value >= min) return value;
  throw new TypeError(`${name} must be a number of at least ${min}, not ${value}.`);
}
