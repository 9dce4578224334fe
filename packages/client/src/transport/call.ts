/** A call is one HTTP request to one endpoint: it ends with an answer, or with an error that says why not. */
import { ConnectionError, serverError, TimeoutError } from "../errors.ts";
import { Abort } from "./abort.ts";
import type { Fetch, Fetched } from "./runtime-fetch.ts";

export type QueryValue = string | number | boolean | null | undefined;
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

export class Answer<T = unknown> {
  readonly status: number;
  /** The JSON value; text if it is not JSON; null without a body. */
  readonly body: T;
  /** The URL of the broker that answered. */
  readonly endpoint: string;
  readonly #response: Fetched;

  constructor(response: Fetched, body: T, endpoint: string) {
    this.status = response.status;
    this.body = body;
    this.endpoint = endpoint;
    this.#response = response;
  }

  get headers(): Headers {
    return this.#response.headers;
  }
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: Query | undefined;
  /** JSON text. */
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMillis: number;
  /** The first that is aborted ends the call. */
  readonly signals: readonly AbortSignal[];
}

export async function call<T>(fetchFunction: Fetch, endpoint: string, request: Call): Promise<Answer<T>> {
  const { signals, timeoutMillis } = request;
  const abort = new Abort();
  const unlink = abort.follow(signals);
  const timer = setTimeout(() => {
    const sentence = `${request.method} ${endpoint}${request.path} had no answer within ${timeoutMillis} ms.`;
    abort.abort(new TimeoutError(sentence));
  }, timeoutMillis);
  try {
    abort.throwIfAborted();
    const response = await fetchFunction(endpoint + request.path + queryText(request.query), {
      method: request.method,
      headers: request.headers,
      abort,
      ...(request.body === undefined ? {} : { body: request.body }),
    });
    const body = bodyOf(await response.text());
    if (!response.ok) throw refusal(request, response, body);
    return new Answer(response, body as T, endpoint);
  } catch (error) {
    abort.throwIfAborted();
    throw error instanceof TypeError ? noAnswer(request, endpoint, error) : error;
  } finally {
    clearTimeout(timer);
    unlink();
  }
}

export function queryText(query: Query | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null) parameters.append(name, String(each));
  return parameters.size === 0 ? "" : `?${parameters}`;
}

function bodyOf(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function refusal(request: Call, response: Fetched, body: unknown): Error {
  const { error, code } = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const elsewhere = response.headers.get("location");
  const status = `status ${response.status} ${response.statusText}`.trim();
  const sentence =
    typeof error === "string"
      ? error
      : elsewhere === null
        ? status
        : `${status}: use ${elsewhere}, where it leads.`;
  return serverError(`${request.method} ${request.path}: ${sentence}`, {
    status: response.status,
    code: typeof code === "string" ? code : `HTTP_${response.status}`,
    retryAfterMillis: retryAfterMillis(response.headers.get("retry-after")),
    requestId: response.headers.get("x-request-id"),
    body,
  });
}

/** `Retry-After` has seconds, or a date. */
export function retryAfterMillis(header: string | null, now: () => number = Date.now): number | null {
  if (header === null || header === "") return null;
  const seconds = Number(header);
  const millis = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - now();
  return Number.isFinite(millis) ? Math.max(0, millis) : null;
}

// What the runtimes say when a connection was never made, so that nothing can have been sent.
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_CONNECT_TIMEOUT|ConnectionRefused|Connection refused|dns error/i;

/** `fetch` reports all failures of the network as a TypeError; the cause, where there is one, says more. */
function noAnswer(request: Call, endpoint: string, error: TypeError): ConnectionError {
  const texts: string[] = [];
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const { code, errors } = each as { code?: unknown; errors?: unknown };
    texts.push(`${typeof code === "string" ? `${code} ` : ""}${each.message}`);
    if (Array.isArray(errors) && errors[0] instanceof Error) texts.push(errors[0].message);
  }
  const inDoubt = !NEVER_SENT.test(texts.join("\n"));
  const reason = texts.at(-1) ?? "no reason given";
  return new ConnectionError(
    `${request.method} ${endpoint}${request.path}: no answer (${reason}).`,
    inDoubt,
    {
      cause: error,
    },
  );
}
