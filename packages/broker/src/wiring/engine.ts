/**
 * The engine: what pushes, pops, settles and transacts. Its parts know each other in circles: a push wakes pops, a pop
 * that is not delivered is settled, and what is settled wakes pops again. The circles are closed here, and nowhere else.
 */
import { randomBytes } from "node:crypto";
import type { PrimaryLine } from "../cluster/supervisor.ts";
import type { Config } from "../config.ts";
import { Maintenance } from "../control/maintenance.ts";
import type { Meter } from "../metering/meter.ts";
import { Keyring, parseKeys } from "../operations/encryption.ts";
import { HintReader } from "../popping/hint-reader.ts";
import { popRider } from "../popping/pop-rider.ts";
import { Popper, type PopperOptions } from "../popping/popper.ts";
import { Watermarks } from "../popping/watermarks.ts";
import { Capacity } from "../pushing/capacity.ts";
import { Pusher } from "../pushing/pusher.ts";
import { Renewer } from "../settling/renewer.ts";
import { Settler } from "../settling/settler.ts";
import type { Log } from "../telemetry.ts";
import type { Tracing } from "../tracing.ts";
import { Transactor } from "../transacting/transactor.ts";
import { type Batchers, batchersOf } from "./batchers.ts";
import type { Connections } from "./connections.ts";
import { type Deliveries, deliveriesOf } from "./deliveries.ts";
import { type Memory, memoryOf } from "./memory.ts";
import { type News, newsOf } from "./news.ts";
import { type Spooling, spoolingOf } from "./spooling.ts";

export interface EngineOptions {
  readonly config: Config;
  readonly connections: Pick<Connections, "connect" | "slots" | "use">;
  readonly meter: Meter;
  readonly tracing: Tracing | undefined;
  readonly line: PrimaryLine;
  readonly spoolFolder: string | undefined;
  readonly workerIndex: number;
  readonly queuesOf: PopperOptions["queuesOf"];
  readonly now: () => number;
  readonly log: Log;
}

export interface Engine {
  readonly memory: Memory;
  readonly keyring: Keyring;
  readonly batchers: Batchers;
  readonly news: News;
  readonly maintenance: Maintenance;
  readonly hints: HintReader;
  readonly deliveries: Deliveries;
  readonly popper: Popper;
  readonly pusher: Pusher;
  readonly spooling: Spooling;
  readonly settler: Settler;
  readonly renewer: Renewer;
  readonly capacity: Capacity;
  readonly transactor: Transactor;
  /** The database is another one: what was read of it is wrong. */
  forget(): void;
}

// How long an operation may wait for a lane that another transaction holds, before its client is told.
const LANE_PATIENCE_MS = 10_000;

export function engineOf(options: EngineOptions): Engine {
  const { config, connections, meter, tracing, line, spoolFolder, workerIndex, queuesOf, now, log } = options;
  const { connect, slots, use } = connections;
  const complain = (event: string, error: unknown): void => log.warn({ error }, event);

  const memory = memoryOf({
    config,
    use,
    meter,
    isCurrent: () => hints.isCurrent,
    waitingFor: (name) => popper.waitingFor(name),
  });
  const { directory, cache, windows, leases, rewritten } = memory;
  const keyring = new Keyring(parseKeys(config.encryptionKeys ?? ""), randomBytes);
  if (!keyring.isEmpty && workerIndex === 0) log.info({ keyIds: keyring.ids.join() }, "encryption.keys");

  const batchers = batchersOf({
    config,
    slots,
    cache,
    rider: (lanes) => popRider(popper, cache, lanes),
    now,
    tracing,
  });
  const news = newsOf({ connect, memory, popper: () => popper, hints: () => hints, now, log });
  const { bus } = news;

  const maintenance = new Maintenance({
    use,
    look: () => hints.look(),
    changed: (modes) => {
      log.warn({ ...modes }, "maintenance.switched");
      if (modes.pop) popper.refuseAll();
      spooling.spool.setMaintenance(modes.push);
    },
  });
  const hints = new HintReader(
    {
      directory,
      use,
      rewritten,
      stateChanged: () => maintenance.refresh(),
      intervalMs: config.popScanIntervalMs,
      now,
      log: complain,
    },
    () => popper,
  );
  const watermarks = new Watermarks(use, now, complain);
  const deliveries = deliveriesOf({
    use,
    leases,
    bus,
    popper: () => popper,
    settler: () => settler,
    log,
  });

  const popper = new Popper({
    directory,
    takes: batchers.pop,
    use,
    queuesOf,
    look: () => hints.look(),
    foundNothing: (group) => watermarks.foundNothing(group),
    giveBack: deliveries.giveBack,
    isMaintenance: () => maintenance.modes.pop,
    isHome: ({ lane, group }) => group.id === undefined || bus.peers.isHome(lane.id, group.id),
    beganToRead: () => bus.beganToRead(),
    buried: (queue) => meter.buried(queue),
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    log: complain,
  });
  const pusher = new Pusher({
    directory,
    windows,
    cache,
    appends: batchers.push,
    keyring,
    opened: (lane) => popper.expect(lane),
    appended: (lane, messages) => {
      meter.stored(lane.queue, messages);
      popper.appended(lane);
      bus.appended(lane.id, lane.queue.id, lane.nextOffset);
    },
    now,
    patienceMs: LANE_PATIENCE_MS,
    busyPauseMs: config.busyPartitionRetryMs,
    stallMs: config.spoolAfterMs,
  });
  const spooling = spoolingOf({
    line,
    folder: spoolFolder,
    keyring,
    directory,
    pusher,
    slots: slots.push,
    use,
    now,
    log,
  });
  const settler = new Settler({
    directory,
    leases,
    settles: batchers.ack,
    use,
    released: (lane, groupId, committed, pauseMs, servedHere) => {
      popper.released(lane, groupId, committed, pauseMs);
      // Others look at what is left; and who served the pop must learn that its lease is over.
      if (!servedHere || lane.gone || lane.nextOffset > committed) bus.released(lane.id);
    },
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    patienceMs: LANE_PATIENCE_MS,
  });
  const renewer = new Renewer({
    renews: batchers.renew_lease,
    extended: (partition, leaseMs) => popper.extended(partition, leaseMs),
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    patienceMs: LANE_PATIENCE_MS,
  });
  const capacity = new Capacity({ directory, use, now });
  const transactor = new Transactor({
    directory,
    windows,
    pusher,
    settler,
    transactions: batchers.transaction,
    keyring,
    admit: (items) => capacity.admit(items),
    now,
    patienceMs: LANE_PATIENCE_MS,
  });

  return {
    memory,
    keyring,
    batchers,
    news,
    maintenance,
    hints,
    deliveries,
    popper,
    pusher,
    spooling,
    settler,
    renewer,
    capacity,
    transactor,
    forget: () => {
      directory.forgetAll();
      popper.forgetAll();
      hints.forget();
      spooling.drainer.forget();
    },
  };
}
