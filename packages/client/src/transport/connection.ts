/**
 * A connection to a broker, with one request under way at a time.
 *
 *   connecting ──▶ busy ──answer──▶ idle ──request──▶ busy
 *        │           │               │ 4 s, anything that comes unasked
 *        └───────────┴───────────────┴──▶ closed
 *
 * While it is idle it does not keep the program running.
 */
import { type AnswerHead, AnswerReader, type Bytes, type Concat } from "./answer-reader.ts";

/** As much of Node's `Socket` as is used. */
export interface Socket {
  readonly writableLength: number;
  on(event: "data", listener: (bytes: Bytes) => void): void;
  on(event: "connect" | "end" | "close" | "timeout", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  setTimeout(millis: number): void;
  write(text: string, encoding: "utf8"): void;
  ref(): void;
  unref(): void;
  destroy(): void;
}

export interface ReceivedAnswer {
  readonly head: AnswerHead;
  readonly text: string;
}

interface Waiting {
  readonly reader: AnswerReader;
  readonly resolve: (answer: ReceivedAnswer) => void;
  readonly reject: (error: Error) => void;
}

// Brokers keep an idle connection for longer than this, so that none is used in the moment in which it is closed.
const IDLE_MILLIS = 4_000;
// A broker that does not take a connection for so long is not there, and nothing was sent.
const CONNECT_MILLIS = 10_000;

export class Connection {
  readonly #socket: Socket;
  readonly #concat: Concat;
  readonly #onChange: (connection: Connection, state: "idle" | "closed") => void;
  #waiting: Waiting | undefined;
  #isClosed = false;

  constructor(
    socket: Socket,
    concat: Concat,
    onChange: (connection: Connection, state: "idle" | "closed") => void,
  ) {
    this.#socket = socket;
    this.#concat = concat;
    this.#onChange = onChange;
    const patience = setTimeout(() => {
      const error = new Error(`no connection within ${CONNECT_MILLIS} ms`);
      this.close(Object.assign(error, { code: "ERR_CONNECT_TIMEOUT" }));
    }, CONNECT_MILLIS);
    socket.on("connect", () => clearTimeout(patience));
    socket.on("data", (bytes) => this.#receive(bytes));
    socket.on("end", () => this.#end());
    socket.on("error", (error) => this.close(error));
    socket.on("timeout", () => {
      if (!this.#waiting) this.close(new Error("idle"));
    });
    socket.on("close", () => {
      clearTimeout(patience);
      this.close(reset());
    });
    socket.setTimeout(IDLE_MILLIS);
  }

  /** `text`: the whole request. */
  send(method: string, text: string): Promise<ReceivedAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { reader: new AnswerReader(method, this.#concat), resolve, reject };
      this.#socket.ref();
      this.#socket.write(text, "utf8");
    });
  }

  /** The request under way, if any, fails for this reason. */
  close(reason: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#onChange(this, "closed");
    this.#waiting?.reject(reason);
    this.#waiting = undefined;
  }

  #receive(bytes: Bytes): void {
    if (!this.#waiting) {
      this.close(new Error("the server sent what nobody asked for"));
      return;
    }
    try {
      this.#waiting.reader.receive(bytes);
    } catch (error) {
      this.close(error as Error);
      return;
    }
    this.#finish();
  }

  #end(): void {
    this.#waiting?.reader.end();
    this.#finish();
    this.close(reset());
  }

  #finish(): void {
    const { reader, resolve } = this.#waiting ?? {};
    if (!reader?.isWhole) return;
    this.#waiting = undefined;
    // An answer may come before the request is sent: then the rest of it must not be taken for the next one.
    if (reader.isKept && this.#socket.writableLength === 0) {
      this.#socket.unref();
      this.#onChange(this, "idle");
    } else this.close(new Error("done"));
    resolve?.({ head: reader.head, text: reader.text() });
  }
}

const reset = (): Error =>
  Object.assign(new Error("the server closed the connection"), { code: "ECONNRESET" });
