/** BullMQ: a job queue on Redis, which here writes its log to the disk before it answers. */
import { execFileSync } from "node:child_process";
import type { Data } from "../messages.ts";
import { freePort } from "../processes/children.ts";
import { startLoopbackServer } from "./loopback-server.ts";
import { findProgram, load, versionOf } from "./packages.ts";
import {
  type Consumption,
  inOneLane,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const QUEUE = "bench";
const JOB = "message";
const CONCURRENCY = 64;

interface Job {
  readonly data: Data;
}

interface Queue {
  add(name: string, data: Data): Promise<unknown>;
  addBulk(jobs: readonly { name: string; data: Data }[]): Promise<unknown>;
  close(): Promise<void>;
}

interface Worker {
  on(event: "completed", listener: () => void): void;
  on(event: "error" | "failed", listener: (...args: unknown[]) => void): void;
  waitUntilReady(): Promise<unknown>;
  close(force: boolean): Promise<void>;
}

interface Connection {
  readonly host: string;
  readonly port: number;
  readonly maxRetriesPerRequest: null;
}

interface Module {
  readonly Queue: new (
    name: string,
    options: { connection: Connection; defaultJobOptions: { removeOnComplete: boolean } },
  ) => Queue;
  readonly Worker: new (
    name: string,
    handler: (job: Job) => Promise<void>,
    options: { connection: Connection; concurrency: number },
  ) => Worker;
}

export const bullmq: Peer = {
  name: "bullmq",
  title: "BullMQ on Redis",
  packages: ["bullmq", "ioredis"],
  usesPostgres: false,
  isOrdered: false,
  offers: { lanes: "no", groups: "no", replay: "no", acks: "awaited" },
  missing: () =>
    findProgram("redis-server") ? null : "redis-server is missing: apt-get install redis-server",
  startServer: async ({ folder }) => {
    const program = findProgram("redis-server")!;
    const address = { host: "127.0.0.1", port: await freePort() };
    const durability = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    const args = ["--bind", address.host, "--port", String(address.port), "--dir", folder, ...durability];
    const { child, stop } = await startLoopbackServer(program, args, { folder, address });
    const version = /v=([\d.]+)/.exec(execFileSync(program, ["--version"], { encoding: "utf8" }))?.[1];
    return {
      addresses: [address],
      pids: [child.pid!],
      version: `${versionOf("bullmq")}, Redis ${version}`,
      settings: `appendfsync always, concurrency ${CONCURRENCY}, removeOnComplete`,
      answersAfterFsync: true,
      stop,
    };
  },
  connect: async ({ addresses }) => {
    const module = load<Module>("bullmq");
    const connection = { ...addresses[0]!, maxRetriesPerRequest: null };
    const queue = new module.Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
    return new BullmqClient(module, connection, queue);
  },
};

class BullmqClient implements PeerClient {
  readonly #module: Module;
  readonly #connection: Connection;
  readonly #queue: Queue;

  constructor(module: Module, connection: Connection, queue: Queue) {
    this.#module = module;
    this.#connection = connection;
    this.#queue = queue;
  }

  async send(_sender: number, { data }: PeerMessage): Promise<void> {
    await this.#queue.add(JOB, data);
  }

  async sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    await this.#queue.addBulk(messages.map(({ data }) => ({ name: JOB, data })));
  }

  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const handle = async (job: Job): Promise<void> => sink.received([inOneLane(job.data)]);
    const concurrency = style === "drain" ? CONCURRENCY : 1;
    const worker = new this.#module.Worker(QUEUE, handle, { connection: this.#connection, concurrency });
    worker.on("completed", () => sink.done(1));
    worker.on("error", (error) => sink.failed(error));
    worker.on("failed", (_job, error) => sink.failed(error));
    await worker.waitUntilReady();
    return { stop: () => worker.close(true) };
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}
