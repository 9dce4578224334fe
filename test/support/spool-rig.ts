/** The rig of tests of the spool: a PostgreSQL that can be taken away, and a broker whose patience is short. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type BrokerProcess, freePort, startBrokerProcess } from "./broker.ts";
import type { Row } from "./database.ts";
import { HttpClient, type PushItem } from "./http.ts";
import { until } from "./moments.ts";
import { startFragileServer } from "./outage.ts";
import { newQueue } from "./system.ts";

const folder = mkdtempSync(join(tmpdir(), "queen-spool-"));
export const server = await startFragileServer();
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

export interface Rig {
  readonly url: string;
  query(text: string, values?: unknown[]): Promise<Row[]>;
  /** The transactionIds of a queue, lane by lane, in the order of the log. */
  stored(queue: string): Promise<string[]>;
  readonly queue: string;
  readonly client: HttpClient;
  readonly spool: string;
  broker(): BrokerProcess;
  /** Kills every process of the broker. */
  kill(): Promise<void>;
  /** Starts the broker again, on its port and its spool. */
  start(env?: Record<string, string>): Promise<void>;
}

let rigs = 0;

/** A broker of its own, whose patience is short, on a server that is there at the beginning and at the end. */
export async function withRig(env: Record<string, string>, work: (rig: Rig) => Promise<void>): Promise<void> {
  const spool = join(folder, String(++rigs));
  const own = {
    NUM_WORKERS: "1",
    PORT: String(await freePort()),
    QUEEN_SPOOL_DIR: spool,
    QUEEN_SPOOL_AFTER_MS: "300",
    ...env,
  };
  const database = `rig_${rigs}`;
  await server.query(`create database ${database}`);
  const url = new URL(server.url);
  url.pathname = `/${database}`;
  const query: Rig["query"] = (text, values) => server.query(text, values, database);
  const start = (more: Record<string, string> = {}): Promise<BrokerProcess> =>
    startBrokerProcess({ databaseUrl: url.href, env: { ...own, ...more } });
  let broker = await start();
  const client = new HttpClient(broker.url);
  const kill = async (): Promise<void> => {
    const workers = broker.workerPids();
    const killed = broker.kill("SIGKILL");
    for (const pid of workers) tryKill(pid);
    await killed;
  };
  try {
    await work({
      url: url.href,
      query,
      stored: async (queue) => (await query(STORED, [queue])).map((row) => row.transaction_id as string),
      queue: newQueue(),
      client,
      spool,
      broker: () => broker,
      kill,
      start: async (more) => {
        broker = await start(more);
      },
    });
    assert.doesNotMatch(broker.output(), /uncaught|http\.failed|drain-failed/);
  } catch (error) {
    console.error(broker.output().slice(-6_000));
    throw error;
  } finally {
    client.close();
    await kill();
    await server.ensure();
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export const item = (n: number | string, queue: string, partition = "p"): PushItem => ({
  queue,
  partition,
  transactionId: `t${n}`,
  payload: { n },
});
export const statusOf = async (client: HttpClient, ...items: PushItem[]): Promise<string> =>
  [...new Set((await client.push(items)).map((result) => result.status))].join();

const STORED = `select m.transaction_id from queen.messages m join queen.partitions p on p.id = m.partition_id
                  join queen.queues q on q.id = p.queue_id where q.name = $1 order by p.id, m.message_offset`;

// biome-ignore lint/suspicious/noExplicitAny: a wrong shape fails the agreement with the description
export const figures = async (client: HttpClient): Promise<any> =>
  (await client.request("GET", "/api/v1/system/spool")).json;

export const drained = (client: HttpClient): Promise<unknown> =>
  until("the spool is drained", async () => (await figures(client)).pending === 0);

/** Pushes are stored directly again. */
export const direct = (client: HttpClient, queue: string): Promise<unknown> =>
  until("pushes are stored directly", async () => {
    return (await client.push([{ queue: `${queue}-probe`, payload: 1 }]))[0]!.status === "queued";
  });

export const files = (spool: string, below = ""): string[] =>
  existsSync(join(spool, below))
    ? readdirSync(join(spool, below)).filter((name) => /^spool-|\.rejected$/.test(name))
    : [];

export const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, n) => `t${from + n}`);
