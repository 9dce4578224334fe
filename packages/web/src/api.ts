/** The broker's HTTP interface, as this page calls it: relative to where the page was loaded from. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface ApiAnswer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

export type Method = "GET" | "POST" | "DELETE";

/** Where the broker's routes begin, also below the base path of a proxy. */
export const BASE = new URL("./", document.baseURI).href;

/** Called when the broker does not know who asks. */
let onUnknown: () => void = () => undefined;
export const whenUnknown = (listener: () => void): void => {
  onUnknown = listener;
};

export async function call<T>(method: Method, path: string, body?: unknown): Promise<ApiAnswer<T>> {
  let response: Response;
  try {
    response = await fetch(BASE + path.replace(/^\//, ""), {
      method,
      headers: { "Queen-Page": "1", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, "UNREACHABLE", "The broker does not answer. Is it running?");
  }
  const text = await response.text();
  const parsed = parse(text);
  if (!response.ok) {
    if (response.status === 401) onUnknown();
    const { error, code } = (parsed ?? {}) as { error?: string; code?: string };
    throw new ApiError(response.status, code ?? "", error ?? `The broker answered ${response.status}.`);
  }
  return { status: response.status, headers: response.headers, body: parsed as T };
}

export const get = async <T>(path: string): Promise<T> => (await call<T>("GET", path)).body;
export const post = async <T>(path: string, body: unknown = {}): Promise<T> =>
  (await call<T>("POST", path, body)).body;
export const remove = async <T>(path: string): Promise<T> => (await call<T>("DELETE", path)).body;

/** A path of the interface: `api("queues", name, "pause")`, with a query without what is absent. */
export function api(
  parts: readonly string[],
  query: Readonly<Record<string, string | number | boolean | null | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "" && value !== false)
      search.set(name, String(value));
  }
  const path = `/api/v1/${parts.map(encodeURIComponent).join("/")}`;
  return search.size === 0 ? path : `${path}?${search}`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
