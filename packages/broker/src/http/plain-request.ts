/**
 * A plain request is a push, pop, ack, transaction or renewal that came whole and in one piece, written as every client
 * writes it. Whatever is unusual about one makes it no plain request, and Node's parser decides what it means.
 */
import type { Socket } from "node:net";
import type { Target } from "./target.ts";

/** The first line of a head, and what it says. */
interface RequestLine {
  readonly text: string;
  readonly method: string;
  readonly url: string;
  /** What it leads to, once somebody has found that out. */
  target: Target | undefined;
}

/** The other lines, and what they say. */
interface Fields {
  readonly text: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
  /** Where in the text the body's length stands, and where in the raw headers; undefined: nowhere. */
  readonly length: { readonly from: number; readonly to: number; readonly at: number } | undefined;
}

interface Head {
  readonly text: string;
  readonly line: RequestLine;
  readonly fields: Fields;
}

const LINE = /^(?:GET|POST) \/api\/v1\/(?:push|pop|ack|transaction|lease)[!-~]* HTTP\/1\.1\r\n$/;
const FIELDS = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*\r\n)+$/;
const HEAD_END = Buffer.from("\r\n\r\n");
const HEAD_BYTES_MAX = 8 * 1024;
// They change how a request is to be read, or what is to become of its connection.
const UNUSUAL = ["transfer-encoding", "expect", "upgrade", "trailer"];
const LENGTH = /^\d{1,8}$/;
const POST = "P".charCodeAt(0);

export class PlainRequest {
  readonly head: Head;
  readonly socket: Socket;
  readonly body: Buffer;
  /** What came behind it. */
  readonly rest: Buffer | undefined;

  constructor(head: Head, socket: Socket, body: Buffer, rest: Buffer | undefined) {
    this.head = head;
    this.socket = socket;
    this.body = body;
    this.rest = rest;
  }

  get method(): string {
    return this.head.line.method;
  }

  get url(): string {
    return this.head.line.url;
  }

  get rawHeaders(): readonly string[] {
    return this.head.fields.rawHeaders;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.head.fields.headers;
  }

  get headersDistinct(): { readonly authorization?: readonly string[] } {
    const { authorization } = this.headers;
    return authorization === undefined ? {} : { authorization: [authorization] };
  }
}

/**
 * The last heads of a connection, one of each method. Clients repeat themselves: a consumer pops and acks by turns, and what
 * changes in the heads of a producer is the length. What stands there again is not read again.
 */
export class FormerHeads {
  #get: Head | undefined;
  #post: Head | undefined;

  /** Undefined: it is not plain. */
  read(text: string): Head | undefined {
    const isPost = text.charCodeAt(0) === POST;
    const former = isPost ? this.#post : this.#get;
    if (former?.text === text) return former;
    const head = readHead(text, former);
    if (isPost) this.#post = head;
    else this.#get = head;
    return head;
  }
}

/** Undefined: it is not plain, or not whole. */
export function readPlainRequest(
  bytes: Buffer,
  socket: Socket,
  bodyBytesMax: number,
  formers: FormerHeads,
): PlainRequest | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0 || end > HEAD_BYTES_MAX) return undefined;
  const head = formers.read(bytes.toString("latin1", 0, end + 2));
  if (!head) return undefined;
  const { bodyBytes } = head.fields;
  if (bodyBytes > bodyBytesMax) return undefined;
  const bodyAt = end + HEAD_END.length;
  const bodyEnd = bodyAt + bodyBytes;
  if (bodyEnd > bytes.length) return undefined;
  const rest = bodyEnd === bytes.length ? undefined : bytes.subarray(bodyEnd);
  return new PlainRequest(head, socket, bytes.subarray(bodyAt, bodyEnd), rest);
}

function readHead(text: string, former: Head | undefined): Head | undefined {
  const lineEnd = text.indexOf("\r\n") + 2;
  const lineText = text.slice(0, lineEnd);
  const fieldsText = text.slice(lineEnd);
  const line = former?.line.text === lineText ? former.line : readLine(lineText);
  const fields = line && ((former && readAgain(fieldsText, former.fields)) ?? readFields(fieldsText));
  return fields && { text, line, fields };
}

function readLine(text: string): RequestLine | undefined {
  if (!LINE.test(text)) return undefined;
  const methodEnd = text.indexOf(" ");
  const urlEnd = text.indexOf(" ", methodEnd + 1);
  return {
    text,
    method: text.slice(0, methodEnd),
    url: text.slice(methodEnd + 1, urlEnd),
    target: undefined,
  };
}

/** Where nothing has changed but the body's length; undefined: more has, or it is no length. */
function readAgain(text: string, former: Fields): Fields | undefined {
  if (text === former.text) return former;
  const { length } = former;
  if (!length) return undefined;
  const to = length.to + text.length - former.text.length;
  const digits = text.slice(length.from, to);
  if (
    !LENGTH.test(digits) ||
    !text.startsWith(former.text.slice(0, length.from)) ||
    !text.endsWith(former.text.slice(length.to))
  )
    return undefined;
  const rawHeaders = former.rawHeaders.slice();
  rawHeaders[length.at] = digits;
  return {
    text,
    rawHeaders,
    headers: { ...former.headers, "content-length": digits },
    bodyBytes: Number(digits),
    length: { ...length, to },
  };
}

function readFields(text: string): Fields | undefined {
  if (!FIELDS.test(text)) return undefined;
  const rawHeaders: string[] = [];
  const headers: Record<string, string> = {};
  let length: Fields["length"];
  for (let at = 0; at < text.length; ) {
    const colon = text.indexOf(":", at);
    const end = text.indexOf("\r\n", colon);
    const raw = text.slice(at, colon);
    const name = raw.toLowerCase();
    if (Object.hasOwn(headers, name)) return undefined;
    const value = text.slice(colon + 1, end).trim();
    headers[name] = value;
    rawHeaders.push(raw, value);
    if (name === "content-length") {
      if (!LENGTH.test(value)) return undefined;
      const from = text.indexOf(value, colon + 1);
      length = { from, to: from + value.length, at: rawHeaders.length - 1 };
    }
    at = end + 2;
  }
  const { host, connection } = headers;
  if (host === undefined || UNUSUAL.some((name) => Object.hasOwn(headers, name))) return undefined;
  if (connection !== undefined && connection.toLowerCase() !== "keep-alive") return undefined;
  return { text, rawHeaders, headers, bodyBytes: Number(headers["content-length"] ?? 0), length };
}
