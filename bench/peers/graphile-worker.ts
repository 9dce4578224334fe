/** Graphile Worker: a job queue on PostgreSQL whose workers are woken by NOTIFY. */
import pg from "pg";
import type { Data } from "../messages.ts";
import { load, versionOf } from "./packages.ts";
import {
  type Consumption,
  inLane,
  onPostgres,
  type Peer,
  type PeerClient,
  type PeerMessage,
  type Sink,
} from "./peer.ts";

const TASK = "bench";
const CONNECTIONS = 16;
const CONCURRENT_JOBS = 24;
// As its documentation on performance advises for many short jobs.
const LOCAL_QUEUE_SIZE = 500;

interface Utils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: Data, spec: { queueName?: string }): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Data }[]): Promise<unknown>;
  release(): Promise<void>;
}

/** Where there are lanes, a job says which one it is of. */
type InLane = Data & { readonly lane?: number };

interface Module {
  readonly WorkerPreset: object;
  readonly Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: { pgPool: pg.Pool; logger: object }): Promise<Utils>;
  run(options: {
    pgPool: pg.Pool;
    logger: object;
    noHandleSignals: boolean;
    taskList: Record<string, (payload: InLane) => void>;
    preset: object;
  }): Promise<{ stop(): Promise<void>; promise: Promise<void>; events: Events }>;
}

interface Events {
  on(event: "job:complete", listener: () => void): void;
}

export const graphileWorker: Peer = {
  name: "graphile-worker",
  title: "Graphile Worker",
  packages: ["graphile-worker"],
  usesPostgres: true,
  isOrdered: false,
  offers: { lanes: "by queueName", groups: "no", replay: "no", acks: "awaited" },
  missing: () => null,
  startServer: () =>
    onPostgres(versionOf("graphile-worker"), `local queue of ${LOCAL_QUEUE_SIZE}, completes in batches`),
  connect: async ({ databaseUrl, lanes }) => {
    const worker = load<Module>("graphile-worker");
    const logger = new worker.Logger(() => () => undefined);
    const pgPool = new pg.Pool({ connectionString: databaseUrl!, max: CONNECTIONS });
    pgPool.on("error", () => undefined);
    pgPool.on("connect", (client) => client.on("error", () => undefined));
    const utils = await worker.makeWorkerUtils({ pgPool, logger });
    await utils.migrate();
    return new GraphileWorkerClient(worker, logger, pgPool, utils, lanes > 1);
  },
};

class GraphileWorkerClient implements PeerClient {
  readonly #worker: Module;
  readonly #logger: object;
  readonly #pool: pg.Pool;
  readonly #utils: Utils;
  readonly #hasLanes: boolean;

  constructor(worker: Module, logger: object, pool: pg.Pool, utils: Utils, hasLanes: boolean) {
    this.#worker = worker;
    this.#logger = logger;
    this.#pool = pool;
    this.#utils = utils;
    this.#hasLanes = hasLanes;
  }

  async send(_sender: number, { partition, data }: PeerMessage): Promise<void> {
    if (this.#hasLanes) {
      const job: InLane = { ...data, lane: partition };
      await this.#utils.addJob(TASK, job, { queueName: `lane-${partition}` });
    } else await this.#utils.addJob(TASK, data, {});
  }

  async sendBatch(_sender: number, messages: readonly PeerMessage[]): Promise<void> {
    await this.#utils.addJobs(messages.map(({ data }) => ({ identifier: TASK, payload: data })));
  }

  async consume(style: "drain" | "wait", sink: Sink): Promise<Consumption> {
    const inBatches = {
      concurrentJobs: CONCURRENT_JOBS,
      localQueue: { size: LOCAL_QUEUE_SIZE },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    };
    const runner = await this.#worker.run({
      pgPool: this.#pool,
      logger: this.#logger,
      noHandleSignals: true,
      taskList: { [TASK]: (payload) => sink.received([inLane(payload.lane ?? 0, payload)]) },
      preset: {
        extends: [this.#worker.WorkerPreset],
        worker: style === "drain" ? inBatches : { concurrentJobs: 1 },
      },
    });
    runner.events.on("job:complete", () => sink.done(1));
    runner.promise.catch((error: unknown) => sink.failed(error));
    return { stop: () => runner.stop() };
  }

  async close(): Promise<void> {
    await this.#utils.release();
    await this.#pool.end();
  }
}
