/**
 * A PostgreSQL proxy stands between a broker and its server. It counts the statements that pass, by name,
 * which needs no statistics of the server and no waiting for them, and it can lose an answer: the server has
 * done its work and the broker does not hear of it.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface PostgresProxy {
  /** The URL of a database, through the proxy. */
  urlOf(databaseUrl: string): string;
  /** Statements sent since the start, by the names they are prepared under; simple queries under "". */
  readonly counts: ReadonlyMap<string, number>;
  total(): number;
  /** The next `times` calls of this statement are carried out, and their connections end unanswered. */
  loseAnswers(statement: string, times: number): void;
  /** Answers lost so far. */
  readonly lost: number;
  close(): Promise<void>;
}

const EXECUTE = "E".charCodeAt(0);
const BIND = "B".charCodeAt(0);
const QUERY = "Q".charCodeAt(0);

export async function startProxy(databaseUrl: string): Promise<PostgresProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const counts = new Map<string, number>();
  const toLose = new Map<string, number>();
  const sockets = new Set<Socket>();
  let lost = 0;

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port || 5432), noDelay: true });
    let bound = "";
    let losing = false;
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
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
        losing = true;
      }
    });
    client.on("data", (chunk) => {
      framer.receive(chunk);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!losing) {
        client.write(chunk);
        return;
      }
      lost++;
      end();
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = (server.address() as AddressInfo).port;

  return {
    urlOf: (url) => {
      const through = new URL(url);
      through.hostname = "127.0.0.1";
      through.port = String(own);
      return through.href;
    },
    counts,
    total: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
    loseAnswers: (statement, times) => {
      toLose.set(statement, times);
    },
    get lost() {
      return lost;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
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
