/**
 * As much of `fetch` as the client uses, on Node's sockets: with connections that stay open, the one that was used last
 * first.
 */
import type { AnswerHead, Bytes } from "./answer-reader.ts";
import { Connection, type ReceivedAnswer, type Socket } from "./connection.ts";
import type { Fetch, Fetched } from "./runtime-fetch.ts";

/** As much of Node as is used. */
export interface Node {
  readonly net: { connect(options: object): Socket; isIP(host: string): number };
  readonly tls: { connect(options: object): Socket };
  readonly Buffer: { byteLength(text: string): number; concat(parts: readonly Bytes[]): Bytes };
}

const IDLE_MAX = 256;
// A connection that is silent for so long is probed by the kernel.
const PROBE_MILLIS = 10_000;
const NAME = /^[!#$%&'*+\-.^_`|~\w]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
const TARGET = /^\/[\x21-\x7e]*$/;
// What they say is not for whoever sends a request to say.
const OF_THE_CONNECTION = ["connection", "content-length", "transfer-encoding"];
const WITH_BODY = new Set(["POST", "PUT", "PATCH"]);

export function nodeFetch(node: Node): Fetch {
  const origins = new Map<string, Origin>();
  return async (url, init) => {
    const slash = url.indexOf("/", "https://".length);
    const text = slash < 0 ? url : url.slice(0, slash);
    const origin = origins.get(text) ?? new Origin(text, node);
    origins.set(text, origin);
    try {
      return await origin.fetch(slash < 0 ? "/" : url.slice(slash), init);
    } catch (cause) {
      // As `fetch` does it, whatever failed on the way is a TypeError with its cause.
      throw new TypeError(`${init.method} ${url} failed.`, { cause });
    }
  };
}

/** One broker: a scheme, a host and a port. */
class Origin {
  readonly #url: URL;
  readonly #node: Node;
  readonly #idle: Connection[] = [];

  constructor(text: string, node: Node) {
    this.#url = new URL(text);
    this.#node = node;
  }

  async fetch(path: string, { method, headers, body, abort }: Parameters<Fetch>[1]): Promise<Fetched> {
    // Of a name in two spellings the last one counts.
    const fields = new Map([["host", this.#url.host]]);
    for (const name in headers) {
      const value = headers[name]!;
      if (!NAME.test(name) || !VALUE.test(value))
        throw new Error(`the header ${JSON.stringify(name)} has characters that HTTP does not allow`);
      fields.set(name.toLowerCase(), value);
    }
    for (const name of OF_THE_CONNECTION) fields.delete(name);
    if (body !== undefined) fields.set("content-length", String(this.#node.Buffer.byteLength(body)));
    else if (WITH_BODY.has(method)) fields.set("content-length", "0");
    let head = `${method} ${targetOf(path)} HTTP/1.1\r\n`;
    for (const [name, value] of fields) head += `${name}: ${value}\r\n`;
    if (abort.isAborted) throw new Error("aborted");
    const connection = this.#idle.pop() ?? this.#connect();
    abort.listen(() => connection.close(new Error("aborted")));
    try {
      return new NodeFetched(await connection.send(method, `${head}\r\n${body ?? ""}`));
    } finally {
      abort.listen(undefined);
    }
  }

  #connect(): Connection {
    const { protocol, hostname, port } = this.#url;
    const { net, tls, Buffer } = this.#node;
    const host = hostname.replace(/^\[|\]$/g, "");
    const isSecure = protocol === "https:";
    const options = {
      host,
      port: Number(port) || (isSecure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MILLIS,
    };
    const socket = isSecure
      ? tls.connect({
          ...options,
          ...(net.isIP(host) === 0 ? { servername: host } : {}),
          ALPNProtocols: ["http/1.1"],
        })
      : net.connect(options);
    return new Connection(socket, Buffer.concat, (connection, state) => {
      if (state === "closed") {
        const index = this.#idle.indexOf(connection);
        if (index >= 0) this.#idle.splice(index, 1);
      } else if (this.#idle.length < IDLE_MAX) this.#idle.push(connection);
      else connection.close(new Error("enough others are idle"));
    });
  }
}

const targetOf = (path: string): string => {
  if (TARGET.test(path)) return path;
  const { pathname, search } = new URL(path, "http://any");
  return pathname + search;
};

class NodeFetched implements Fetched {
  readonly #head: AnswerHead;
  readonly #text: string;

  constructor({ head, text }: ReceivedAnswer) {
    this.#head = head;
    this.#text = text;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get status(): number {
    return this.#head.status;
  }

  get statusText(): string {
    return this.#head.statusText;
  }

  get headers(): Headers {
    const headers = new Headers();
    for (const field of this.#head.fields) {
      const colon = field.indexOf(":");
      headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
    }
    return headers;
  }

  text(): Promise<string> {
    return Promise.resolve(this.#text);
  }
}
