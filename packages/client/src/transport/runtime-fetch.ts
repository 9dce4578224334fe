/**
 * As much of `fetch` as the client uses. Node has an HTTP client that does it with a third of the work, and so
 * with less delay; everywhere else it is the runtime's own.
 */
import { onAbort } from "./on-abort.ts";

export interface Fetched extends Pick<Response, "ok" | "status" | "statusText" | "headers"> {
  text(): Promise<string>;
}

export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly signal: AbortSignal;
  },
) => Promise<Fetched>;

/** As much of Node's `http` and `https` as is used. */
interface NodeHttp {
  readonly Agent: new (options: object) => object;
  request(url: string, options: object, answered: (message: NodeMessage) => void): NodeRequest;
}

interface NodeClient {
  readonly http: NodeHttp;
  readonly agent: object;
  readonly byteLength: (text: string) => number;
}

interface NodeRequest {
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "socket", listener: (socket: NodeSocket) => void): void;
  end(body: string | undefined, encoding: "utf8"): void;
  destroy(error: Error): void;
}

interface NodeSocket {
  readonly connecting: boolean;
  once(event: "connect" | "close", listener: () => void): void;
}

interface NodeMessage {
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly rawHeaders: readonly string[];
  setEncoding(encoding: "utf8"): void;
  on(event: "data", listener: (text: string) => void): void;
  on(event: "end", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
}

// Brokers keep an idle connection for longer than this, so that none is used in the moment in which it is closed.
const IDLE_MILLIS = 4_000;
// A broker that does not take a connection for so long is not there, and nothing was sent.
const CONNECT_MILLIS = 10_000;

export const runtimeFetch: Fetch = nodeFetch() ?? ((url, init) => fetch(url, init));

function nodeFetch(): Fetch | undefined {
  const { process, Buffer, Bun, Deno } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => unknown };
    Buffer?: { byteLength(text: string): number };
    Bun?: unknown;
    Deno?: unknown;
  };
  if (Bun !== undefined || Deno !== undefined) return undefined;
  const http = process?.getBuiltinModule?.("node:http") as NodeHttp | undefined;
  const https = process?.getBuiltinModule?.("node:https") as NodeHttp | undefined;
  if (http === undefined || https === undefined || Buffer === undefined) return undefined;
  const options = { keepAlive: true, timeout: IDLE_MILLIS };
  const { byteLength } = Buffer;
  const plain = { http, agent: new http.Agent(options), byteLength };
  const secure = { http: https, agent: new https.Agent(options), byteLength };
  return (url, init) => send(url.startsWith("https:") ? secure : plain, url, init);
}

function send(
  { http, agent, byteLength }: NodeClient,
  url: string,
  { method, headers, body, signal }: Parameters<Fetch>[1],
): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    // As `fetch` does it, whatever failed on the way is a TypeError with its cause.
    const fail = (cause: Error): void => {
      unlink();
      reject(new TypeError(`${method} ${url} failed.`, { cause }));
    };
    const length = body === undefined ? {} : { "content-length": byteLength(body) };
    const request = http.request(url, { method, agent, headers: { ...headers, ...length } }, (message) => {
      const texts: string[] = [];
      message.setEncoding("utf8");
      message.on("data", (text) => texts.push(text));
      message.on("error", fail);
      message.on("end", () => {
        unlink();
        resolve(new NodeFetched(message, texts.join("")));
      });
    });
    // Much less work than what a request does that is given the signal itself.
    const unlink = onAbort(signal, () => request.destroy(new Error("aborted")));
    request.on("error", fail);
    request.on("socket", (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => {
        const error = new Error(`no connection within ${CONNECT_MILLIS} ms`);
        request.destroy(Object.assign(error, { code: "ERR_CONNECT_TIMEOUT" }));
      }, CONNECT_MILLIS);
      const clear = (): void => clearTimeout(timer);
      socket.once("connect", clear);
      socket.once("close", clear);
    });
    request.end(body, "utf8");
  });
}

class NodeFetched implements Fetched {
  readonly status: number;
  readonly statusText: string;
  readonly #rawHeaders: readonly string[];
  readonly #text: string;

  constructor({ statusCode, statusMessage, rawHeaders }: NodeMessage, text: string) {
    this.status = statusCode;
    this.statusText = statusMessage;
    this.#rawHeaders = rawHeaders;
    this.#text = text;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get headers(): Headers {
    return headersOf(this.#rawHeaders);
  }

  text(): Promise<string> {
    return Promise.resolve(this.#text);
  }
}

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let index = 0; index < raw.length; index += 2) headers.append(raw[index]!, raw[index + 1]!);
  return headers;
}
