/**
 * The broker of one worker process: the only file that knows every part. It builds them, connects them with
 * functions, and starts and stops them in order.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { AuditLog } from "./access/audit-log.ts";
import { Guard } from "./access/guard.ts";
import { PasswordCheck } from "./access/password-check.ts";
import { RateLimiter } from "./access/rate-limiter.ts";
import type { Role } from "./access/roles.ts";
import { API_KEY, USER_SESSION } from "./access/secret.ts";
import { SecretVerifier } from "./access/secret-verifier.ts";
import { Tally } from "./access/tally.ts";
import { TokenVerifier } from "./access/token-verifier.ts";
import { Batcher, type BatchKind } from "./batching/batcher.ts";
import { Bus } from "./cluster/bus.ts";
import type { Answers } from "./cluster/questions.ts";
import type { PrimaryLine } from "./cluster/supervisor.ts";
import { type Config, connectionCount } from "./config.ts";
import { Analytics } from "./control/analytics.ts";
import { ApiKeys } from "./control/api-keys.ts";
import { AuditEntries } from "./control/audit-entries.ts";
import { Clearing } from "./control/clearing.ts";
import { ConsumerGroups } from "./control/consumer-groups.ts";
import { DeadLetters } from "./control/dead-letters.ts";
import { Diagnosis } from "./control/diagnosis.ts";
import { Figures } from "./control/figures.ts";
import { Maintenance } from "./control/maintenance.ts";
import { MessageSearch } from "./control/message-search.ts";
import { Messages } from "./control/messages.ts";
import { Pausing } from "./control/pausing.ts";
import { Queues } from "./control/queues.ts";
import { NO_SPOOL, type SpoolFigures } from "./control/spool-figures.ts";
import { Sweeps } from "./control/sweeps.ts";
import { Traces } from "./control/traces.ts";
import { Users } from "./control/users.ts";
import { Admin } from "./http/admin.ts";
import { AnalyticsRoutes } from "./http/analytics.ts";
import { ApiKeyRoutes } from "./http/api-keys.ts";
import { ConsumerGroupRoutes } from "./http/consumer-groups.ts";
import { DataPlane, type DataPlaneOptions } from "./http/data-plane.ts";
import { DeadLetterRoutes } from "./http/dead-letters.ts";
import { DiagnosisRoutes } from "./http/diagnosis.ts";
import { Live } from "./http/live.ts";
import { MaintenanceRoutes } from "./http/maintenance.ts";
import { MessageRoutes } from "./http/messages.ts";
import { Page } from "./http/page.ts";
import { PauseRoutes } from "./http/pauses.ts";
import { RequestMeter } from "./http/request-meter.ts";
import { ResourceRoutes } from "./http/resources.ts";
import { Router } from "./http/router.ts";
import { routes } from "./http/routes.ts";
import { HttpServer } from "./http/server.ts";
import { SessionRoutes } from "./http/sessions.ts";
import { SharedState } from "./http/shared-state.ts";
import { SpoolRoutes } from "./http/spool.ts";
import { StatusRoutes } from "./http/status.ts";
import { SweepRoutes } from "./http/sweeps.ts";
import { TracedDataPlane } from "./http/traced-data-plane.ts";
import { TraceRoutes } from "./http/traces.ts";
import { UserRoutes } from "./http/users.ts";
import { Directory } from "./lanes/directory.ts";
import type { Lane } from "./lanes/lane.ts";
import { SegmentCache } from "./lanes/segment-cache.ts";
import { WindowStore } from "./lanes/window-store.ts";
import { BrokerMetrics } from "./metering/broker-metrics.ts";
import { GaugeSampler } from "./metering/gauges.ts";
import { Meter } from "./metering/meter.ts";
import { MinuteWriter } from "./metering/minute-writer.ts";
import { Keyring, parseKeys } from "./operations/encryption.ts";
import { formatRanges } from "./operations/offset-ranges.ts";
import { unixMilliseconds } from "./operations/timestamp.ts";
import { HintReader } from "./popping/hint-reader.ts";
import type { Taken } from "./popping/pop.ts";
import { popRider } from "./popping/pop-rider.ts";
import { Popper } from "./popping/popper.ts";
import { takeKind } from "./popping/take-kind.ts";
import { Watermarks } from "./popping/watermarks.ts";
import type { DatabaseSettings } from "./postgres/database-settings.ts";
import { DatabaseWatch } from "./postgres/database-watch.ts";
import { classify, isDatabaseFault, isDeterministic, isRolledBack } from "./postgres/errors.ts";
import { Lineage } from "./postgres/lineage.ts";
import { Session, type SessionOptions } from "./postgres/session.ts";
import { Slots } from "./postgres/slots.ts";
import * as statements from "./postgres/statements.ts";
import { appendKind } from "./pushing/append-kind.ts";
import { Capacity } from "./pushing/capacity.ts";
import { Pusher } from "./pushing/pusher.ts";
import { Delivered, DeliveredLeases } from "./settling/delivered.ts";
import { Renewer, renewKind } from "./settling/renewer.ts";
import { settleKind } from "./settling/settle-kind.ts";
import { Settler } from "./settling/settler.ts";
import type { ToWorker } from "./spooling/conversation.ts";
import { Drainer } from "./spooling/drainer.ts";
import { recordSeal } from "./spooling/record-seal.ts";
import { Spool } from "./spooling/spool.ts";
import { sweepsOf } from "./sweeping/sweep.ts";
import { Sweeper } from "./sweeping/sweeper.ts";
import type { Log } from "./telemetry.ts";
import type { Tracing } from "./tracing.ts";
import { Transactor, transactKind } from "./transacting/transactor.ts";
import { WorkerFigures } from "./worker-figures.ts";

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
  /** The schema is there: connections may be made. */
  databaseReady(): void;
  answer(question: string): unknown;
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
// Where the build puts the web page, beside the compiled broker.
const PAGE_FOLDER = new URL("../page/", import.meta.url);
const MEGABYTE = 1024 * 1024;
// A stopping broker gives its last spans at least and at most so long, also where requests took all its time.
const SPANS_MS_MIN = 500;
const SPANS_MS_MAX = 3_000;

