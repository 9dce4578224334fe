/** Who and what is admitted: connections of an address, senders with their credentials, and as much as each may send. */
import type { Socket } from "node:net";
import { BrokerError } from "@queen/protocol";
import type { Guard } from "../access/guard.ts";
import type { Identity } from "../access/identity.ts";
import type { RateLimiter } from "../access/rate-limiter.ts";
import { isFromPage, sessionOf } from "../access/session-cookie.ts";
import type { Tally } from "../access/tally.ts";
import { TooManyRequests } from "../access/too-many-requests.ts";
import type { Exchange } from "./access-log.ts";
import { RETRY_AFTER_S } from "./error-answer.ts";
import type { Route } from "./route.ts";

/** As much of an HTTP request as is needed here. */
export interface Incoming {
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string | string[] | undefined>> & {
    readonly "content-encoding"?: string | undefined;
  };
  readonly headersDistinct: { readonly authorization?: readonly string[] | undefined };
}

export interface AdmissionOptions {
  readonly guard: Guard;
  /** Requests of a client; undefined: as many as it sends. */
  readonly rate: RateLimiter | undefined;
  /** Connections of an address. */
  readonly connections: Tally;
  /** Connections on which a credential is served. */
  readonly serving: Tally;
  /** Long polls of a client. */
  readonly waiting: Tally;
}

// Proxies add a dozen; nobody needs hundreds.
const HEADERS_MAX = 200;
const WAITING_PAUSE_MS = 5_000;
const SERVING_PAUSE_MS = 1_000;
const CONNECTION_REFUSAL = JSON.stringify({
  error: "This address has as many connections as it may have (QUEEN_MAX_CONNECTIONS_PER_ADDRESS)",
  code: "TOO_MANY_REQUESTS",
});

export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get limitsConnections(): boolean {
    return this.#options.connections.limit > 0;
  }

  /** Counts a new connection, or closes it; one that is to speak TLS cannot be told why. */
  connected(socket: Socket, isTls: boolean): void {
    const { connections } = this.#options;
    const address = socket.remoteAddress ?? "";
    if (connections.enter(address)) socket.once("close", () => connections.leave(address));
    else if (isTls) socket.destroy();
    else {
      socket.on("error", () => undefined); // whoever is refused may leave as he likes
      socket.end(
        `HTTP/1.1 429 Too Many Requests\r\nRetry-After: ${RETRY_AFTER_S}\r\nConnection: close\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${CONNECTION_REFUSAL.length}\r\n\r\n${CONNECTION_REFUSAL}`,
      );
      socket.destroySoon();
    }
  }

  /** Before anything of the body is read. */
  admit(exchange: Exchange, route: Route, path: string, incoming: Incoming): Identity | Promise<Identity> {
    const { guard } = this.#options;
    const check = (identity: Identity): Identity => {
      exchange.identity = identity;
      this.#limit(exchange);
      identity.check(route.access);
      checkEncoding(incoming);
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

  /** It is a long poll. */
  enterWaiting(exchange: Exchange): void {
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

  /** It is over, and counts no more. */
  leave(exchange: Exchange): void {
    if (exchange.waitsAs !== undefined) this.#options.waiting.leave(exchange.waitsAs);
    if (exchange.servedAs !== undefined) this.#options.serving.leave(exchange.servedAs);
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
}

/** Whoever sends it. */
export function checkHeaders({ rawHeaders }: Incoming): void {
  if (rawHeaders.length <= 2 * HEADERS_MAX) return;
  throw new BrokerError("VALIDATION_FAILED", `There are more than ${HEADERS_MAX} headers; send fewer.`);
}

/** Who is counted: a credential, or the address of those who have none. */
const clientOf = ({ identity, address }: Exchange): string => (identity.isKnown ? identity.name : address);

/** A browser sends the cookie along for whoever asks it to; only the broker's own page can send the header, too. */
function checkForged(route: Route, incoming: Incoming): void {
  const isLook = route.method === "GET" && route.access !== "consume"; // a pop takes messages
  if (isLook || isFromPage(incoming.headers)) return;
  throw new BrokerError("FORBIDDEN", "With the session's cookie this needs the header Queen-Page: 1.");
}

function checkEncoding(incoming: Incoming): void {
  const encoding = incoming.headers["content-encoding"];
  if (encoding === undefined || encoding === "identity") return;
  throw new BrokerError(
    "UNSUPPORTED_ENCODING",
    `The body is encoded (Content-Encoding: ${encoding.slice(0, 40)}): send it as it is.`,
  );
}
