/** The data plane: the engine behind the handlers of push, pop, ack, lease and transaction. */
import { randomUUID } from "node:crypto";
import type { Config } from "../config.ts";
import { DataPlane, type DataPlaneOptions } from "../http/data-plane.ts";
import { RequestMeter } from "../http/request-meter.ts";
import { TracedDataPlane } from "../http/traced-data-plane.ts";
import type { Meter } from "../metering/meter.ts";
import { classify } from "../postgres/errors.ts";
import type { Tracing } from "../tracing.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { Engine } from "./engine.ts";

export interface DataPlaneParts {
  readonly config: Config;
  readonly engine: Engine;
  readonly control: Pick<ControlPlane, "queues" | "readTimestamp">;
  readonly meter: Meter;
  /** The database's time. */
  readonly clockMs: () => number;
  readonly tracing: Tracing | undefined;
  readonly now: () => number;
}

export function dataPlaneOf(parts: DataPlaneParts): DataPlane {
  const { config, engine, control, meter, clockMs, tracing, now } = parts;
  const { batchers, capacity, hints, maintenance } = engine;
  const { directory, queueOfPartition } = engine.memory;
  const { bus } = engine.news;
  const { delivered, giveBack, unfinish, undeliverable, finishGone } = engine.deliveries;
  const options: DataPlaneOptions = {
    pusher: engine.pusher,
    spool: engine.spooling.spool,
    popper: engine.popper,
    settler: engine.settler,
    renewer: engine.renewer,
    transactor: engine.transactor,
    keyring: engine.keyring,
    admit: (items) => capacity.admit(items),
    delivered,
    giveBack,
    unfinish,
    undeliverable,
    finishGone,
    queuesOf: (namespace, task) => control.queues.of(namespace, task),
    queueOfPartition,
    readTimestamp: control.readTimestamp,
    newTransactionId: randomUUID,
    subscriptionModeDefault: config.subscriptionModeDefault,
    statistics: {
      push: batchers.push.statistics,
      pop: batchers.pop.statistics,
      ack: batchers.ack.statistics,
      transaction: batchers.transaction.statistics,
      renew_lease: batchers.renew_lease.statistics,
    },
    meter: new RequestMeter({
      meter,
      queue: (name) => directory.queue(name),
      lane: (id) => directory.laneById(id),
      clockMs,
    }),
    active: () => hints.active(),
    modes: () => maintenance.modes,
    isInformed: () => hints.isCurrent || (hints.hasLooked && bus.state === "listening"),
    inform: () => hints.look().catch(() => undefined), // where nothing can be asked, the operation says so itself
    now,
  };
  return tracing ? new TracedDataPlane(options, tracing, classify) : new DataPlane(options);
}
