/**
 * Reads one answer of HTTP/1.1 out of the pieces in which it arrives.
 *
 *   head ──content-length──▶ counted ───────────┐
 *   ▲  ├───transfer-encoding─▶ chunked ─────────┼──▶ whole
 *   1xx└───neither───────────▶ until the end ───┘
 *
 * What is not HTTP, or can be read in two ways, is an error.
 */

/** As much of Node's `Buffer` as is used. */
export interface Bytes extends Uint8Array {
  subarray(start?: number, end?: number): Bytes;
  indexOf(value: string | number, start?: number): number;
  toString(encoding?: "latin1" | "utf8", start?: number, end?: number): string;
}

export type Concat = (parts: readonly Bytes[]) => Bytes;

export interface AnswerHead {
  readonly status: number;
  readonly statusText: string;
  /** `name: value`, as they came. */
  readonly fields: readonly string[];
  /** Whether the connection may be used again. */
  readonly isKept: boolean;
}

/** The part of an answer behind its head. */
interface Body {
  readonly parts: Bytes[];
  readonly isWhole: boolean;
  /** More came than belongs to it. */
  readonly isOverrun: boolean;
  receive(bytes: Bytes): void;
  /** Nothing more comes. */
  end(): void;
}

const HEAD_BYTES_MAX = 64 * 1024;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: (.*))?$/;
const LENGTH = /^\d{1,15}$/;

export class AnswerReader {
  readonly #method: string;
  readonly #concat: Concat;
  #early: Bytes | undefined;
  #head: (AnswerHead & Framing) | undefined;
  #body: Body | undefined;

  constructor(method: string, concat: Concat) {
    this.#method = method;
    this.#concat = concat;
  }

  get isWhole(): boolean {
    return this.#body?.isWhole ?? false;
  }

  /** Of a whole answer. */
  get head(): AnswerHead {
    return this.#head!;
  }

  /** Whether the connection may be used again after this answer. */
  get isKept(): boolean {
    return this.#head!.isKept && !this.#body!.isOverrun;
  }

  text(): string {
    const { parts } = this.#body!;
    return (parts.length === 1 ? parts[0]! : this.#concat(parts)).toString("utf8");
  }

  receive(bytes: Bytes): void {
    if (this.#body) this.#body.receive(bytes);
    else this.#receiveHead(this.#early ? this.#concat([this.#early, bytes]) : bytes);
  }

  /** The connection ended. */
  end(): void {
    this.#body?.end();
  }

  #receiveHead(bytes: Bytes): void {
    const end = bytes.indexOf("\r\n\r\n");
    if (end > HEAD_BYTES_MAX || (end < 0 && bytes.length > HEAD_BYTES_MAX))
      throw new Error("the head of the answer is too long");
    if (end < 0) {
      this.#early = bytes;
      return;
    }
    const head = readHead(bytes.toString("latin1", 0, end));
    const rest = bytes.subarray(end + 4);
    if (head.status === 101) throw new Error("the server changed to a protocol that nobody asked for");
    if (head.status < 200) {
      this.#early = undefined;
      this.#receiveHead(rest);
      return;
    }
    this.#head = head;
    this.#body = this.#bodyOf(head);
    this.#body.receive(rest);
  }

  #bodyOf({ status, isChunked, length }: AnswerHead & Framing): Body {
    if (this.#method === "HEAD" || status === 204 || status === 304) return new CountedBody(0);
    if (isChunked) return new ChunkedBody();
    return length === undefined ? new BodyUntilTheEnd() : new CountedBody(length);
  }
}

interface Framing {
  readonly isChunked: boolean;
  readonly length: number | undefined;
}

function readHead(text: string): AnswerHead & Framing {
  const [first, ...fields] = text.split("\r\n") as [string, ...string[]];
  const line = STATUS_LINE.exec(first);
  if (!line) throw new Error("the answer is not HTTP/1.1");
  let isKept = line[1] === "1";
  let isChunked = false;
  let length: number | undefined;
  for (const field of fields) {
    const colon = field.indexOf(":");
    if (colon < 1 || field[0] === " " || field[0] === "\t")
      throw new Error("the answer has a header without a name");
    // The lengths of the three names that matter.
    if (colon !== 10 && colon !== 14 && colon !== 17) continue;
    const name = field.slice(0, colon).toLowerCase();
    const value = field.slice(colon + 1).trim();
    if (name === "connection") {
      if (/\bclose\b/i.test(value)) isKept = false;
      else if (/\bkeep-alive\b/i.test(value)) isKept = true;
    } else if (name === "content-length") {
      if (!LENGTH.test(value) || (length !== undefined && length !== Number(value)))
        throw new Error("the answer has a length that is none");
      length = Number(value);
    } else if (name === "transfer-encoding") {
      if (isChunked || value.toLowerCase() !== "chunked")
        throw new Error("the answer has an encoding that nobody asked for");
      isChunked = true;
    }
  }
  if (isChunked && length !== undefined) throw new Error("the answer has a length and is chunked");
  return { status: Number(line[2]), statusText: line[3] ?? "", fields, isKept, isChunked, length };
}

class CountedBody implements Body {
  readonly parts: Bytes[] = [];
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isWhole(): boolean {
    return this.#left <= 0;
  }

  get isOverrun(): boolean {
    return this.#left < 0;
  }

  receive(bytes: Bytes): void {
    this.parts.push(bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes);
    this.#left -= bytes.length;
  }

  end(): void {}
}

class BodyUntilTheEnd implements Body {
  readonly parts: Bytes[] = [];
  // The connection is over with it.
  readonly isOverrun = true;
  isWhole = false;

  receive(bytes: Bytes): void {
    this.parts.push(bytes);
  }

  end(): void {
    this.isWhole = true;
  }
}

const SIZE_LINE = /^([0-9a-f]{1,13})[ \t]*(?:;.*)?$/i;
const LINE_BYTES_MAX = 8 * 1024;

class ChunkedBody implements Body {
  readonly parts: Bytes[] = [];
  isWhole = false;
  isOverrun = false;
  /** What belongs to the present chunk and has not come yet; 0: a line comes next. */
  #left = 0;
  #line = "";
  #expects: "size" | "nothing" | "trailer" = "size";

  receive(bytes: Bytes): void {
    let from = 0;
    while (from < bytes.length) {
      if (this.isWhole) {
        this.isOverrun = true;
        return;
      }
      if (this.#left > 0) {
        const part = bytes.subarray(from, from + this.#left);
        this.parts.push(part);
        this.#left -= part.length;
        from += part.length;
        continue;
      }
      const end = bytes.indexOf("\n", from);
      this.#line += bytes.toString("latin1", from, end < 0 ? bytes.length : end);
      if (this.#line.length > LINE_BYTES_MAX) throw new Error("the answer has a chunk with an endless head");
      if (end < 0) return;
      this.#readLine(this.#line);
      this.#line = "";
      from = end + 1;
    }
  }

  end(): void {}

  #readLine(line: string): void {
    if (!line.endsWith("\r")) throw new Error("the answer has a chunk that does not end");
    const text = line.slice(0, -1);
    if (this.#expects === "trailer") {
      this.isWhole = text === "";
    } else if (this.#expects === "nothing") {
      if (text !== "") throw new Error("the answer has a chunk that is longer than it says");
      this.#expects = "size";
    } else {
      const size = SIZE_LINE.exec(text);
      if (!size) throw new Error("the answer has a chunk of no size");
      this.#left = Number.parseInt(size[1]!, 16);
      this.#expects = this.#left > 0 ? "nothing" : "trailer";
    }
  }
}
