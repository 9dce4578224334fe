/**
 * A plain request is a push, pop, ack, transaction or renewal that came whole and in one piece, written as every client
 * writes it. Whatever is unusual about one makes it no plain request, and Node's parser decides what it means.
 */
import type { Socket } from "node:net";

/** The lines of a head, and what they say. */
interface Head {
  readonly lines: string;
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
}

const PLAIN = new RegExp(
  "^(?:GET|POST) /api/v1/(?:push|pop|ack|transaction|lease)[!-~]* HTTP/1\\.1\r\n" +
    "(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*\r\n)+$",
);
const HEAD_END = Buffer.from("\r\n\r\n");
const HEAD_BYTES_MAX = 8 * 1024;
// They change how a request is to be read, or what is to become of its connection.
const UNUSUAL = ["transfer-encoding", "expect", "upgrade", "trailer"];
const LENGTH = /^\d{1,8}$/;

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
    return this.head.method;
  }

  get url(): string {
    return this.head.url;
  }

  get rawHeaders(): readonly string[] {
    return this.head.rawHeaders;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.head.headers;
  }

  get headersDistinct(): { readonly authorization?: readonly string[] } {
    const { authorization } = this.head.headers;
    return authorization === undefined ? {} : { authorization: [authorization] };
  }
}

/** Undefined: it is not plain, or not whole. A client that repeats itself is spared the look at its `former` head. */
export function readPlainRequest(
  bytes: Buffer,
  socket: Socket,
  bodyBytesMax: number,
  former: Head | undefined,
): PlainRequest | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0 || end > HEAD_BYTES_MAX) return undefined;
  const lines = bytes.toString("latin1", 0, end + 2);
  const head = former?.lines === lines ? former : readHead(lines);
  if (!head || head.bodyBytes > bodyBytesMax) return undefined;
  const bodyAt = end + HEAD_END.length;
  const bodyEnd = bodyAt + head.bodyBytes;
  if (bodyEnd > bytes.length) return undefined;
  const rest = bodyEnd === bytes.length ? undefined : bytes.subarray(bodyEnd);
  return new PlainRequest(head, socket, bytes.subarray(bodyAt, bodyEnd), rest);
}

function readHead(lines: string): Head | undefined {
  if (!PLAIN.test(lines)) return undefined;
  const methodEnd = lines.indexOf(" ");
  const urlEnd = lines.indexOf(" ", methodEnd + 1);
  const rawHeaders: string[] = [];
  const headers: Record<string, string> = {};
  for (let at = lines.indexOf("\r\n") + 2; at < lines.length; ) {
    const colon = lines.indexOf(":", at);
    const end = lines.indexOf("\r\n", colon);
    const raw = lines.slice(at, colon);
    const name = raw.toLowerCase();
    if (Object.hasOwn(headers, name)) return undefined;
    const value = lines.slice(colon + 1, end).trim();
    headers[name] = value;
    rawHeaders.push(raw, value);
    at = end + 2;
  }
  const { host, connection, "content-length": length } = headers;
  if (host === undefined || UNUSUAL.some((name) => Object.hasOwn(headers, name))) return undefined;
  if (connection !== undefined && connection.toLowerCase() !== "keep-alive") return undefined;
  if (length !== undefined && !LENGTH.test(length)) return undefined;
  return {
    lines,
    method: lines.slice(0, methodEnd),
    url: lines.slice(methodEnd + 1, urlEnd),
    rawHeaders,
    headers,
    bodyBytes: length === undefined ? 0 : Number(length),
  };
}
