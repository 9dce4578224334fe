/**
 * The HTTP server of one worker: reads requests, finds their route, and writes answers. Bodies are held as
 * they came; an answer is one string with one byte per character, or ordinary text.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BrokerError } from "@queen/protocol";
import { crash, isCrashPoint } from "../crash-point.ts";
import { bodyText } from "../operations/json-scanner.ts";
import type { Log } from "../telemetry.ts";
import { checkBody } from "./body-check.ts";
import { readQuery } from "./parameters.ts";
import type { Answer, Request, Route } from "./route.ts";

export interface HttpServerOptions {
  readonly routes: readonly Route[];
  readonly bodyBytesMax: number;
  /** What a client is told of an error. */
  readonly classify: (error: unknown) => BrokerError;
  readonly log: Log;
}

const CORS = [
  "Access-Control-Allow-Origin",
  "*",
  "Access-Control-Allow-Methods",
  "GET, POST, PUT, DELETE, OPTIONS",
  "Access-Control-Allow-Headers",
  "Content-Type, Authorization",
];

// Slow clients: headers within 15 s, a whole request within a minute. A long poll is the answer's matter.
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 60_000;
// Longer than the 60 s after which common load balancers drop idle connections.
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
// So much of a body above the limit is read, to tell its client about the limit.
const DROPPED_BYTES_MAX = 64 * 1024 * 1024;
const RETRY_AFTER_S = "1";

interface Compiled {
  readonly route: Route;
  readonly segments: readonly string[];
}

