/**
 * A connection is one keep-alive socket with at most one HTTP/1.1 request in flight.
 *
 * It does less than a general client on purpose: the generator shares the cores with what it measures. It
 * knows Content-Length and chunked bodies, reconnects when the server has closed the socket, and gives a
 * request up after `REQUEST_MS_MAX` without a byte. Bodies that are sent are ASCII, so that characters are bytes.
 */
import { connect, type Socket } from "node:net";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

interface Pending {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

// Longer than the longest long poll (30 s), so that only a server that does not answer meets it.
export const REQUEST_MS_MAX = 45_000;

const HEAD_END = "\r\n\r\n";

export class HttpConnection {
  readonly #address: Address;
  readonly #headers: string;
  #socket: Socket | undefined;
  #pending: Pending | undefined;
  #status = 0;
  #closes = false;
  #chunked = false;
  #bytesNeeded = -1;
  #bytesReceived = 0;
  #parts: Buffer[] = [];
  #unparsed: Buffer | undefined;

  constructor(address: Address) {
    this.#address = address;
    this.#headers = `Host: ${address.host}:${address.port}\r\nConnection: keep-alive\r\n`;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ ...this.#address, noDelay: true });
      const onEnd = (error: Error): void => {
        if (this.#socket === socket) this.#socket = undefined;
        socket.destroy();
        reject(error);
        this.#fail(error);
      };
      socket.setTimeout(REQUEST_MS_MAX);
      socket.once("connect", () => {
        this.#socket = socket;
        resolve();
      });
      socket.on("data", (chunk: Buffer) => this.#receive(chunk));
      socket.on("error", onEnd);
      socket.on("close", () => onEnd(new Error("connection closed")));
      socket.on("timeout", () => {
        if (this.#pending || socket.connecting) onEnd(new Error(`no answer within ${REQUEST_MS_MAX} ms`));
      });
    });
  }

  async request(method: "GET" | "POST", path: string, body?: string): Promise<Answer> {
    if (!this.#socket) await this.open();
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#bytesNeeded = -1;
      this.#chunked = false;
      this.#unparsed = undefined;
      const content =
        body === undefined
          ? "\r\n"
          : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      this.#socket!.write(`${method} ${path} HTTP/1.1\r\n${this.#headers}${content}`, "latin1");
    });
  }

  destroy(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
    this.#fail(new Error("connection destroyed"));
  }

  #fail(error: Error): void {
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.reject(error);
  }

  #receive(chunk: Buffer): void {
    if (!this.#pending) return;
    if (this.#bytesNeeded >= 0) {
      this.#parts.push(chunk);
      this.#bytesReceived += chunk.length;
    } else {
      this.#unparsed = this.#unparsed ? Buffer.concat([this.#unparsed, chunk]) : chunk;
      if (!this.#chunked && !this.#readHead(this.#unparsed)) return;
      if (this.#chunked) {
        const body = joinChunks(this.#unparsed);
        if (body) this.#finish(body);
        return;
      }
    }
    if (this.#bytesReceived < this.#bytesNeeded) return;
    this.#finish(this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts));
  }

  /** Reads status and framing once the whole head is there; what follows it is the body's beginning. */
  #readHead(received: Buffer): boolean {
    const end = received.indexOf(HEAD_END);
    if (end < 0) return false;
    const head = received.toString("latin1", 0, end).toLowerCase();
    const rest = received.subarray(end + HEAD_END.length);
    this.#status = Number(head.slice(9, 12));
    this.#closes = head.includes("\r\nconnection: close");
    const length = head.indexOf("\r\ncontent-length:");
    if (length < 0 && head.includes("\r\ntransfer-encoding: chunked")) {
      this.#chunked = true;
      this.#unparsed = rest;
      return true;
    }
    const hasBody = length >= 0 && this.#status !== 204 && this.#status !== 304;
    this.#bytesNeeded = hasBody ? Number.parseInt(head.slice(length + 17), 10) : 0;
    this.#parts = [rest];
    this.#bytesReceived = rest.length;
    return true;
  }

  #finish(body: Buffer): void {
    const pending = this.#pending;
    this.#pending = undefined;
    this.#parts = [];
    if (this.#closes) {
      this.#socket?.destroy();
      this.#socket = undefined;
    }
    pending?.resolve({ status: this.#status, body });
  }
}

/** The body of a chunked answer, or undefined while its last chunk is not there. */
function joinChunks(received: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = received.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(received.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + length;
    if (received.length < end + 2) return undefined;
    if (length === 0) return Buffer.concat(parts);
    parts.push(received.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
