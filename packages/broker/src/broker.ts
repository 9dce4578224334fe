/**
 * The broker of one worker process: the only file that knows every part. It builds them, connects them with
 * functions, and starts and stops them in order.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import { Batcher, type BatchKind } from "./batching/batcher.ts";
import { Bus } from "./cluster/bus.ts";
import type { Config } from "./config.ts";
import { ConsumerGroups } from "./control/consumer-groups.ts";
import { DeadLetters } from "./control/dead-letters.ts";
import { Messages } from "./control/messages.ts";
import { Queues } from "./control/queues.ts";
import { Admin } from "./http/admin.ts";
import { ConsumerGroupRoutes } from "./http/consumer-groups.ts";
import { DataPlane } from "./http/data-plane.ts";
import { DeadLetterRoutes } from "./http/dead-letters.ts";
import { MessageRoutes } from "./http/messages.ts";
import { routes } from "./http/routes.ts";
import { HttpServer } from "./http/server.ts";
import { Directory } from "./lanes/directory.ts";
import type { Lane } from "./lanes/lane.ts";
import { SegmentCache } from "./lanes/segment-cache.ts";
import { WindowStore } from "./lanes/window-store.ts";
import { HintReader } from "./popping/hint-reader.ts";
import type { Taken } from "./popping/pop.ts";
import { Popper } from "./popping/popper.ts";
import { takeKind } from "./popping/take-kind.ts";
import { Watermarks } from "./popping/watermarks.ts";
import type { DatabaseSettings } from "./postgres/database-settings.ts";
import { classify, isDeterministic, isRolledBack } from "./postgres/errors.ts";
import { Lineage } from "./postgres/lineage.ts";
import { Session, type SessionOptions } from "./postgres/session.ts";
import { Slots } from "./postgres/slots.ts";
import * as statements from "./postgres/statements.ts";
import { appendKind } from "./pushing/append-kind.ts";
import { Pusher } from "./pushing/pusher.ts";
import { Delivered, DeliveredLeases } from "./settling/delivered.ts";
import { Renewer, renewKind } from "./settling/renewer.ts";
import { settleKind } from "./settling/settle-kind.ts";
import { Settler } from "./settling/settler.ts";
import type { Log } from "./telemetry.ts";
import { Transactor, transactKind } from "./transacting/transactor.ts";

export interface BrokerOptions {
  readonly config: Config;
  readonly database: DatabaseSettings;
  readonly log: Log;
  readonly workerIndex: number;
  readonly version: string;
}

export interface Broker {
  readonly port: number;
  /** The schema is there: connections may be made. */
  databaseReady(): void;
  stop(): Promise<void>;
}

// How long an operation may wait for a lane that another transaction holds, before its client is told.
const LANE_PATIENCE_MS = 10_000;
// How long operations may wait for a first connection before they are refused.
const DATABASE_PATIENCE_MS = 2_000;
const SECONDARY_ATTEMPTS_MAX = 3;
const DELIVERED_BYTES_MAX = 64 * 1024 * 1024;
const LANES_MAX = 1_000_000;
// Others are told at once of so many lanes that an operator moved; they find the rest by looking.
const LANES_TOLD_MAX = 1_000;
const MEGABYTE = 1024 * 1024;

type Kind = "push" | "pop" | "ack" | "transaction";

