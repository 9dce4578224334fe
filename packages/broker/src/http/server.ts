/**
 * The HTTP server of one worker: reads requests, finds their route, and writes answers. Bodies are held as
 * they came; an answer is one string with one byte per character, or ordinary text.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { BrokerError, POP_BYTES_MAX } from "@queen/protocol";
import type { AuditLog } from "../access/audit-log.ts";
import type { Guard } from "../access/guard.ts";
import type { Identity } from "../access/identity.ts";
import type { RateLimiter } from "../access/rate-limiter.ts";
import { isFromPage, sessionOf } from "../access/session-cookie.ts";
import type { Tally } from "../access/tally.ts";
import { TooManyRequests } from "../access/too-many-requests.ts";
import { crash, isCrashPoint } from "../crash-point.ts";
import { bodyText, JsonScanner } from "../operations/json-scanner.ts";
import type { Log } from "../telemetry.ts";
import { AccessLog, Exchange, isControl, namesInBody } from "./access-log.ts";
import { checkBody } from "./body-check.ts";
import { closeServer } from "./closing.ts";
import { Cors } from "./cors.ts";
import { readQuery } from "./parameters.ts";
import { isLarge, writeInPieces } from "./pieces.ts";
import { RequestBodies } from "./request-body.ts";
import type { Answer, Request, Route } from "./route.ts";
import { type Found, MethodNotAllowed, type Router } from "./router.ts";
import { checkScope, type QueueOfPartition } from "./scope.ts";
import { readTls, type TlsFiles, watchTls } from "./tls.ts";
import { UnreadAnswers } from "./unread-answers.ts";

export interface HttpServerOptions {
  readonly router: Router;
  readonly bodyBytesMax: number;
  readonly guard: Guard;
  readonly audit: AuditLog;
  readonly queueOfPartition: QueueOfPartition;
  /** Requests of a client; undefined: as many as it sends. */
  readonly rate: RateLimiter | undefined;
  /** Connections of an address. */
  readonly connections: Tally;
  /** Connections on which a credential is served. */
  readonly serving: Tally;
  /** Long polls of a client. */
  readonly waiting: Tally;
  /** Origins whose pages may use the interface; `*`: any. */
  readonly corsOrigins: readonly string[];
  /** Undefined: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** What a client is told of an error. */
  readonly classify: (error: unknown) => BrokerError;
  readonly log: Log;
  readonly slowRequestMs: number;
  readonly now: () => number;
}

// Slow clients: headers within 15 s, a whole request within 30 s, with the pause between two looks at them. A long
// poll is the answer's matter.
const TIMEOUTS_CHECKED_EVERY_MS = 2_000;
const HEADERS_TIMEOUT_MS = 15_000 - TIMEOUTS_CHECKED_EVERY_MS;
const REQUEST_TIMEOUT_MS = 30_000 - TIMEOUTS_CHECKED_EVERY_MS;
// Longer than the 60 s after which common load balancers drop idle connections.
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
// Bodies that a worker holds at once, in bodies of the largest size.
const BODIES_HELD_MAX = 4;
// One large pop, and as much again for those who read at once.
const UNREAD_BYTES_MAX = POP_BYTES_MAX;
// Proxies add a dozen; nobody needs hundreds.
const HEADERS_MAX = 200;
const RETRY_AFTER_S = "1";
const WAITING_PAUSE_MS = 5_000;
const SERVING_PAUSE_MS = 1_000;
const CONNECTION_REFUSAL = JSON.stringify({
  error: "This address has as many connections as it may have (QUEEN_MAX_CONNECTIONS_PER_ADDRESS)",
  code: "TOO_MANY_REQUESTS",
});

