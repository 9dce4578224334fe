/**
 * The broker of one worker process: builds its parts, each from those before it, and starts and stops them in order.
 * Where a part needs one that comes later, it gets a function.
 */
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answers } from "./cluster/questions.ts";
import type { PrimaryLine } from "./cluster/supervisor.ts";
import type { Config } from "./config.ts";
import { Meter } from "./metering/meter.ts";
import type { DatabaseSettings } from "./postgres/database-settings.ts";
import { sweepsOf } from "./sweeping/sweep.ts";
import { Sweeper } from "./sweeping/sweeper.ts";
import type { Log } from "./telemetry.ts";
import { accessOf, tokensOf } from "./wiring/access.ts";
import { connectionsOf } from "./wiring/connections.ts";
import { controlPlaneOf } from "./wiring/control-plane.ts";
import { dataPlaneOf } from "./wiring/data-plane.ts";
import { engineOf } from "./wiring/engine.ts";
import { figuresOf } from "./wiring/figures.ts";
import { interfaceOf } from "./wiring/interface.ts";
import { tracingOf } from "./wiring/tracing.ts";

export interface BrokerOptions {
  readonly config: Config;
  readonly database: DatabaseSettings;
  readonly log: Log;
  readonly workerIndex: number;
  readonly version: string;
  /** Asks the other workers of this broker. */
  readonly askOthers: (question: string) => Promise<Answers>;
  readonly line: PrimaryLine;
  /** Undefined: this broker has no spool. */
  readonly spoolFolder: string | undefined;
}

export interface Broker {
  readonly port: number;
  /** The schema is there: connections may be made. Resolves when pushes go to the database. */
  databaseReady(): Promise<void>;
  /** All workers of this broker can use the database. */
  allReady(): void;
  /** Whether it takes connections that it is offered. */
  accept(isAccepting: boolean): void;
  /** So many of its clients, from 0 to 1, are asked to come back by another connection. */
  turnAway(share: number): void;
  answer(question: string): unknown;
  stop(): Promise<void>;
}

// A stopping broker gives its last spans at least and at most so long, also where requests took all its time.
const SPANS_MS_MIN = 500;
const SPANS_MS_MAX = 3_000;

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config, database, log, workerIndex, version, line, spoolFolder, askOthers } = options;
  const now = (): number => performance.now();
  const startedAtMs = now();
  const tracing = await tracingOf(options);
  const tokens = await tokensOf(config, now, log);

  let isDatabaseReady = false;
  let areAllReady = false;
  let isStopping = false;
  const isDatabaseHealthy = (): boolean => isDatabaseReady && !spool.isAway;
  // Whoever hears that the broker is ready may meet another worker next.
  const isReady = (): boolean => areAllReady && isDatabaseHealthy();

  const meter = new Meter();
  const connections = connectionsOf({
    config,
    database,
    meter,
    databaseChanged: () => engine.forget(),
    fellSilent: (reason) => bus.cut(reason),
    now,
    log,
  });
  const { pools, watch, use } = connections;
  const engine = engineOf({
    config,
    connections,
    meter,
    tracing,
    line,
    spoolFolder,
    workerIndex,
    queuesOf: (namespace, task) => control.queues.of(namespace, task),
    now,
    log,
  });
  const { hints, popper, deliveries } = engine;
  const { bus } = engine.news;
  const { spool } = engine.spooling;
  const access = accessOf({ config, tokens, use, now, log });
  const { audit } = access;
  const control = controlPlaneOf({ use, engine, workerIndex, now });
  const sweeper = new Sweeper({
    sweeps: sweepsOf(config),
    use,
    worker: `${hostname()}/${process.pid}/${workerIndex}`,
    now,
    random: Math.random,
    log,
  });
  const data = dataPlaneOf({
    config,
    engine,
    control,
    meter,
    clockMs: () => minutes.nowMs,
    tracing,
    now,
  });
  const figures = figuresOf({
    config,
    workerIndex,
    connections,
    engine,
    meter,
    laneFigures: control.figures,
    askOthers,
    requestsActive: () => server.active,
    port: () => port,
    isDatabaseHealthy,
    startedAtMs,
    now,
    log,
  });
  const { minutes, metrics } = figures;
  const server = interfaceOf({
    config,
    version,
    workerIndex,
    spoolFolder,
    connections,
    engine,
    access,
    control,
    data,
    figures,
    isReady,
    isStopping: () => isStopping,
    now,
    log,
  });

  tokens?.start();
  await spool.join();
  const port = await server.listen(config.port, config.host);

  return {
    port,
    databaseReady: async () => {
      if (!isDatabaseReady) {
        isDatabaseReady = true;
        for (const pool of pools) pool.start();
        watch.start();
        hints.start();
        minutes.start();
        if (config.busEnabled) bus.start();
        sweeper.start();
      }
      await spool.databaseReady();
    },
    allReady: () => {
      areAllReady = true;
    },
    accept: (isAccepting) => server.accept(isAccepting),
    turnAway: (share) => server.turnAwaySome(share),
    answer: (question) => metrics.answer(question),
    stop: async () => {
      isStopping = true;
      if (config.shutdownDelayMs > 0) {
        server.turnAway();
        await sleep(config.shutdownDelayMs);
      }
      const stoppingAtMs = now();
      hints.stop();
      const swept = sweeper.stop();
      tokens?.stop();
      const served = server.stop(config.shutdownTimeoutMs);
      const popped = popper.stop();
      await served;
      await popped;
      await swept;
      await deliveries.allGivenBack();
      const leftMs = config.shutdownTimeoutMs - (now() - stoppingAtMs);
      const traced = tracing?.stop(Math.min(Math.max(leftMs, SPANS_MS_MIN), SPANS_MS_MAX));
      await minutes.stop();
      await audit.flush();
      spool.stop();
      watch.stop();
      await bus.stop();
      await Promise.all(pools.map((pool) => pool.stop()));
      await traced;
    },
  };
}