type Kind = "push" | "pop" | "ack" | "transaction";

/** A worker's share of connections: a quarter for each kind, and what is left for transactions, which are never merged. */
function slotsPerKind(config: Config): Record<Kind, number> {
  const share = Math.max(4, Math.floor(config.slotCount / config.workerCount));
  const quarter = Math.floor(share / 4);
  return { push: quarter, pop: quarter, ack: quarter, transaction: share - 3 * quarter };
}

/** Tokens are verified only where they are switched on. */
function tokenVerifier(config: Config, log: Log, now: () => number): TokenVerifier | undefined {
  if (!config.tokensEnabled) return undefined;
  return new TokenVerifier({
    algorithm: config.tokenAlgorithm,
    secret: config.tokenSecret,
    publicKeyPem: config.tokenPublicKey,
    jwksUrl: config.jwksUrl,
    jwksTimeoutMs: config.jwksTimeoutMs,
    jwksRefreshMs: config.jwksRefreshSeconds * 1000,
    issuer: config.tokenIssuer,
    audience: config.tokenAudience,
    clockSkewSeconds: config.tokenClockSkewSeconds,
    requiresExpiry: config.tokenRequiresExpiry,
    rolesClaim: config.rolesClaim,
    rolesArrayClaim: config.rolesArrayClaim,
    queuesClaim: config.queuesClaim,
    roleNames: new Map<string, Role>([
      [config.roleAdmin, "admin"],
      [config.roleReadWrite, "read-write"],
      [config.roleReadOnly, "read-only"],
      [config.roleProduce, "produce"],
      [config.roleConsume, "consume"],
    ]),
    now,
    log: (event, error) => log.warn({ error }, event),
  });
}

const listOf = (text: string): string[] =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");

