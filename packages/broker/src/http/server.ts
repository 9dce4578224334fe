/**
 * The HTTP server of one worker: a request is received, its route found, its sender admitted, its body read as it came;
 * then it is served, and its answer written.
 */

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { BrokerError } from "@queen/protocol";
import type { AuditLog } from "../access/audit-log.ts";
import type { Identity } from "../access/identity.ts";
import { bodyText, JsonScanner } from "../operations/json-scanner.ts";
import type { Log } from "../telemetry.ts";
import { AccessLog, Exchange, isControl, namesInBody } from "./access-log.ts";
import { Admission, type AdmissionOptions, checkHeaders } from "./admission.ts";
import { AnswerWriter, type Outgoing } from "./answer-writer.ts";
import { checkBody } from "./body-check.ts";
import { closeServer } from "./closing.ts";
import { Cors } from "./cors.ts";
import { errorAnswer } from "./error-answer.ts";
import { PlainConnections } from "./plain-connections.ts";
import { PlainRequest } from "./plain-request.ts";
import { RequestBodies } from "./request-body.ts";
import type { Answer, Request } from "./route.ts";
import type { Router } from "./router.ts";
import { checkScope, type QueueOfPartition } from "./scope.ts";
import { Target } from "./target.ts";
import { readTls, type TlsFiles, watchTls } from "./tls.ts";