export class HttpServer {
  readonly #server: Server | TlsServer;
  #stopWatching: (() => void) | undefined;
  readonly #options: HttpServerOptions;
  readonly #accessLog: AccessLog;
  readonly #cors: Cors;
  readonly #bodies: RequestBodies;
  readonly #unread: UnreadAnswers;
  readonly #router: Router;
  readonly #streams = new Set<() => void>();
  #active = 0;
  #stopping = false;
  #idle: (() => void) | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const { log, audit, slowRequestMs: slowMs, now } = options;
    this.#accessLog = new AccessLog({ log, audit, slowMs, now });
    this.#cors = new Cors(options.corsOrigins);
    const bytesMax = options.bodyBytesMax;
    this.#bodies = new RequestBodies({ bytesMax, heldBytesMax: BODIES_HELD_MAX * bytesMax });
    this.#unread = new UnreadAnswers({ bytesMax: UNREAD_BYTES_MAX, now });
    this.#router = options.router;
    const settings = {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECKED_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      noDelay: true,
    };
    const receive = (request: IncomingMessage, response: ServerResponse): void =>
      this.#receive(request, response);
    const { tls } = options;
    if (tls) {
      const server = createTlsServer({ ...settings, ...readTls(tls) }, receive);
      this.#stopWatching = watchTls(tls, server, (event, error) =>
        event === "tls.renewed" ? log.info({}, event) : log.warn({ error }, event),
      );
      this.#server = server;
    } else this.#server = createServer(settings, receive);
    if (options.connections.limit > 0) this.#server.on("connection", (socket) => this.#connected(socket));
  }

  #connected(socket: Socket): void {
    const { connections } = this.#options;
    const address = socket.remoteAddress ?? "";
    if (connections.enter(address)) socket.once("close", () => connections.leave(address));
    else if (this.#options.tls) socket.destroy();
    else {
      socket.end(
        `HTTP/1.1 429 Too Many Requests\r\nRetry-After: ${RETRY_AFTER_S}\r\nConnection: close\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${CONNECTION_REFUSAL.length}\r\n\r\n${CONNECTION_REFUSAL}`,
      );
      socket.destroySoon();
    }
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

  /** From now on every answer asks its client to come back by another connection, which may lead elsewhere. */
  turnAway(): void {
    this.#stopping = true;
  }

  /** Accepts nothing more; resolves when all requests under way are answered, or after a while. */
  async stop(timeoutMs: number): Promise<void> {
    this.turnAway();
    for (const end of this.#streams) end();
    this.#stopWatching?.();
    await closeServer(this.#server, () => this.#answered(), timeoutMs);
  }

  /** Resolves when no request is under way. */
  #answered(): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle = resolve;
    });
  }

  #receive(incoming: IncomingMessage, response: ServerResponse): void {
    this.#active++;
    const { now } = this.#options;
    const exchange = new Exchange(incoming, now());
    let isAnswered = false;
    let isOver = false;
    let isCut = false;
    let hungUp: (() => void) | undefined;
    response.once("close", () => {
      isOver = true;
      // A connection that broke drops what it still had to write, and the response then counts as written.
      isCut = !response.writableFinished || incoming.socket.destroyed;
      if (!isAnswered) this.#accessLog.hungUp(exchange);
      if (isCut) hungUp?.();
      if (exchange.waitsAs !== undefined) this.#options.waiting.leave(exchange.waitsAs);
      if (exchange.servedAs !== undefined) this.#options.serving.leave(exchange.servedAs);
      this.#unread.remove(response);
      if (--this.#active === 0) this.#idle?.();
    });
    const send = (answer: Answer): void => {
      if (isOver) return;
      isAnswered = true;
      const bytes = this.#send(response, answer, exchange);
      this.#accessLog.answered(exchange, answer, bytes);
    };
    const fail = (error: unknown): void => send(this.#errorAnswer(error, exchange));

    const method = incoming.method!;
    if (method === "OPTIONS") {
      this.#bodies.drop(incoming);
      send({ status: 204, headers: this.#cors.preflightHeaders(incoming.headers.origin) });
      return;
    }
    const url = incoming.url!;
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    let found: Found;
    try {
      checkHeaders(incoming);
      // Only what changes nothing is answered to HEAD: a pop would take messages that nobody sees.
      found = this.#router.find(method === "HEAD" && !path.startsWith("/api/") ? "GET" : method, path);
    } catch (error) {
      this.#bodies.drop(incoming);
      fail(error);
      return;
    }
    exchange.route = found.route;
    exchange.params = found.params;
    const refuse = (error: unknown): void => {
      this.#bodies.drop(incoming);
      fail(error);
    };
    const admitted = (identity: Identity): void => {
      const { whole, release } = this.#bodies.read(incoming);
      response.once("close", release);
      whole
        .then((body) => {
          if (isOver) return;
          exchange.readAtMs = now();
          exchange.bytesIn = body.length;
          const request: Request = {
            identity,
            address: exchange.address,
            get requestId() {
              return exchange.requestId;
            },
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
          return Promise.resolve(this.#serve(exchange, found.route, request)).then(send);
        })
        .catch(fail);
    };
    try {
      const identity = this.#admit(exchange, found.route, path, incoming);
      if (identity instanceof Promise) identity.then(admitted).catch(refuse);
      else admitted(identity);
    } catch (error) {
      refuse(error);
    }
  }

  /** Before anything of the body is read. */
  #admit(
    exchange: Exchange,
    route: Route,
    path: string,
    incoming: IncomingMessage,
  ): Identity | Promise<Identity> {
    const { guard } = this.#options;
    const check = (identity: Identity): Identity => {
      exchange.identity = identity;
      this.#limit(exchange);
      identity.check(route.access);
      this.#checkEncoding(incoming);
      return identity;
    };
    const refuse = (error: unknown): never => {
      this.#limit(exchange); // who is nobody counts, too
      throw error;
    };
    if (!guard.isOn) return check(guard.anybody);
    const credentials = incoming.headersDistinct.authorization ?? [];
    if (credentials.length > 1) {
      throw new BrokerError("UNAUTHENTICATED", "There are several Authorization headers; send one.");
    }
    const { address } = exchange;
    const session = credentials.length === 0 ? sessionOf(incoming.headers) : undefined;
    if (session !== undefined) checkForged(route, incoming);
    const authorization = credentials[0] ?? session;
    let identity: Identity | Promise<Identity>;
    try {
      identity = guard.identify(route.access, { path, authorization, address });
    } catch (error) {
      return refuse(error);
    }
    return identity instanceof Promise ? identity.then(check, refuse) : check(identity);
  }

  /** How much a client may send, whatever becomes of it. */
  #limit(exchange: Exchange): void {
    const { rate, serving } = this.#options;
    const waitMs = rate?.take(clientOf(exchange)) ?? 0;
    if (waitMs > 0) throw new TooManyRequests("Too many requests from this client", waitMs);
    if (serving.limit === 0 || !exchange.identity.isKnown) return;
    const { name } = exchange.identity;
    if (!serving.enter(name)) {
      throw new TooManyRequests(
        `This credential uses ${serving.limit} connections already (QUEEN_MAX_CONNECTIONS_PER_CREDENTIAL)`,
        SERVING_PAUSE_MS,
      );
    }
    exchange.servedAs = name;
  }

  #checkEncoding(incoming: IncomingMessage): void {
    const encoding = incoming.headers["content-encoding"];
    if (encoding === undefined || encoding === "identity") return;
    throw new BrokerError(
      "UNSUPPORTED_ENCODING",
      `The body is encoded (Content-Encoding: ${encoding.slice(0, 40)}): send it as it is.`,
    );
  }

  #serve(exchange: Exchange, route: Route, request: Request): Promise<Answer> | Answer {
    const query = readQuery(route.query, request.query);
    exchange.isLongPoll = (query as { readonly wait?: unknown }).wait === true;
    if (exchange.isLongPoll) this.#enterWaiting(exchange);
    const handle = (): Promise<Answer> | Answer =>
      route.handle(request, {
        query,
        body:
          route.body && !route.body.readByHandler ? checkBody(route.body.shape, bodyOf(request)) : undefined,
      });
    const served = !request.identity.isLimited
      ? handle()
      : checkScope(route, request, query, this.#options.queueOfPartition).then(handle);
    if (!isControl(route)) return served;
    return Promise.resolve(served).then((answer) => ({
      ...answer,
      about: { ...namesInBody(request.json()), ...answer.about },
    }));
  }

  #enterWaiting(exchange: Exchange): void {
    const { waiting } = this.#options;
    if (waiting.limit === 0) return;
    const client = clientOf(exchange);
    if (!waiting.enter(client)) {
      throw new TooManyRequests(
        `This client has ${waiting.limit} pops waiting already (QUEEN_MAX_WAITING_POPS)`,
        WAITING_PAUSE_MS,
      );
    }
    exchange.waitsAs = client;
  }

  /** Returns the bytes of the body. */
  #send(response: ServerResponse, answer: Answer, exchange: Exchange): number {
    if (answer.stream) return this.#stream(response, answer, exchange);
    const body = answer.body ?? "";
    const bytes = answer.isText ? Buffer.byteLength(body) : body.length;
    const headers = this.#headers(answer, exchange);
    if (answer.status !== 204 && answer.status !== 304) {
      headers.push("Content-Type", answer.contentType ?? "application/json", "Content-Length", String(bytes));
    }
    response.writeHead(answer.status, headers);
    if (isCrashPoint("answer-half")) response.write(body.slice(0, body.length / 2), crash);
    else if (answer.isText) response.end(body, "utf8");
    else if (isLarge(body)) writeInPieces(response, body);
    else response.end(body, "latin1");
    this.#unread.add(response, bytes);
    return bytes;
  }

  #headers(answer: Answer, exchange: Exchange): string[] {
    const headers = [...this.#cors.headers(exchange.incoming.headers.origin as string | undefined)];
    // A push, pop or ack that went well spares itself an id that nobody asked for.
    if (exchange.givenId !== undefined || answer.status >= 400 || !exchange.isDataPlane) {
      headers.push("X-Request-Id", exchange.requestId);
    }
    if (answer.headers) for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
    if (this.#stopping) headers.push("Connection", "close");
    return headers;
  }

  #stream(response: ServerResponse, answer: Answer, exchange: Exchange): number {
    response.writeHead(answer.status, [
      ...this.#headers(answer, exchange),
      "Content-Type",
      answer.contentType!,
    ]);
    response.flushHeaders();
    const ended = (): void => {
      response.end();
    };
    this.#streams.add(ended);
    response.once("close", () => this.#streams.delete(ended));
    answer.stream!({
      write: (text) => response.write(text),
      get isBehind() {
        return response.writableNeedDrain;
      },
      end: ended,
      onEnd: (listener) => response.once("close", listener),
    });
    if (this.#stopping) ended();
    return 0;
  }

  #errorAnswer(error: unknown, exchange: Exchange): Answer {
    const known = this.#options.classify(error);
    const { status, code } = known;
    if (status >= 500) this.#accessLog.failed(exchange, error, known);
    const message =
      code === "INTERNAL"
        ? "The broker failed to handle the request; its log has the reason beside this answer's X-Request-Id."
        : known.message;
    const headers: Record<string, string> = {};
    if (status === 503 || status === 429) headers["Retry-After"] = RETRY_AFTER_S;
    if (status === 401) headers["WWW-Authenticate"] = "Bearer";
    if (error instanceof TooManyRequests) headers["Retry-After"] = String(Math.ceil(error.waitMs / 1000));
    if (error instanceof MethodNotAllowed) headers.Allow = error.allowed.join(", ");
    return { status, body: JSON.stringify({ error: message, code }), isText: true, headers };
  }
}