/** The libraries are loaded only here: without a collector nothing of them is there. */
async function tracingOf({ config, log, workerIndex, version }: BrokerOptions): Promise<Tracing | undefined> {
  const endpoint = config.otlpTracesEndpoint ?? config.otlpEndpoint;
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import("./open-telemetry.ts");
  return startTracing({ collector: new URL(endpoint).host, version, workerIndex, log });
}

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config, database, log, workerIndex, version, line, spoolFolder, askOthers } = options;
  const now = (): number => performance.now();
  const startedAtMs = now();
  const tracing = await tracingOf(options);

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
    drainer.forget();
  });
  const meter = new Meter();
  const connect = async (purpose: string): Promise<Session> => {
    try {
      const session = await Session.connect(database, {
        ...sessionOptions(purpose),
        admit: (origin) => lineage.admit(origin),
      });
      session.onFailure((error) => {
        if (isDatabaseFault(error)) meter.databaseFailed();
      });
      return session;
    } catch (error) {
      meter.databaseFailed();
      throw error;
    }
  };
  const slotsFor = (purpose: string, count: number, patienceMs = DATABASE_PATIENCE_MS): Slots =>
    new Slots({
      count,
      connect: () => connect(purpose),
      patienceMs,
      log: (message) => log.warn({ message, purpose }, "database.connection"),
    });
  const counts = slotsPerKind(config);
  const slots = {
    push: slotsFor("push", counts.push, config.spoolAfterMs),
    pop: slotsFor("pop", counts.pop),
    ack: slotsFor("ack", counts.ack),
    transaction: slotsFor("transaction", counts.transaction),
  };
  const secondary = slotsFor(
    "secondary",
    Math.max(1, Math.floor(config.secondaryConnectionCount / config.workerCount)),
  );
  const pools = [...Object.values(slots), secondary];
  const watch = new DatabaseWatch({
    pools,
    connect: () => connect("watch"),
    fellSilent: (reason) => bus.cut(reason),
    now,
    log,
  });
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
      tracing,
    );

  const complain = (event: string, error: unknown): void => log.warn({ error }, event);
  const directory = new Directory(use, { lanesMax: LANES_MAX, now });
  directory.onQueueGone((queue) => meter.queueGone(queue.id));
  const cache = new SegmentCache(config.segmentCacheMb * MEGABYTE, () => hints.isCurrent);
  const rewritten = (partition: number): void => {
    const lane = directory.laneById(partition);
    if (lane) cache.invalidate(lane);
  };
  const windows = new WindowStore(use, config.dedupMemoryMb * MEGABYTE);
  const leases = new DeliveredLeases(DELIVERED_BYTES_MAX);
  const keyring = new Keyring(parseKeys(config.encryptionKeys ?? ""), randomBytes);
  if (!keyring.isEmpty && workerIndex === 0) log.info({ keyIds: keyring.ids.join() }, "encryption.keys");

  const appends = batcher(
    appendKind((lanes) => popRider(popper, cache, lanes)),
    slots.push,
  );
  const takes = batcher(takeKind(cache, now), slots.pop);
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
      stateChanged: () => {
        hints.look().catch((error) => complain("hints.failed", error));
      },
      nudged: (queue) => popper.rescan(queue),
      reconnected: () => {
        hints.look().catch((error) => complain("hints.failed", error));
      },
    },
  });

  const maintenance = new Maintenance({
    use,
    look: () => hints.look(),
    changed: (modes) => {
      log.warn({ ...modes }, "maintenance.switched");
      if (modes.pop) popper.refuseAll();
      spool.setMaintenance(modes.push);
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
  const giveBack = (taken: readonly Taken[], token: number): Promise<unknown> =>
    Promise.all(
      taken.map((each) => {
        const given = settler
          .giveBack(deliveredOf(each, token))
          .catch((error) => complain("lease.not_given_back", error))
          .finally(() => givingBack.delete(given));
        givingBack.add(given);
        return given;
      }),
    );

  /** What a pop with auto-ack finished and could not deliver is to be delivered again. */
  const unfinish = async ({ groupLane: { lane }, groupId, from, to, acked }: Taken): Promise<void> => {
    try {
      const values = [lane.id, groupId, from, to, formatRanges(acked)];
      await use((session) => session.run(statements.unfinish, values));
      popper.hint(lane, true);
      bus.released(lane.id);
    } catch (error) {
      const { queue, name: partition } = lane;
      log.error({ error, queue: queue.name, partition, from, to }, "pop.not_put_back");
    }
  };

  const popper = new Popper({
    directory,
    takes,
    use,
    queuesOf: (namespace, task) => queues.of(namespace, task),
    look: () => hints.look(),
    foundNothing: (group) => watermarks.foundNothing(group),
    giveBack,
    isMaintenance: () => maintenance.modes.pop,
    buried: (queue) => meter.buried(queue),
    now,
    busyPauseMs: config.busyPartitionRetryMs,
    log: complain,
  });
  const pusher = new Pusher({
    directory,
    windows,
    cache,
    appends,
    keyring,
    appended: (lane: Lane, messages: number) => {
      meter.stored(lane.queue, messages);
      popper.appended(lane);
      bus.appended(lane.id, lane.queue.id, lane.nextOffset);
    },
    now,
    patienceMs: LANE_PATIENCE_MS,
    busyPauseMs: config.busyPartitionRetryMs,
    stallMs: config.spoolAfterMs,
  });
  const seal = recordSeal(keyring);
  const drainer = new Drainer({ directory, pusher, seal, use, now, clock: Date.now });
  const spool = new Spool({
    line: spoolFolder === undefined ? undefined : line,
    seal,
    pusher,
    drainer,
    probe: async () => {
      await slots.push.whenAvailable();
      await slots.push.use((session) => session.run(statements.ping, []));
    },
    log,
  });
  const spoolFigures = (): SpoolFigures => {
    const { latest } = spool;
    return latest
      ? {
          pending: latest.pending,
          failed: latest.rejected,
          failedFiles: latest.rejected,
          failedBytes: latest.rejectedBytes,
          healthy: latest.isHealthy,
        }
      : NO_SPOOL;
  };
  line.onMessage((message) => spool.received(message as ToWorker));
  line.onEnd(() => spool.stop());
  const settler = new Settler({
    directory,
    leases,
    settles,
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
    renews,
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
    transactions,
    keyring,
    admit: (items) => capacity.admit(items),
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
  const keys = new ApiKeys(use);
  const users = new Users(use);
  const hasKeys = config.keysEnabled || config.adminKey !== undefined;
  const auditEntries = new AuditEntries(use);
  const audit = new AuditLog({ write: (rows) => auditEntries.write(rows), log });
  const tokens = tokenVerifier(config, log, now);
  const guard = new Guard({
    tokens,
    keys: hasKeys ? new SecretVerifier({ kind: API_KEY, read: (id) => keys.read(id), now }) : undefined,
    sessions: hasKeys
      ? new SecretVerifier({ kind: USER_SESSION, read: (id) => users.readSession(id), now })
      : undefined,
    adminKey: config.adminKey,
    openPaths: listOf(config.openPaths),
    now,
  });
  const passwords = new PasswordCheck({
    read: (name) => users.read(name),
    wrong: (user, remote) =>
      log.warn({ message: `Somebody tried to sign in as ${user} in vain`, user, remote }, "user.refused"),
    now,
  });
  const queueOfPartition = async (partition: number): Promise<string | undefined> =>
    (await directory.openById(partition))?.queue.name;
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
  const changed = (partition: number): void => {
    const lane = directory.laneById(partition);
    if (lane) popper.hint(lane, true);
    bus.released(partition);
  };
  const messages = new Messages({ use, letters, rewritten, changed });
  const traces = new Traces({ use, messages, workerId: String(workerIndex) });
  const clearing = new Clearing({ use, letters, changed });
  const figures = new Figures(use, now);
  const queues = new Queues({ use, directory, changed: (ids) => hints.queuesChanged(ids) });

  const sweeper = new Sweeper({
    sweeps: sweepsOf(config),
    use,
    worker: `${hostname()}/${process.pid}/${workerIndex}`,
    now,
    random: Math.random,
    log,
  });

  const batchers = {
    push: appends,
    pop: takes,
    ack: settles,
    transaction: transactions,
    renew_lease: renews,
  } as const;
  const dataPlaneOptions: DataPlaneOptions = {
    pusher,
    spool,
    popper,
    settler,
    renewer,
    transactor,
    keyring,
    admit: (items) => capacity.admit(items),
    delivered: (taken, token) => {
      for (const each of taken) leases.add(deliveredOf(each, token));
    },
    giveBack,
    unfinish: async (taken) => {
      await Promise.all(taken.map(unfinish));
    },
    undeliverable: async (taken, token, reason) => {
      log.warn({ message: reason }, "pop.undeliverable");
      await (token === undefined ? Promise.all(taken.map(unfinish)) : giveBack(taken, token));
    },
    finishGone: async (taken, token) => {
      await Promise.all(taken.map((each) => settler.finishGone(deliveredOf(each, token)))).catch((error) =>
        complain("lease.gone_not_finished", error),
      );
    },
    queuesOf: (namespace, task) => queues.of(namespace, task),
    queueOfPartition,
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
    meter: new RequestMeter({
      meter,
      queue: (name) => directory.queue(name),
      lane: (id) => directory.laneById(id),
      clockMs: () => minutes.nowMs,
    }),
    active: () => hints.active(),
    modes: () => maintenance.modes,
    isInformed: () => hints.isCurrent || (hints.hasLooked && bus.state === "listening"),
    inform: () => hints.look().catch(() => undefined), // where nothing can be asked, the operation says so itself
    now,
  };
  const dataPlane = tracing
    ? new TracedDataPlane(dataPlaneOptions, tracing, classify)
    : new DataPlane(dataPlaneOptions);

  const nudge = async (queue: string, partition: string | undefined): Promise<void> => {
    const lane = partition === undefined ? undefined : await directory.open({ queue, partition }, false);
    if (lane) {
      popper.hint(lane, true);
      bus.released(lane.id);
    } else {
      popper.rescan(queue);
      bus.nudged(queue);
    }
  };
  const sharedState = new SharedState({
    isEnabled: config.busEnabled,
    serverId: `${hostname()}-${process.pid}`,
    figures: () => ({
      isRunning: bus.state === "listening",
      queues: directory.queueCount,
      ...directory.lookups,
      peers: bus.peerCount,
      lostPeers: bus.figures.lost,
      heard: bus.figures.heard,
    }),
    modes: () => maintenance.modes,
    nudge,
  });
  const diagnosis = new Diagnosis({
    use,
    brokerFacts: () => ({
      bus: bus.state,
      busPeers: bus.peerCount,
      spool: spoolFigures(),
      connectionsNeeded: connectionCount(config),
    }),
    clock: Date.now,
  });

  const workerFigures = new WorkerFigures({
    workerIndex,
    workerCount: config.workerCount,
    startedAtMs,
    now,
    meter,
    gauges: () => gauges,
    slots: Object.values(slots),
    secondary,
    batchers,
    popper,
    bus,
    requestsActive: () => server.active,
    spool: spoolFigures,
    isDatabaseHealthy: () => isDatabaseReady && !spool.isAway,
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
  const gauges = new GaugeSampler(() => workerFigures.state(), now);
  const runId = randomUUID();
  const minutes = new MinuteWriter({
    meter,
    gauges,
    save: async ({ workers, queues }) => {
      const [clockUs] = await use((session) =>
        session.run(statements.saveMinutes, [
          runId,
          hostname(),
          port,
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
    log: complain,
  });
  const analytics = new Analytics({ use, figures, now });
  const clockMs = (): number => minutes.nowMs;

  const brokerMetrics = new BrokerMetrics({
    snapshot: () => workerFigures.snapshot(),
    metrics: () => workerFigures.metrics(),
    askOthers: async (question) =>
      config.workerCount === 1 ? { answers: [], silent: 0 } : askOthers(question),
    cluster: () => analytics.cluster(),
    labelsMax: config.metricsLabelsMax,
  });

  let isDatabaseReady = false;
  let isStopping = false;
  const admin = new Admin({
    queues,
    canEncrypt: !keyring.isEmpty,
    clearing,
    isReady: () => isDatabaseReady && !spool.isAway,
    isStopping: () => isStopping,
    sharedState: () => sharedState.shown(),
    metrics: brokerMetrics,
    workerIndex,
    version,
  });

  const live = new Live({ router: () => router, guard, queueOfPartition, classify, now });
  const router = new Router(
    routes(
      {
        data: dataPlane,
        admin,
        keys: new ApiKeyRoutes(keys, auditEntries, readTimestamp),
        users: new UserRoutes(users, readTimestamp),
        groups: new ConsumerGroupRoutes(groups, readTimestamp, clockMs),
        letters: new DeadLetterRoutes(letters, readTimestamp, keyring),
        messages: new MessageRoutes(messages, new MessageSearch(use, messages), readTimestamp, keyring),
        resources: new ResourceRoutes({
          figures,
          throughput: () => analytics.throughput(),
          recentQueues: () => analytics.recentQueues(),
          now,
        }),
        traces: new TraceRoutes(traces, keyring),
        pauses: new PauseRoutes(new Pausing({ use, changed: (queue) => hints.queuesChanged([queue]) })),
        maintenance: new MaintenanceRoutes({
          maintenance,
          spool: spoolFigures,
          hasSpool: spool.isEnabled,
          isDatabaseHealthy: () => secondary.total > 0,
          workerIndex,
        }),
        diagnosis: new DiagnosisRoutes(diagnosis),
        shared: sharedState,
        status: new StatusRoutes({ analytics, readTimestamp, clockMs }),
        analytics: new AnalyticsRoutes({ analytics, readTimestamp, clockMs }),
        sweeps: new SweepRoutes({ sweeps: new Sweeps(use), readTimestamp, clockMs }),
        spool: new SpoolRoutes(spool, seal, spoolFolder ?? null),
        sessions: new SessionRoutes({
          guard,
          users: hasKeys
            ? {
                check: (name, password, address) => passwords.check(name, password, address),
                start: (user) => users.startSession(user),
                end: (credential) => users.endSession(credential),
              }
            : undefined,
          isTls: config.tlsCertificateFile !== undefined,
          version,
        }),
        live,
        page: new Page(PAGE_FOLDER),
      },
      {
        popDefaults: { timeoutMs: config.popTimeoutMsDefault, batch: config.popBatchSizeDefault },
        version,
      },
    ),
  );
  const server = new HttpServer({
    router,
    bodyBytesMax: config.bodyBytesMax,
    guard,
    audit,
    queueOfPartition,
    rate:
      config.requestsPerSecond > 0
        ? new RateLimiter({ perSecond: config.requestsPerSecond, burst: 2 * config.requestsPerSecond, now })
        : undefined,
    connections: new Tally(config.connectionsPerAddressMax),
    serving: new Tally(config.connectionsPerCredentialMax),
    waiting: new Tally(config.waitingPopsMax),
    corsOrigins: listOf(config.corsOrigins ?? (guard.isOn ? "" : "*")),
    tls:
      config.tlsCertificateFile === undefined
        ? undefined
        : {
            certificate: config.tlsCertificateFile,
            key: config.tlsKeyFile!,
            clientAuthority: config.tlsClientAuthorityFile,
          },
    classify,
    log,
    slowRequestMs: config.slowRequestMs,
    now,
  });
  tokens?.start();
  await spool.join();
  const port = await server.listen(config.port, config.host);

  return {
    port,
    databaseReady: () => {
      if (isDatabaseReady) return;
      isDatabaseReady = true;
      for (const pool of pools) pool.start();
      spool.databaseReady();
      watch.start();
      hints.start();
      minutes.start();
      if (config.busEnabled) bus.start();
      sweeper.start();
    },
    answer: (question) => brokerMetrics.answer(question),
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
      while (givingBack.size > 0) await Promise.all(givingBack);
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
