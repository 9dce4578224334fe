/**
 * A PostgreSQL proxy stands between a broker and its server. It counts the statements that pass, by name,
 * which needs no statistics of the server and no waiting for them, and it can lose an answer: the server has
 * done its work and the broker does not hear of it.
 */
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

export interface PostgresProxy extends TcpProxy {
  /** Statements sent since the start, by the names they are prepared under; simple queries under "". */
  readonly counts: ReadonlyMap<string, number>;
  total(): number;
  /** The next `times` calls of this statement are carried out, and their connections end unanswered. */
  loseAnswers(statement: string, times: number): void;
  /** Every so many calls, whatever they are, the connection is reset while the call is under way; 0: none. */
  resetEvery(calls: number): void;
  /** Answers lost so far, and connections reset in a call. */
  readonly lost: number;
  /** Of these, the answers of one statement. */
  lostOf(statement: string): number;
  readonly resets: number;
}

const EXECUTE = "E".charCodeAt(0);
const BIND = "B".charCodeAt(0);
const QUERY = "Q".charCodeAt(0);

export async function startProxy(databaseUrl: string, random?: () => number): Promise<PostgresProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const counts = new Map<string, number>();
  const toLose = new Map<string, number>();
  const lost = new Map<string, number>();
  let calls = 0;
  let resetEvery = 0;
  let resets = 0;

  const proxy = await startTcpProxy(
    { host: hostname, port: Number(port || 5432) },
    () => {
      let bound = "";
      let losing: string | undefined;
      let resetting = false;
      const framer = new FrontendFramer((type, body) => {
        if (type === BIND) {
          const portalEnd = body.indexOf(0);
          bound = body.toString("utf8", portalEnd + 1, body.indexOf(0, portalEnd + 1));
        }
        if (type !== EXECUTE && type !== QUERY) return;
        const name = type === QUERY ? "" : bound;
        counts.set(name, (counts.get(name) ?? 0) + 1);
        const left = toLose.get(name) ?? 0;
        if (left > 0) {
          toLose.set(name, left - 1);
          losing = name;
        }
        calls++;
        if (resetEvery > 0 && calls % resetEvery === 0) resetting = true;
      });
      return {
        seen: (direction, bytes, connection) => {
          if (direction === "to server") {
            framer.receive(bytes);
            if (!resetting) return false;
            resetting = false;
            resets++;
            // The server has the call, or not: the bytes are on their way when the reset comes.
            setImmediate(() => connection.reset());
            return false;
          }
          if (losing === undefined) return false;
          lost.set(losing, (lost.get(losing) ?? 0) + 1);
          connection.end();
          return true;
        },
      };
    },
    random,
  );

  return {
    port: proxy.port,
    urlOf: proxy.urlOf,
    set: proxy.set,
    cut: proxy.cut,
    close: proxy.close,
    get accepted() {
      return proxy.accepted;
    },
    get open() {
      return proxy.open;
    },
    counts,
    total: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
    loseAnswers: (statement, times) => {
      toLose.set(statement, times);
    },
    resetEvery: (every) => {
      resetEvery = every;
    },
    get lost() {
      return [...lost.values()].reduce((sum, count) => sum + count, 0);
    },
    lostOf: (statement) => lost.get(statement) ?? 0,
    get resets() {
      return resets;
    },
  };
}

/** Finds the messages that a client sends: the first has no type, every other one begins with it. */
class FrontendFramer {
  readonly #listener: (type: number, body: Buffer) => void;
  #rest = Buffer.alloc(0);
  #isStarted = false;

  constructor(listener: (type: number, body: Buffer) => void) {
    this.#listener = listener;
  }

  receive(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const head = this.#isStarted ? 5 : 4;
      if (bytes.length < head) break;
      const end = bytes.readInt32BE(head - 4) + head - 4;
      if (bytes.length < end) break;
      if (this.#isStarted) this.#listener(bytes[0]!, bytes.subarray(head, end));
      this.#isStarted = true;
      bytes = bytes.subarray(end);
    }
    this.#rest = Buffer.from(bytes);
  }
}
