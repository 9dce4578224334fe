/** What a worker tells of itself: to those who ask it, to the other workers, and every minute to the database. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Answers } from "../cluster/questions.ts";
import { type Config, connectionCount } from "../config.ts";
import { Analytics } from "../control/analytics.ts";
import { Diagnosis } from "../control/diagnosis.ts";
import type { Figures as LaneFigures } from "../control/figures.ts";
import { SharedState } from "../http/shared-state.ts";
import { BrokerMetrics } from "../metering/broker-metrics.ts";
import { GaugeSampler } from "../metering/gauges.ts";
import type { Meter } from "../metering/meter.ts";
import { MinuteWriter } from "../metering/minute-writer.ts";
import { unixMilliseconds } from "../operations/timestamp.ts";
import * as statements from "../postgres/statements.ts";
import type { Log } from "../telemetry.ts";
import type { Connections } from "./connections.ts";
import type { Engine } from "./engine.ts";
import { WorkerFigures } from "./worker-figures.ts";

export interface FiguresOptions {
  readonly config: Config;
  readonly workerIndex: number;
  readonly connections: Pick<Connections, "slots" | "secondary" | "use">;
  readonly engine: Pick<Engine, "memory" | "batchers" | "news" | "popper" | "maintenance" | "spooling">;
  readonly meter: Meter;
  readonly laneFigures: LaneFigures;
  /** Asks the other workers of this broker. */
  readonly askOthers: (question: string) => Promise<Answers>;
  readonly requestsActive: () => number;
  readonly port: () => number;
  readonly isDatabaseHealthy: () => boolean;
  readonly startedAtMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface Figures {
  readonly sharedState: SharedState;
  readonly diagnosis: Diagnosis;
  readonly minutes: MinuteWriter;
  readonly analytics: Analytics;
  readonly metrics: BrokerMetrics;
}

export function figuresOf(options: FiguresOptions): Figures {
  const { config, workerIndex, engine, meter, askOthers, port, now, log } = options;
  const { slots, secondary, use } = options.connections;
  const { batchers, popper, maintenance, spooling } = engine;
  const { directory, cache, windows, leases } = engine.memory;
  const { bus, nudge } = engine.news;
  const sharedState = new SharedState({
    isEnabled: config.busEnabled,
    serverId: `${hostname()}-${process.pid}`,
    figures: () => ({
      isRunning: bus.state === "listening",
      queues: directory.queueCount,
      ...directory.lookups,
      peers: bus.peers.count,
      lostPeers: bus.peers.lostCount,
      heard: bus.heardCount,
    }),
    modes: () => maintenance.modes,
    nudge,
  });
  const diagnosis = new Diagnosis({
    use,
    brokerFacts: () => ({
      bus: bus.state,
      busPeers: bus.peers.count,
      spool: spooling.figures(),
      connectionsNeeded: connectionCount(config),
    }),
    clock: Date.now,
  });
  const worker = new WorkerFigures({
    workerIndex,
    workerCount: config.workerCount,
    startedAtMs: options.startedAtMs,
    now,
    meter,
    gauges: () => gauges,
    slots: Object.values(slots),
    secondary,
    batchers,
    popper,
    bus,
    requestsActive: options.requestsActive,
    spool: spooling.figures,
    isDatabaseHealthy: options.isDatabaseHealthy,
    modes: () => maintenance.modes,
    caches: () => ({
      queues: directory.queueCount,
      lanes: directory.laneCount,
      segmentBytes: cache.bytes,
      dedupBytes: windows.bytes,
      leases: leases.count,
      leaseBytes: leases.bytes,
    }),
  });
  const gauges = new GaugeSampler(() => worker.state(), now);
  const runId = randomUUID();
  const minutes = new MinuteWriter({
    meter,
    gauges,
    save: async ({ workers, queues }) => {
      const [clockUs] = await use((session) =>
        session.run(statements.saveMinutes, [
          runId,
          hostname(),
          port(),
          workerIndex,
          process.pid,
          JSON.stringify(workers),
          JSON.stringify(queues),
        ]),
      );
      return unixMilliseconds(clockUs!);
    },
    readClock: async () => {
      const [clockUs] = await use((session) => session.run(statements.readClock, []));
      return unixMilliseconds(clockUs!);
    },
    parked: () => popper.parkedByQueue(),
    wallMs: Date.now,
    sampleMs: config.metricsSampleMs,
    writeMs: config.metricsWriteSeconds * 1000,
    log: (event, error) => log.warn({ error }, event),
  });
  const analytics = new Analytics({ use, figures: options.laneFigures, now });
  const metrics = new BrokerMetrics({
    snapshot: () => worker.snapshot(),
    metrics: () => worker.metrics(),
    askOthers: async (question) =>
      config.workerCount === 1 ? { answers: [], silent: 0 } : askOthers(question),
    cluster: () => analytics.cluster(),
    labelsMax: config.metricsLabelsMax,
  });
  return { sharedState, diagnosis, minutes, analytics, metrics };
}
