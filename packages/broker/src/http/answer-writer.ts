/** Writes answers: an answer's body is one string with one byte per character, or ordinary text; or it is a stream. */
import { POP_BYTES_MAX } from "@queen/protocol";
import { crash, isCrashPoint } from "../crash-point.ts";
import type { Exchange } from "./access-log.ts";
import type { Cors } from "./cors.ts";
import { isLarge, type Outgoing as PieceTaker, writeInPieces } from "./pieces.ts";
import type { Answer } from "./route.ts";
import { UnreadAnswers, type Outgoing as UnreadOutgoing } from "./unread-answers.ts";

/** As much of an HTTP answer as is needed here. */
export type Outgoing = PieceTaker &
  UnreadOutgoing & {
    readonly writableNeedDrain: boolean;
    writeHead(status: number, headers: string[]): unknown;
    flushHeaders(): void;
    readonly socket: { cork(): void; uncork(): void } | null;
    write(text: string, written?: () => void): boolean;
    end(body: string, encoding: "utf8" | "latin1"): unknown;
    once(event: "close", listener: () => void): unknown;
  };

export interface AnswerWriterOptions {
  readonly cors: Cors;
  readonly now: () => number;
}

// One large pop, and as much again for those who read at once.
const UNREAD_BYTES_MAX = POP_BYTES_MAX;

export class AnswerWriter {
  readonly #cors: Cors;
  readonly #unread: UnreadAnswers;
  readonly #streams = new Set<() => void>();
  /** So many answers ask their clients to come back by another connection. */
  #turningAway = 0;

  constructor({ cors, now }: AnswerWriterOptions) {
    this.#cors = cors;
    this.#unread = new UnreadAnswers({ bytesMax: UNREAD_BYTES_MAX, now });
  }

  /** The next answers, or all from now on, ask their clients to come back by another connection, which may lead elsewhere. */
  turnAway(answers = Infinity): void {
    if (this.#turningAway < Infinity) this.#turningAway = answers;
  }

  endStreams(): void {
    for (const end of this.#streams) end();
  }

  /** Returns the bytes of the body. */
  write(response: Outgoing, answer: Answer, exchange: Exchange): number {
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
    else if (isLarge(body)) writeInPieces(response, body, () => this.#unread.progressed(response));
    else if (body === "") response.end();
    else endAtOnce(response, body);
    this.#unread.add(response, bytes);
    return bytes;
  }

  /** The answer was read, or its connection is closed. */
  closed(response: Outgoing): void {
    this.#unread.remove(response);
  }

  #headers(answer: Answer, exchange: Exchange): string[] {
    const headers = [...this.#cors.headers(exchange.incoming.headers.origin as string | undefined)];
    // A push, pop or ack that went well spares itself an id that nobody asked for.
    if (exchange.givenId !== undefined || answer.status >= 400 || !exchange.isDataPlane) {
      headers.push("X-Request-Id", exchange.requestId);
    }
    if (answer.headers) for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
    if (this.#turningAway > 0) {
      this.#turningAway--;
      headers.push("Connection", "close");
    }
    return headers;
  }

  #stream(response: Outgoing, answer: Answer, exchange: Exchange): number {
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
    if (this.#turningAway === Infinity) ended();
    return 0;
  }
}

/**
 * Head and body as one string in one call of the system: `end` alone would add an empty piece, and gather the two. An answer
 * that waits behind another of its connection has no socket yet.
 */
function endAtOnce(response: Outgoing, body: string): void {
  const { socket } = response;
  if (!socket) {
    response.end(body, "latin1");
    return;
  }
  socket.cork();
  response.write(body, "latin1");
  socket.uncork();
  response.end();
}
