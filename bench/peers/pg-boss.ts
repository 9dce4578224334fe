/** pg-boss: a job queue on PostgreSQL with a client for Node. */
import type { Data } from "../messages.ts";
import { load, versionOf } from "./packages.ts";
import {
  type Consumption,
  inOneLane,
  loops,
  onPostgres,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const QUEUE = "bench";
const CONNECTIONS = 16;
const CONSUMERS = 8;
const FETCH_BATCH = 1_000;
// The shortest that it takes.
const POLL_SECONDS = 0.5;

interface Job {
  readonly id: string;
  readonly data: Data;
}

interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<void>;
  stop(options: { graceful: boolean; wait: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
  insert(jobs: readonly { name: string; data: object }[]): Promise<void>;
  fetch(name: string, options: { batchSize: number }): Promise<Job[]>;
  complete(name: string, ids: readonly string[]): Promise<void>;
  work(
    name: string,
    options: { pollingIntervalSeconds: number; batchSize: number },
    handler: (jobs: Job[]) => Promise<void>,
  ): Promise<string>;
  offWork(name: string): Promise<void>;
}

type BossClass = new (options: { connectionString: string; max: number }) => Boss;

export const pgBoss: Peer = {
  name: "pg-boss",
  title: "pg-boss",
  packages: ["pg-boss"],
  usesPostgres: true,
  isOrdered: false,
  offers: { lanes: "no", groups: "by copies", replay: "no", acks: "awaited" },
  missing: () => null,
  startServer: () =>
    onPostgres(versionOf("pg-boss"), `polls every ${POLL_SECONDS} s, fetches ${FETCH_BATCH}`),
  connect: async ({ databaseUrl }) => {
    const PgBoss = load<BossClass>("pg-boss");
    const boss = new PgBoss({ connectionString: databaseUrl!, max: CONNECTIONS });
    boss.on("error", () => undefined);
    await boss.start();
    await boss.createQueue(QUEUE);
    return new PgBossClient(boss);
  },
};

class PgBossClient implements PeerClient {
  readonly #boss: Boss;

  constructor(boss: Boss) {
    this.#boss = boss;
  }

  async send(_sender: number, { data }: PeerMessage): Promise<void> {
    if ((await this.#boss.send(QUEUE, data)) === null) throw new Error("send: the job was not created");
  }

  sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    return this.#boss.insert(messages.map(({ data }) => ({ name: QUEUE, data })));
  }

  /** Its worker polls at fixed intervals, so that as much as possible is had by fetching. */
  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const receive = (jobs: readonly Job[]): void => sink.received(jobs.map(({ data }) => inOneLane(data)));
    if (style === "drain") {
      return loops(CONSUMERS, sink, async () => {
        const jobs = await this.#boss.fetch(QUEUE, { batchSize: FETCH_BATCH });
        if (jobs.length === 0) return;
        receive(jobs);
        await this.#boss.complete(
          QUEUE,
          jobs.map(({ id }) => id),
        );
        sink.done(jobs.length);
      });
    }
    const options = { pollingIntervalSeconds: POLL_SECONDS, batchSize: FETCH_BATCH };
    await this.#boss.work(QUEUE, options, async (jobs) => {
      receive(jobs);
      sink.done(jobs.length);
    });
    return { stop: () => this.#boss.offWork(QUEUE) };
  }

  close(): Promise<void> {
    return this.#boss.stop({ graceful: false, wait: true });
  }
}
