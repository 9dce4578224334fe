/**
 * Connections whose requests are plain are served here, without Node's HTTP machinery, which would be a third of what a small
 * request costs. With the first bytes that are no plain request a connection goes over to Node's server for good,
 * together with them: there is one judge of everything unusual, and nothing is ever half read here.
 *
 *   accepted ──▶ idle ──plain request──▶ being served ──answer written──▶ idle
 *                  └──anything else──▶ Node's server
 */
import type { Socket } from "node:net";
import { type AnswerHeads, PlainAnswer } from "./plain-answer.ts";
import { FormerHeads, type PlainRequest, readPlainRequest } from "./plain-request.ts";

export interface PlainConnectionsOptions {
  readonly bodyBytesMax: number;
  /** A connection without a request is closed after so long; before its first one sooner. */
  readonly keepAliveMs: number;
  readonly firstRequestMs: number;
  /** What statuses are called. */
  readonly reasons: AnswerHeads["reasons"];
  readonly receive: (request: PlainRequest, answer: PlainAnswer) => void;
  /** Node's server takes the socket, which has all its bytes. */
  readonly handOver: (socket: Socket) => void;
}

// A client that sends its next request at the last moment is still heard.
const GRACE_MS = 1_000;

export class PlainConnections {
  readonly options: PlainConnectionsOptions;
  readonly heads: AnswerHeads;
  readonly #connections = new Set<PlainConnection>();

  constructor(options: PlainConnectionsOptions) {
    this.options = options;
    const keptS = Math.floor(options.keepAliveMs / 1000);
    const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${keptS}\r\n`;
    this.heads = { reasons: options.reasons, keepAlive };
  }

  accept(socket: Socket): void {
    this.#connections.add(new PlainConnection(this, socket));
  }

  forget(connection: PlainConnection): void {
    this.#connections.delete(connection);
  }

  closeIdleConnections(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.destroy();
  }

  closeAllConnections(): void {
    for (const connection of this.#connections) connection.destroy();
  }
}

class PlainConnection {
  readonly #all: PlainConnections;
  readonly #socket: Socket;
  readonly #formers = new FormerHeads();
  #hadRequest = false;
  #answer: PlainAnswer | undefined;
  /** What came while a request was being served. */
  #waiting: Buffer | undefined;

  constructor(all: PlainConnections, socket: Socket) {
    this.#all = all;
    this.#socket = socket;
    socket.setTimeout(all.options.firstRequestMs);
    socket.on("data", this.#receive);
    socket.on("end", this.#end);
    socket.on("timeout", this.#timeout);
    socket.on("error", ignore);
    socket.on("close", this.#close);
  }

  get isIdle(): boolean {
    return this.#answer === undefined;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  readonly #receive = (bytes: Buffer): void => {
    if (this.#answer) {
      this.#waiting = this.#waiting ? Buffer.concat([this.#waiting, bytes]) : bytes;
      this.#socket.pause();
      return;
    }
    const { bodyBytesMax, keepAliveMs, receive } = this.#all.options;
    const request = readPlainRequest(bytes, this.#socket, bodyBytesMax, this.#formers);
    if (!request) {
      this.#handOver(bytes);
      return;
    }
    if (!this.#hadRequest) this.#socket.setTimeout(keepAliveMs + GRACE_MS);
    this.#hadRequest = true;
    this.#waiting = request.rest;
    this.#answer = new PlainAnswer(this.#socket, this.#all.heads, this.#written);
    receive(request, this.#answer);
  };

  readonly #written = (error?: Error | null): void => {
    const answer = this.#answer;
    if (error || !answer || this.#socket.destroyed) return; // if it could not be written, the connection closes
    this.#answer = undefined;
    answer.close();
    if (answer.isLast) {
      this.#socket.off("data", this.#receive); // its client was told
      this.#socket.destroySoon();
      return;
    }
    if (answer.hasTimeout) this.#socket.setTimeout(this.#all.options.keepAliveMs + GRACE_MS);
    const waiting = this.#waiting;
    if (!waiting) return;
    this.#waiting = undefined;
    this.#socket.resume();
    this.#receive(waiting);
  };

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    socket.off("data", this.#receive);
    socket.off("end", this.#end);
    socket.off("timeout", this.#timeout);
    socket.off("error", ignore);
    socket.off("close", this.#close);
    this.#all.forget(this);
    socket.setTimeout(0);
    socket.pause();
    socket.unshift(bytes);
    this.#all.options.handOver(socket);
    socket.resume();
  }

  /** A client that ends its half has left, as for Node's server. */
  readonly #end = (): void => {
    this.#socket.end();
  };

  readonly #timeout = (): void => {
    if (!this.#answer || this.#answer.hasTimeout) this.#socket.destroy();
  };

  readonly #close = (): void => {
    this.#all.forget(this);
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.close();
  };
}

/** Its `close` follows. */
function ignore(): void {}
