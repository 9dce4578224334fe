/** What a worker says of itself: to the sampler every second, and to whoever asks the broker for metrics. */
import { hostname } from "node:os";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { Bus } from "../cluster/bus.ts";
import type { MaintenanceModes } from "../control/maintenance.ts";
import type { SpoolFigures } from "../control/spool-figures.ts";
import { OTHER } from "../metering/family.ts";
import { type GaugeSampler, virtualBytes, type WorkerState } from "../metering/gauges.ts";
import type { Meter } from "../metering/meter.ts";
import type { OperationMetrics, WorkerMetrics } from "../metering/metrics-sum.ts";
import {
  type Operation,
  type OperationSnapshot,
  queueSnapshots,
  type WorkerSnapshot,
} from "../metering/snapshot.ts";
import type { Popper } from "../popping/popper.ts";
import type { Slots } from "../postgres/slots.ts";

export interface WorkerFiguresOptions {
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly startedAtMs: number;
  readonly now: () => number;
  readonly meter: Meter;
  readonly gauges: () => GaugeSampler;
  /** Of the data plane. */
  readonly slots: readonly Slots[];
  readonly secondary: Slots;
  readonly batchers: Readonly<
    Record<Operation, { readonly statistics: OperationStatistics; readonly figures: OperationMetrics }>
  >;
  readonly popper: Popper;
  readonly bus: Bus;
  readonly requestsActive: () => number;
  readonly caches: () => WorkerMetrics["caches"];
  readonly spool: () => SpoolFigures;
  readonly isDatabaseHealthy: () => boolean;
  readonly modes: () => MaintenanceModes;
}

// What a worker tells another of its queues; names that are labels are fewer still.
const QUEUES_MAX = 1_000;

export class WorkerFigures {
  readonly #options: WorkerFiguresOptions;

  constructor(options: WorkerFiguresOptions) {
    this.#options = options;
  }

  state(): WorkerState {
    const { slots, secondary, bus, requestsActive } = this.#options;
    const all = [...slots, secondary];
    return {
      freeSlots: sum(slots, (each) => each.free),
      operationsWaiting: sum(this.#operations, (each) => each.pending),
      slots: sum(slots, (each) => each.total),
      secondaryConnections: secondary.total,
      secondaryWaiting: secondary.waiting,
      poolSize: sum(all, (each) => each.total),
      poolIdle: sum(all, (each) => each.free),
      poolActive: sum(all, (each) => each.busy),
      requestsActive: requestsActive(),
      busPeers: bus.peers.count,
    };
  }

  snapshot(): WorkerSnapshot {
    const { workerIndex, meter, popper, batchers, isDatabaseHealthy } = this.#options;
    const gauges = this.#options.gauges();
    const spool = this.#options.spool();
    const modes = this.#options.modes();
    const cpu = process.cpuUsage();
    const operation = (kind: Operation): OperationSnapshot => {
      const { count, durations, databaseDurations } = batchers[kind].statistics;
      return { requests: count, duration: durations.figures(), database: databaseDurations.figures() };
    };
    return {
      ...this.state(),
      workerId: workerIndex,
      uptimeSeconds: this.#uptimeSeconds,
      cpuUserUs: cpu.user,
      cpuSystemUs: cpu.system,
      rssBytes: process.memoryUsage.rss(),
      heapBytes: process.memoryUsage().heapUsed,
      virtualBytes: virtualBytes(),
      popsParked: popper.parkedCount,
      spoolPending: spool.pending,
      spoolRejected: spool.failed,
      isDatabaseHealthy: isDatabaseHealthy(),
      isPushMaintenance: modes.push,
      isPopMaintenance: modes.pop,
      loopLagMsAverage: gauges.lagMsAverage,
      loopLagMsMax: gauges.lagMsMax,
      counts: meter.worker,
      operations: {
        push: operation("push"),
        pop: operation("pop"),
        ack: operation("ack"),
        transaction: operation("transaction"),
        renew_lease: operation("renew_lease"),
      },
      ages: meter.ages.figures(),
      queues: queueSnapshots(meter, popper.parkedByQueue(), QUEUES_MAX, OTHER),
    };
  }

  metrics(): WorkerMetrics {
    const { workerIndex, workerCount, batchers, popper, bus, slots, caches } = this.#options;
    const state = this.state();
    const answered = sum(this.#operations, (each) => each.count);
    return {
      uptime: this.#uptimeSeconds,
      worker: { id: workerIndex, pid: process.pid, count: workerCount, hostname: hostname() },
      requests: { total: answered, active: state.requestsActive },
      messages: {
        pushed: batchers.push.statistics.items,
        popped: batchers.pop.statistics.items,
        acked: batchers.ack.statistics.items,
      },
      database: {
        poolSize: state.poolSize,
        idleConnections: state.poolIdle,
        waitingRequests: state.operationsWaiting,
      },
      memory: process.memoryUsage(),
      cpu: process.cpuUsage(),
      sidecar: {
        connections: { total: state.slots, busy: sum(slots, (each) => each.busy) },
        queue: { pending: state.operationsWaiting, completed: answered },
        operations: Object.fromEntries(Object.entries(batchers).map(([kind, each]) => [kind, each.figures])),
      },
      pops: { live: popper.liveCount, parked: popper.parkedCount, states: popper.times.figures() },
      bus: { state: bus.state, peers: bus.peers.count },
      caches: caches(),
    };
  }

  get #operations(): OperationMetrics[] {
    return Object.values(this.#options.batchers).map((each) => each.figures);
  }

  get #uptimeSeconds(): number {
    return Math.round((this.#options.now() - this.#options.startedAtMs) / 1000);
  }
}

const sum = <T>(items: readonly T[], pick: (item: T) => number): number =>
  items.reduce((total, item) => total + pick(item), 0);
