/** pgmq: a queue as SQL functions, called by the driver that the broker has. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import pg from "pg";
import type { Data } from "../messages.ts";
import { fileIn } from "./packages.ts";
import {
  type Consumption,
  inLane,
  inOneLane,
  loops,
  onPostgres,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const PACKAGE = "@electric-sql/pglite-pgmq";
const CONNECTIONS = 16;
const CONSUMERS = 8;
const READ_BATCH = 100;
const INVISIBLE_SECONDS = 300;
// The default is 100 ms; this is as soon as a user would poll.
const POLL_MS = 10;

const SEND = { name: "send", text: "select pgmq.send('bench', $1::jsonb)" };
const SEND_TO_LANE = { name: "send_to_lane", text: "select pgmq.send('bench', $1::jsonb, $2::jsonb)" };
const SEND_BATCH = { name: "send_batch", text: "select pgmq.send_batch('bench', $1::jsonb[])" };
const READ = {
  name: "read",
  text: `select msg_id, message from pgmq.read('bench', ${INVISIBLE_SECONDS}, ${READ_BATCH})`,
};
const READ_LANES = {
  name: "read_lanes",
  text: `select msg_id, message, headers from pgmq.read_grouped('bench', ${INVISIBLE_SECONDS}, ${READ_BATCH})`,
};
const WAIT = {
  name: "wait",
  text: `select msg_id, message from pgmq.read_with_poll('bench', ${INVISIBLE_SECONDS}, ${READ_BATCH}, 1, ${POLL_MS})`,
};
const DELETE = { name: "delete", text: "select pgmq.delete('bench', $1::int8[])" };

export const pgmq: Peer = {
  name: "pgmq",
  title: "pgmq",
  packages: [PACKAGE],
  usesPostgres: true,
  isOrdered: false,
  offers: { lanes: "by read_grouped", groups: "by copies", replay: "no (an archive)", acks: "awaited" },
  missing: () => {
    const path = process.env.PGMQ_SQL;
    return path === undefined || existsSync(path) ? null : `PGMQ_SQL names ${path}, which is not there`;
  },
  startServer: () => onPostgres(readSql().version, `polls every ${POLL_MS} ms, reads ${READ_BATCH}`),
  connect: async ({ databaseUrl, lanes }) => {
    const pool = new pg.Pool({ connectionString: databaseUrl!, max: CONNECTIONS });
    pool.on("error", () => undefined);
    await pool.query(readSql().text);
    await pool.query("select pgmq.create('bench')");
    // It has an index for reading by groups, which is not made by itself.
    if (lanes > 1) await pool.query("select pgmq.create_fifo_index('bench')");
    return new PgmqClient(pool, lanes > 1);
  },
};

/** The functions: from the file that PGMQ_SQL names, or out of a package that carries the extension's files. */
function readSql(): { text: string; version: string } {
  const path = process.env.PGMQ_SQL;
  if (path !== undefined) return { text: readFileSync(path, "utf8"), version: path };
  const archive = fileIn(PACKAGE, "dist/pgmq.tar.gz");
  const tar = (...args: string[]): string =>
    execFileSync("tar", args, { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  const files = tar("-tzf", archive).split("\n");
  const file = files.find((name) => /\/pgmq--[\d.]+\.sql$/.test(name));
  if (file === undefined) throw new Error(`${archive} holds no pgmq--<version>.sql`);
  return { text: tar("-xzOf", archive, file), version: /pgmq--([\d.]+)\.sql$/.exec(file)![1]! };
}

interface Row {
  readonly msg_id: string;
  readonly message: Data;
  readonly headers?: { readonly "x-pgmq-group": string };
}

class PgmqClient implements PeerClient {
  readonly #pool: pg.Pool;
  readonly #hasLanes: boolean;

  constructor(pool: pg.Pool, hasLanes: boolean) {
    this.#pool = pool;
    this.#hasLanes = hasLanes;
  }

  async send(_sender: number, { partition, data }: PeerMessage): Promise<void> {
    const message = JSON.stringify(data);
    if (this.#hasLanes)
      await this.#pool.query({ ...SEND_TO_LANE, values: [message, { "x-pgmq-group": String(partition) }] });
    else await this.#pool.query({ ...SEND, values: [message] });
  }

  async sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    await this.#pool.query({ ...SEND_BATCH, values: [messages.map(({ data }) => JSON.stringify(data))] });
  }

  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const read = this.#hasLanes ? READ_LANES : style === "drain" ? READ : WAIT;
    return loops(style === "drain" ? CONSUMERS : 1, sink, async () => {
      const { rows } = await this.#pool.query<Row>(read);
      if (rows.length === 0) return;
      sink.received(
        rows.map(({ message, headers }) =>
          headers ? inLane(Number(headers["x-pgmq-group"]), message) : inOneLane(message),
        ),
      );
      await this.#pool.query({ ...DELETE, values: [rows.map((row) => row.msg_id)] });
      sink.done(rows.length);
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
