/** The answer to a plain request, on its way to the socket: head and body leave in one write. */
import type { Socket } from "node:net";

/** What all answers of a server have in common. */
export interface AnswerHeads {
  /** What statuses are called. */
  readonly reasons: Readonly<Record<number, string | undefined>>;
  /** The lines that say for how long a connection stays. */
  readonly keepAlive: string;
}

export class PlainAnswer {
  /** Answers of Node have their socket here while they are the first in line; this one needs no help with it. */
  readonly socket = null;
  /** Whether its connection ends with it. */
  isLast = false;
  /** Whether it may be cut. */
  hasTimeout = false;
  readonly #socket: Socket;
  readonly #heads: AnswerHeads;
  readonly #written: (error?: Error | null) => void;
  #head = "";
  #isEnded = false;
  #closed: (() => void) | undefined;

  /** `written`: all of it has left, or could not. */
  constructor(socket: Socket, heads: AnswerHeads, written: (error?: Error | null) => void) {
    this.#socket = socket;
    this.#heads = heads;
    this.#written = written;
  }

  get writableFinished(): boolean {
    return this.#isEnded && this.#socket.writableLength === 0;
  }

  get writableNeedDrain(): boolean {
    return this.#socket.writableNeedDrain;
  }

  once(event: "close" | "drain", listener: () => void): void {
    if (event === "drain") this.#socket.once("drain", listener);
    else this.#closed = listener;
  }

  writeHead(status: number, headers: readonly string[]): void {
    let head = `HTTP/1.1 ${status} ${this.#heads.reasons[status]}\r\n`;
    for (let index = 0; index < headers.length; index += 2) {
      head += `${headers[index]}: ${headers[index + 1]}\r\n`;
      if (headers[index] === "Connection") this.isLast = true;
    }
    this.#head = `${head}${dateLine()}${this.isLast ? "" : this.#heads.keepAlive}\r\n`;
  }

  flushHeaders(): void {
    this.write("");
  }

  write(text: string, then?: "latin1" | (() => void)): boolean {
    return this.#socket.write(this.#withHead(text), "latin1", typeof then === "function" ? then : undefined);
  }

  end(body = "", encoding: "latin1" | "utf8" = "latin1"): void {
    this.#isEnded = true;
    this.#socket.write(this.#withHead(body), encoding, this.#written);
  }

  /** Without progress for so long it is cut. */
  setTimeout(ms: number): void {
    this.hasTimeout = true;
    this.#socket.setTimeout(ms);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** It has left, or its connection is closed. */
  close(): void {
    const closed = this.#closed;
    this.#closed = undefined;
    closed?.();
  }

  #withHead(text: string): string {
    const whole = this.#head + text;
    this.#head = "";
    return whole;
  }
}

let shownSecond = 0;
let shownLine = "";

function dateLine(): string {
  const nowMs = Date.now();
  const second = Math.floor(nowMs / 1000);
  if (second !== shownSecond) {
    shownSecond = second;
    shownLine = `Date: ${new Date(nowMs).toUTCString()}\r\n`;
  }
  return shownLine;
}