export interface HttpServerOptions extends AdmissionOptions {
  readonly router: Router;
  readonly bodyBytesMax: number;
  readonly audit: AuditLog;
  readonly queueOfPartition: QueueOfPartition;
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
// A longer body is looked at before objects are made of it: nested without end it would take a hundred times its bytes.
const UNSEEN_BYTES_MAX = 64 * 1024;

export class HttpServer {
  readonly #server: Server | TlsServer;
  #stopWatching: (() => void) | undefined;
  readonly #options: HttpServerOptions;
  readonly #accessLog: AccessLog;
  readonly #cors: Cors;
  readonly #admission: Admission;
  readonly #bodies: RequestBodies;
  readonly #answers: AnswerWriter;
  readonly #router: Router;
  readonly #plain: PlainConnections;
  #active = 0;
  #idle: (() => void) | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const { log, audit, slowRequestMs: slowMs, now } = options;
    this.#accessLog = new AccessLog({ log, audit, slowMs, now });
    this.#cors = new Cors(options.corsOrigins);
    this.#admission = new Admission(options);
    const bytesMax = options.bodyBytesMax;
    this.#bodies = new RequestBodies({ bytesMax, heldBytesMax: BODIES_HELD_MAX * bytesMax });
    this.#answers = new AnswerWriter({ cors: this.#cors, now });
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
    const connected = tls ? "secureConnection" : "connection";
    const [handOver] = this.#server.listeners(connected);
    this.#server.removeAllListeners(connected);
    this.#plain = new PlainConnections({
      bodyBytesMax: options.bodyBytesMax,
      keepAliveMs: KEEP_ALIVE_TIMEOUT_MS,
      firstRequestMs: HEADERS_TIMEOUT_MS,
      reasons: STATUS_CODES,
      receive: (request, answer) => this.#receive(request, answer),
      handOver: (socket) => handOver!.call(this.#server, socket),
    });
    if (this.#admission.limitsConnections) {
      this.#server.on("connection", (socket: Socket) => this.#admission.connected(socket, tls !== undefined));
    }
    this.#server.on(connected, (socket: Socket) => {
      if (!socket.writableEnded) this.#plain.accept(socket);
    });
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

  /** Whether connections are taken that the primary offers to all workers. */
  accept(isAccepting: boolean): void {
    // Above its maximum a worker of a cluster leaves a connection to the others; 0 means none in some versions of Node.js.
    this.#server.maxConnections = isAccepting ? Infinity : -1;
  }

  /** From now on every answer asks its client to come back by another connection, which may lead elsewhere. */
  turnAway(): void {
    this.#answers.turnAway();
  }

  /** So many of the clients, from 0 to 1, are asked to come back by another connection. */
  turnAwaySome(share: number): void {
    this.#server.getConnections((_error, count) => this.#answers.turnAway(Math.floor(share * (count ?? 0))));
  }

  /** Accepts nothing more; resolves when all requests under way are answered, or after a while. */
  async stop(timeoutMs: number): Promise<void> {
    this.turnAway();
    this.#answers.endStreams();
    this.#stopWatching?.();
    await closeServer(this.#server, [this.#server, this.#plain], () => this.#answered(), timeoutMs);
  }

  /** Resolves when no request is under way. */
  #answered(): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle = resolve;
    });
  }

  #receive(incoming: IncomingMessage | PlainRequest, response: Outgoing): void {
    this.#active++;
    const { now } = this.#options;
    const exchange = new Exchange(incoming, now());
    let isAnswered = false;
    let isOver = false;
    let isCut = false;
    let hungUp: (() => void) | undefined;
    let releaseBody: (() => void) | undefined;
    response.once("close", () => {
      isOver = true;
      // A connection that broke drops what it still had to write, and the response then counts as written.
      isCut = !response.writableFinished || incoming.socket.destroyed;
      if (!isAnswered) this.#accessLog.hungUp(exchange);
      if (isCut) hungUp?.();
      releaseBody?.();
      this.#admission.leave(exchange);
      this.#answers.closed(response);
      if (--this.#active === 0) this.#idle?.();
    });
    const send = (answer: Answer): void => {
      if (isOver) return;
      isAnswered = true;
      const bytes = this.#answers.write(response, answer, exchange);
      this.#accessLog.answered(exchange, answer, bytes);
    };
    const fail = (error: unknown): void => send(this.#failed(error, exchange));

    const dropBody = (): void => {
      if (!(incoming instanceof PlainRequest)) this.#bodies.drop(incoming);
    };
    const method = incoming.method!;
    if (method === "OPTIONS") {
      dropBody();
      send({ status: 204, headers: this.#cors.preflightHeaders(incoming.headers.origin) });
      return;
    }
    let target: Target;
    try {
      checkHeaders(incoming);
      target = this.#targetOf(incoming);
    } catch (error) {
      dropBody();
      fail(error);
      return;
    }
    const { path, route, params } = target;
    exchange.route = route;
    exchange.params = params;
    const refuse = (error: unknown): void => {
      dropBody();
      fail(error);
    };
    const admitted = (identity: Identity): void => {
      if (isOver) return;
      const serve = (body: Buffer): void => {
        if (isOver) return;
        exchange.readAtMs = now();
        exchange.bytesIn = body.length;
        const request: Request = {
          identity,
          address: exchange.address,
          requestId: () => exchange.requestId,
          method,
          path,
          params,
          headers: incoming.headers,
          text: () => bodyText(body),
          json: () => parseJson(body),
          onHangUp: (listener) => {
            hungUp = listener;
            if (isCut) listener();
          },
        };
        const served = this.#serve(exchange, target, request);
        if (served instanceof Promise) served.then(send).catch(fail);
        else send(served);
      };
      if (incoming instanceof PlainRequest) {
        releaseBody = this.#bodies.hold(incoming.body);
        serve(incoming.body);
      } else {
        const { whole, release } = this.#bodies.read(incoming);
        releaseBody = release;
        whole.then(serve).catch(fail);
      }
    };
    try {
      const identity = this.#admission.admit(exchange, route, path, incoming);
      if (identity instanceof Promise) identity.then(admitted).catch(refuse);
      else admitted(identity);
    } catch (error) {
      refuse(error);
    }
  }

  /** A line that a client repeats leads where it led before. */
  #targetOf(incoming: IncomingMessage | PlainRequest): Target {
    if (!(incoming instanceof PlainRequest)) return new Target(this.#router, incoming.method!, incoming.url!);
    const { line } = incoming.head;
    line.target ??= new Target(this.#router, line.method, line.url);
    return line.target;
  }

  #serve(exchange: Exchange, { route, query }: Target, request: Request): Promise<Answer> | Answer {
    exchange.isLongPoll = (query as { readonly wait?: unknown }).wait === true;
    if (exchange.isLongPoll) this.#admission.enterWaiting(exchange);
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

  #failed(error: unknown, exchange: Exchange): Answer {
    const known = this.#options.classify(error);
    if (known.status >= 500) this.#accessLog.failed(exchange, error, known);
    return errorAnswer(error, known);
  }
}

/** Some clients say nothing by nothing, others by `null` or an empty array. */
function bodyOf(request: Request): unknown {
  const body = request.json() ?? {};
  return Array.isArray(body) && body.length === 0 ? {} : body;
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const text = bodyText(body);
  if (body.length > UNSEEN_BYTES_MAX) checkJson(text);
  try {
    return JSON.parse(Buffer.from(text, "latin1").toString("utf8"));
  } catch {
    checkJson(text);
    throw new BrokerError("INVALID_JSON", "Invalid JSON");
  }
}

/** Throws where it is no JSON, or nested too deep, and says where. */
function checkJson(text: string): void {
  const scanner = new JsonScanner(text);
  scanner.expectEnd(scanner.skipValue(scanner.skipWhitespace(0)));
}