/** Who is counted: a credential, or the address of those who have none. */
const clientOf = ({ identity, address }: Exchange): string => (identity.isKnown ? identity.name : address);

/** A browser sends the cookie along for whoever asks it to; only the broker's own page can send the header, too. */
function checkForged(route: Route, incoming: IncomingMessage): void {
  const isLook = route.method === "GET" && route.access !== "consume"; // a pop takes messages
  if (isLook || isFromPage(incoming.headers)) return;
  throw new BrokerError("FORBIDDEN", "With the session's cookie this needs the header Queen-Page: 1.");
}

function checkHeaders({ rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length <= 2 * HEADERS_MAX) return;
  throw new BrokerError("VALIDATION_FAILED", `There are more than ${HEADERS_MAX} headers; send fewer.`);
}

/** Some clients say nothing by nothing, others by `null` or an empty array. */
function bodyOf(request: Request): unknown {
  const body = request.json() ?? {};
  return Array.isArray(body) && body.length === 0 ? {} : body;
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const text = bodyText(body);
  try {
    return JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
  } catch {
    const scanner = new JsonScanner(text);
    scanner.expectEnd(scanner.skipValue(scanner.skipWhitespace(0))); // throws, and says where
    throw new BrokerError("INVALID_JSON", "Invalid JSON");
  }
}