/** A worker's share of connections: a quarter for each kind, and what is left for transactions, which are never merged. */
function slotsPerKind(config: Config): Record<Kind, number> {
  const share = Math.max(4, Math.floor(config.slotCount / config.workerCount));
  const quarter = Math.floor(share / 4);
  return { push: quarter, pop: quarter, ack: quarter, transaction: share - 3 * quarter };
}

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config, database, log, workerIndex, version } = options;
  const now = (): number => performance.now();
  const startedAtMs = now();

  const sessionOptions = (purpose: string): SessionOptions => ({
    applicationName: `queen ${purpose}`,
    connectTimeoutMs: config.connectTimeoutMs,
    callTimeoutMs: config.callDeadlineMs,
    statementTimeoutMs: config.statementTimeoutMs,
    lockTimeoutMs: config.lockTimeoutMs,
    idleInTransactionTimeoutMs: config.idleInTransactionTimeoutMs,
  });
  const lineage = new Lineage(() => {
    log.warn({ message: "the database is another one, or a replica that took over" }, "database.changed");
    directory.forgetAll();
    popper.forgetAll();
    hints.forget();
  });
  const connect = (purpose: string): Promise<Session> =>
    Session.connect(database, {
      ...sessionOptions(purpose),
      admit: (origin) => lineage.admit(origin),
    });
  const slotsFor = (purpose: string, count: number): Slots =>
    new Slots({
      count,
      connect: () => connect(purpose),
      patienceMs: DATABASE_PATIENCE_MS,
      log: (message) => log.warn({ message, purpose }, "database.connection"),
    });
  const counts = slotsPerKind(config);
  const slots = {
    push: slotsFor("push", counts.push),
    pop: slotsFor("pop", counts.pop),
    ack: slotsFor("ack", counts.ack),
    transaction: slotsFor("transaction", counts.transaction),
  };
  const secondary = slotsFor(
    "secondary",
    Math.max(1, Math.floor(config.secondaryConnectionCount / config.workerCount)),
  );
  const use = async <T>(work: (session: Session) => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await secondary.use(work);
      } catch (error) {
        if (attempt >= SECONDARY_ATTEMPTS_MAX || !isRolledBack(error)) throw error;
      }
    }
  };

  const batcher = <Operation, Result>(
    kind: BatchKind<Operation, Result>,
    over: Slots,
  ): Batcher<Operation, Result> =>
    new Batcher(
      kind,
      over,
      {
        operationsMax: config.operationsPerBatchMax,
        weightMax: config.messagesPerBatchMax,
        waitingMax: config.operationsWaitingMax,
        holdMs: kind.name === "push" ? config.microBatchWaitMs : 0,
      },
      now,
    );

  const complain = (event: string, error: unknown): void => log.warn({ error }, event);
  const directory = new Directory(use, { lanesMax: LANES_MAX, now });
  const cache = new SegmentCache(config.segmentCacheMb * MEGABYTE, () => hints.isCurrent);
  const rewritten = (partition: number): void => {
    const lane = directory.laneById(partition);
    if (lane) cache.invalidate(lane);
  };
  const windows = new WindowStore(use, config.dedupMemoryMb * MEGABYTE);
  const leases = new DeliveredLeases(DELIVERED_BYTES_MAX);

  const appends = batcher(appendKind, slots.push);
  const takes = batcher(takeKind(cache), slots.pop);
  const settles = batcher(settleKind, slots.ack);
  const renews = batcher(renewKind, slots.ack);
  const transactions = batcher(transactKind, slots.transaction);

  const appendedElsewhere = (partition: number, queue: number, nextOffset: number): void => {
    const lane = directory.laneById(partition);
    if (lane) {
      lane.nextOffset = Math.max(lane.nextOffset, nextOffset);
      popper.hint(lane);
    } else if (popper.queueIds.includes(queue))
      hints.look().catch((error) => complain("hints.failed", error));
  };
  const bus = new Bus({
    id: randomUUID(),
    connect: () => connect("bus"),
    now,
    log: (level, message) => log[level]({ message }, "bus"),
    listener: {
      appended: (partition, queue, nextOffset) => appendedElsewhere(partition, queue, nextOffset),
      released: (partition) => {
        const lane = directory.laneById(partition);
        if (lane) popper.hint(lane, true);
      },
      queuesChanged: (ids) => {
        hints.queuesChanged(ids).catch((error) => complain("hints.failed", error));
      },
      rewritten: (partitions) => partitions.forEach(rewritten),
      reconnected: () => {
        hints.look().catch((error) => complain("hints.failed", error));
      },
    },
  });

  const hints = new HintReader(
    { directory, use, rewritten, intervalMs: config.popScanIntervalMs, now, log: complain },
    () => popper,
  );
  const watermarks = new Watermarks(use, now, complain);

  const deliveredOf = (taken: Taken, token: number): Delivered =>
    leases.find(token, taken.groupLane.lane.id) ??
    new Delivered({
      token,
      lane: taken.groupLane.lane,
      groupId: taken.groupId,
      groupName: taken.groupLane.group.name,
      from: taken.from,
      to: taken.to,
      segments: taken.segments,
      servedHere: true,
    });
  const givingBack = new Set<Promise<void>>();
  const giveBack = (taken: readonly Taken[], token: number): void => {
    for (const each of taken) {
      const given = settler
        .giveBack(deliveredOf(each, token))
        .catch((error) => complain("lease.not_given_back", error))
        .finally(() => givingBack.delete(given));
      givingBack.add(given);
    }
  };

  const popper = new Popper({
    directory,
    takes,
    use,
    look: () => hints.look(),
    foundNothing: (group) => watermarks.foundNothing(group),
    giveBack,
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    log: complain,
  });
  const pusher = new Pusher({
    directory,
    windows,
    cache,
    appends,
    appended: (lane: Lane) => {
      popper.hint(lane);
      bus.appended(lane.id, lane.queue.id, lane.nextOffset);
    },
    now,
    patienceMs: LANE_PATIENCE_MS,
    busyPauseMs: config.busyPartitionRetryMs,
  });
  const settler = new Settler({
    directory,
    leases,
    settles,
    use,
    released: (lane, groupId, committed, pauseMs, servedHere) => {
      popper.released(lane, groupId, committed, pauseMs);
      // Others look at what is left; and who served the pop must learn that its lease is over.
      if (!servedHere || lane.nextOffset > committed) bus.released(lane.id);
    },
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    patienceMs: LANE_PATIENCE_MS,
  });
  const renewer = new Renewer({
    renews,
    extended: (partition, leaseMs) => popper.extended(partition, leaseMs),
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    patienceMs: LANE_PATIENCE_MS,
  });
  const transactor = new Transactor({
    directory,
    windows,
    pusher,
    settler,
    transactions,
    now,
    patienceMs: LANE_PATIENCE_MS,
  });

  const readTimestamp = async (text: string): Promise<string | undefined> => {
    try {
      return (await use((session) => session.run(statements.readTimestamp, [text])))[0];
    } catch (error) {
      if (isDeterministic(error)) return undefined;
      throw error;
    }
  };
  const groups = new ConsumerGroups({
    use,
    moved: (queue, group, ready) => {
      popper.moved(queue, group);
      for (const partition of ready.slice(0, LANES_TOLD_MAX)) bus.released(partition);
    },
  });
  const letters = new DeadLetters({
    use,
    appended: (partition, queue, nextOffset) => {
      appendedElsewhere(partition, queue, nextOffset); // by the database, not by this worker's pusher
      bus.appended(partition, queue, nextOffset);
    },
  });
  const messages = new Messages({
    use,
    letters,
    rewritten,
    changed: (partition) => {
      const lane = directory.laneById(partition);
      if (lane) popper.hint(lane, true);
      bus.released(partition);
    },
  });
  const queues = new Queues({ use, directory, changed: (ids) => hints.queuesChanged(ids) });

  const batchers = {
    push: appends,
    pop: takes,
    ack: settles,
    transaction: transactions,
    renew_lease: renews,
  } as const;
  const dataPlane = new DataPlane({
    pusher,
    popper,
    settler,
    renewer,
    transactor,
    delivered: (taken, token) => {
      for (const each of taken) leases.add(deliveredOf(each, token));
    },
    giveBack,
    finishGone: async (taken, token) => {
      await Promise.all(taken.map((each) => settler.finishGone(deliveredOf(each, token)))).catch((error) =>
        complain("lease.gone_not_finished", error),
      );
    },
    queuesOf: (namespace, task) => queues.of(namespace, task),
    readTimestamp,
    newTransactionId: randomUUID,
    subscriptionModeDefault: config.subscriptionModeDefault,
    statistics: {
      push: appends.statistics,
      pop: takes.statistics,
      ack: settles.statistics,
      transaction: transactions.statistics,
      renew_lease: renews.statistics,
    },
    active: () => hints.active(),
    now,
  });

  let isDatabaseReady = false;
  const admin = new Admin({
    queues,
    isReady: () => isDatabaseReady,
    metrics: () => metrics(),
    workerIndex,
    version,
  });

  const metrics = (): Record<string, unknown> => {
    const all = [...Object.values(slots), secondary];
    const operations = Object.fromEntries(
      Object.entries(batchers).map(([kind, each]) => [kind, each.figures]),
    );
    const figures = Object.values(batchers).map((each) => each.figures);
    const sum = (pick: (each: (typeof figures)[number]) => number): number =>
      figures.reduce((total, each) => total + pick(each), 0);
    const memory = process.memoryUsage();
    const cpu = process.cpuUsage();
    return {
      uptime: Math.round((now() - startedAtMs) / 1000),
      worker: { id: workerIndex, pid: process.pid, count: config.workerCount, hostname: hostname() },
      requests: { total: sum((each) => each.count), active: server.active },
      messages: {
        pushed: appends.statistics.items,
        popped: takes.statistics.items,
        acked: settles.statistics.items,
      },
      database: {
        poolSize: all.reduce((total, each) => total + each.total, 0),
        idleConnections: all.reduce((total, each) => total + each.free, 0),
        waitingRequests: sum((each) => each.pending),
      },
      memory,
      cpu,
      sidecar: {
        connections: {
          total: Object.values(slots).reduce((total, each) => total + each.total, 0),
          busy: Object.values(slots).reduce((total, each) => total + each.busy, 0),
        },
        queue: { pending: sum((each) => each.pending), completed: sum((each) => each.count) },
        operations,
      },
      pops: { live: popper.liveCount, parked: popper.parkedCount, states: popper.times.figures() },
      bus: { state: bus.state, peers: bus.peerCount },
      caches: {
        queues: directory.queueCount,
        lanes: directory.laneCount,
        segmentBytes: cache.bytes,
        dedupBytes: windows.bytes,
        leases: leases.count,
        leaseBytes: leases.bytes,
      },
    };
  };

  const server = new HttpServer({
    routes: routes(
      {
        data: dataPlane,
        admin,
        groups: new ConsumerGroupRoutes(groups, readTimestamp),
        letters: new DeadLetterRoutes(letters, readTimestamp),
        messages: new MessageRoutes(messages, readTimestamp),
      },
      {
        popDefaults: { timeoutMs: config.popTimeoutMsDefault, batch: config.popBatchSizeDefault },
        version,
      },
    ),
    bodyBytesMax: config.bodyBytesMax,
    classify,
    log,
  });
  const port = await server.listen(config.port, config.host);

  return {
    port,
    databaseReady: () => {
      if (isDatabaseReady) return;
      isDatabaseReady = true;
      for (const each of [...Object.values(slots), secondary]) each.start();
      hints.start();
      if (config.busEnabled) bus.start();
    },
    stop: async () => {
      hints.stop();
      const served = server.stop(config.shutdownTimeoutMs);
      const popped = popper.stop();
      await served;
      await popped;
      while (givingBack.size > 0) await Promise.all(givingBack);
      await bus.stop();
      await Promise.all([...Object.values(slots), secondary].map((each) => each.stop()));
    },
  };
}
