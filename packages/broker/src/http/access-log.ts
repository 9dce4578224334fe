/**
 * The access log says what became of requests: at `debug` one line each, at `info` what changed the control
 * plane and what was refused, which is audited too, as warnings what took too long or failed for the broker's
 * fault. A line has the route, never the
 * path or the query, which can hold transactionIds and secrets, and nothing of a body.
 */
import type { BrokerError } from "@queen/protocol";
import type { AuditLog } from "../access/audit-log.ts";
import { type Identity, NOBODY } from "../access/identity.ts";
import type { Log, LogFields } from "../telemetry.ts";
import { givenRequestId, newRequestId } from "./request-id.ts";
import type { Answer, Route } from "./route.ts";

/** What the log reads of an HTTP request. */
export interface Incoming {
  readonly method?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** One request and its answer, as the log sees them. */
export class Exchange {
  readonly incoming: Incoming;
  readonly givenId: string | undefined;
  /** Undefined: there is none, or it is not known yet. */
  route: Route | undefined;
  params: Readonly<Record<string, string>> = {};
  /** Who sent it, as far as is known yet. */
  identity: Identity = NOBODY;
  /** When the whole request was there: how long a client takes to send it is not the broker's matter. */
  readAtMs: number;
  bytesIn = 0;
  isLongPoll = false;
  /** The client among whose waiting pops it counts. */
  waitsAs: string | undefined;
  /** The credential among whose connections it counts. */
  servedAs: string | undefined;
  #madeId: string | undefined;

  constructor(incoming: Incoming, nowMs: number) {
    this.incoming = incoming;
    this.givenId = givenRequestId(incoming.headers["x-request-id"]);
    this.readAtMs = nowMs;
  }

  get requestId(): string {
    this.#madeId ??= this.givenId ?? newRequestId();
    return this.#madeId;
  }

  get address(): string {
    return this.incoming.socket.remoteAddress ?? "";
  }

  get isDataPlane(): boolean {
    return this.route?.tag === "Data plane";
  }

  get fields(): LogFields {
    return {
      requestId: this.requestId,
      method: this.incoming.method,
      route: this.route?.path ?? "none",
    };
  }
}

export interface AccessLogOptions {
  readonly log: Log;
  readonly audit: AuditLog;
  /** A request that took longer is worth a warning; 0: none is. */
  readonly slowMs: number;
  readonly now: () => number;
}

// Names in a path that say what was changed. A transactionId is its producer's matter.
const NAMED = ["queue", "partition", "group", "partitionId", "id", "user"];
// What bodies say of it.
const NAMED_IN_BODY = [
  ...[
    "queue",
    "partition",
    "consumerGroup",
    "name",
    "role",
    "enabled",
    "all",
    "from",
    "to",
    "toEnd",
    "timestamp",
  ],
  ...["subscriptionTimestamp", "reason"],
];
const SHOWN_LENGTH_MAX = 100;
// Notes that programs make by the thousand are no changes that somebody would ask about.
const NO_CHANGES = ["/api/v1/traces", "/internal/api/notify", "/api/v1/stats/refresh"];

export class AccessLog {
  readonly #options: AccessLogOptions;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  answered(exchange: Exchange, answer: Answer, bytesOut: number): void {
    const { log, slowMs, now } = this.#options;
    const { route, incoming } = exchange;
    const durationMs = Math.round((now() - exchange.readAtMs) * 10) / 10;
    const { status } = answer;
    if (slowMs > 0 && durationMs > slowMs && !exchange.isLongPoll) {
      // The message says what repeats: the same route is named once in a while, not once a request.
      const message = `${incoming.method} ${route?.path} took more than ${slowMs} ms`;
      log.warn({ message, ...exchange.fields, status, durationMs }, "http.slow");
    }
    const isChange = route && isControl(route) && status < 400;
    const isRefusal = status === 401 || status === 403;
    if (!isChange && !isRefusal && !log.writes("debug")) return;
    const line = { ...exchange.fields, status, durationMs, bytesIn: exchange.bytesIn, bytesOut };
    if (!isChange && !isRefusal) {
      log.debug(line, "http.request");
      return;
    }
    const actor = exchange.identity.name;
    const remote = exchange.address;
    const names = { ...namesIn(exchange.params), ...answer.about };
    log.info({ ...line, actor, remote, ...names }, isChange ? "http.change" : "http.refused");
    this.#options.audit.add({
      actor,
      address: remote,
      action: `${incoming.method} ${route?.path ?? "none"}`,
      target: Object.entries(names)
        .map(([name, value]) => `${name}=${value}`)
        .join(" "),
      status,
    });
  }

  /** The client left before there was an answer. */
  hungUp(exchange: Exchange): void {
    const { log, now } = this.#options;
    if (!log.writes("debug")) return;
    const durationMs = Math.round((now() - exchange.readAtMs) * 10) / 10;
    log.debug({ ...exchange.fields, durationMs, bytesIn: exchange.bytesIn }, "http.hung_up");
  }

  /** A request that was not answered as it should be, by the broker's fault or for want of its database. */
  failed(exchange: Exchange, error: unknown, known: BrokerError): void {
    const { log } = this.#options;
    const { status, code } = known;
    if (code === "INTERNAL") log.error({ error, ...exchange.fields, status }, "http.failed");
    else {
      const message = `${exchange.incoming.method} ${exchange.route?.path} was answered ${status} ${code}`;
      log.warn({ message, ...exchange.fields, reason: known.message }, "http.unavailable");
    }
  }
}

/** Whether a route changes something of the control plane. */
export const isControl = ({ method, tag, path }: Route): boolean =>
  method !== "GET" && tag !== "Data plane" && !NO_CHANGES.includes(path);

/** What a change is about, in the words of its body: names and decisions, no payloads. */
export function namesInBody(body: unknown): Readonly<Record<string, string>> {
  if (typeof body !== "object" || body === null) return {};
  const { ids } = body as { readonly ids?: unknown };
  const named = Object.entries(body).filter(
    ([name, value]) => NAMED_IN_BODY.includes(name) && ["string", "boolean", "number"].includes(typeof value),
  );
  return {
    ...Object.fromEntries(named.map(([name, value]) => [name, String(value).slice(0, SHOWN_LENGTH_MAX)])),
    ...(Array.isArray(ids) ? { ids: String(ids.length) } : {}),
  };
}

function namesIn(params: Readonly<Record<string, string>>): LogFields {
  return Object.fromEntries(Object.entries(params).filter(([name]) => NAMED.includes(name)));
}