export class HttpServer {
  readonly #server: Server;
  readonly #options: HttpServerOptions;
  readonly #exact = new Map<string, Route>();
  readonly #patterns: Compiled[] = [];
  readonly #methods = new Map<string, Set<string>>();
  #active = 0;
  #stopping = false;
  #idle: (() => void) | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    for (const route of options.routes) {
      if (route.path.includes(":")) this.#patterns.push({ route, segments: route.path.split("/") });
      else this.#exact.set(`${route.method} ${route.path}`, route);
      const methods = this.#methods.get(route.path) ?? new Set();
      this.#methods.set(route.path, methods.add(route.method));
    }
    this.#server = createServer(
      {
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        noDelay: true,
      },
      (request, response) => this.#receive(request, response),
    );
  }

  get active(): number {
    return this.#active;
  }

  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Accepts nothing more; resolves when all requests under way are answered, or after a while. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    if (this.#active > 0) {
      const answered = new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
      await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, timeoutMs).unref())]);
    }
    this.#server.closeIdleConnections();
    const grace = setTimeout(() => this.#server.closeAllConnections(), 500);
    await closed;
    clearTimeout(grace);
  }

  #receive(incoming: IncomingMessage, response: ServerResponse): void {
    this.#active++;
    let isOver = false;
    let isCut = false;
    let hungUp: (() => void) | undefined;
    response.once("close", () => {
      isOver = true;
      // A connection that broke drops what it still had to write, and the response then counts as written.
      isCut = !response.writableFinished || incoming.socket.destroyed;
      if (isCut) hungUp?.();
      if (--this.#active === 0) this.#idle?.();
    });
    const send = (answer: Answer): void => {
      if (!isOver) this.#send(response, answer);
    };
    const fail = (error: unknown): void => send(this.#errorAnswer(error, incoming));

    const method = incoming.method!;
    if (method === "OPTIONS") {
      incoming.resume();
      send({ status: 204, headers: { "Access-Control-Max-Age": "86400" } });
      return;
    }
    const url = incoming.url!;
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    let found: { route: Route; params: Record<string, string> };
    try {
      // Only what changes nothing is answered to HEAD: a pop would take messages that nobody sees.
      found = this.#find(method === "HEAD" && !path.startsWith("/api/") ? "GET" : method, path);
    } catch (error) {
      incoming.resume();
      fail(error);
      return;
    }
    this.#readBody(incoming)
      .then((body) => {
        if (isOver) return;
        const request: Request = {
          method,
          path,
          params: found.params,
          query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)),
          headers: incoming.headers,
          text: () => bodyText(body),
          json: () => parseJson(body),
          onHangUp: (listener) => {
            hungUp = listener;
            if (isCut) listener();
          },
        };
        return Promise.resolve(serve(found.route, request)).then(send);
      })
      .catch(fail);
  }

  #find(method: string, path: string): { route: Route; params: Record<string, string> } {
    const exact = this.#exact.get(`${method} ${path}`);
    if (exact) return { route: exact, params: {} };
    const parts = path.split("/");
    const allowed = new Set<string>(this.#methods.get(path) ?? []);
    for (const { route, segments } of this.#patterns) {
      const params = match(segments, parts);
      if (!params) continue;
      if (route.method === method) return { route, params };
      allowed.add(route.method);
    }
    if (allowed.size > 0) {
      throw new MethodNotAllowed(method, path, [...allowed]);
    }
    throw new BrokerError("NOT_FOUND", `There is no ${method} ${path}.`);
  }

  #readBody(incoming: IncomingMessage): Promise<Buffer> {
    const { bodyBytesMax } = this.#options;
    const tooLarge = (): BrokerError =>
      new BrokerError(
        "BODY_TOO_LARGE",
        `The body is larger than ${bodyBytesMax} bytes (QUEEN_MAX_BODY_BYTES).`,
      );
    return new Promise((resolve, reject) => {
      let chunks: Buffer[] = [];
      let bytes = 0;
      let isTooLarge = Number(incoming.headers["content-length"] ?? 0) > bodyBytesMax;
      if (isTooLarge) reject(tooLarge());
      incoming.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (!isTooLarge && bytes <= bodyBytesMax) {
          chunks.push(chunk);
          return;
        }
        isTooLarge = true;
        chunks = [];
        reject(tooLarge());
        // The rest is read and dropped: a client whose connection breaks while it writes never sees the answer.
        if (bytes > bodyBytesMax + DROPPED_BYTES_MAX) incoming.destroy();
      });
      incoming.on("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
      incoming.on("error", reject);
    });
  }

  #send(response: ServerResponse, answer: Answer): void {
    const body = answer.body ?? "";
    const headers = [...CORS];
    if (answer.status !== 204) {
      headers.push(
        "Content-Type",
        answer.contentType ?? "application/json",
        "Content-Length",
        String(answer.isText ? Buffer.byteLength(body) : body.length),
      );
    }
    if (answer.headers) for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
    if (this.#stopping) headers.push("Connection", "close");
    response.writeHead(answer.status, headers);
    if (isCrashPoint("answer-half")) response.write(body.slice(0, body.length / 2), crash);
    else response.end(body, answer.isText ? "utf8" : "latin1");
  }

  #errorAnswer(error: unknown, incoming: IncomingMessage): Answer {
    const known = this.#options.classify(error);
    const { status, code } = known;
    let { message } = known;
    if (code === "INTERNAL") {
      this.#options.log.error(
        { error, method: incoming.method, path: incoming.url?.split("?")[0] },
        "http.failed",
      );
      message = "The broker failed to handle the request; its log has the reason.";
    }
    const headers: Record<string, string> = {};
    if (status === 503) headers["Retry-After"] = RETRY_AFTER_S;
    if (error instanceof MethodNotAllowed) headers.Allow = error.allowed.join(", ");
    return { status, body: JSON.stringify({ error: message, code }), isText: true, headers };
  }
}

function serve(route: Route, request: Request): Promise<Answer> | Answer {
  return route.handle(request, {
    query: readQuery(route.query, request.query),
    body: route.body && !route.body.readByHandler ? checkBody(route.body.shape, bodyOf(request)) : undefined,
  });
}

/** Some clients say nothing by nothing, others by `null` or an empty array. */
function bodyOf(request: Request): unknown {
  const body = request.json() ?? {};
  return Array.isArray(body) && body.length === 0 ? {} : body;
}

class MethodNotAllowed extends BrokerError {
  readonly allowed: readonly string[];

  constructor(method: string, path: string, allowed: readonly string[]) {
    super("METHOD_NOT_ALLOWED", `${path} takes ${allowed.join(", ")}, not ${method}.`);
    this.allowed = allowed;
  }
}

function match(segments: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index]!;
    if (!segment.startsWith(":")) {
      if (segment !== parts[index]) return undefined;
      continue;
    }
    try {
      params[segment.slice(1)] = decodeURIComponent(parts[index]!);
    } catch {
      throw new BrokerError(
        "VALIDATION_FAILED",
        `${segment.slice(1)} in the path is not percent-encoded UTF-8.`,
      );
    }
  }
  return params;
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const text = bodyText(body);
  try {
    return JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
  } catch (error) {
    throw new BrokerError(
      "INVALID_JSON",
      `Invalid JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
