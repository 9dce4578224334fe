/** The interface: who answers which route, and the server that listens. */
import { RateLimiter } from "../access/rate-limiter.ts";
import { Tally } from "../access/tally.ts";
import type { Config } from "../config.ts";
import { MessageSearch } from "../control/message-search.ts";
import { Pausing } from "../control/pausing.ts";
import { Sweeps } from "../control/sweeps.ts";
import { Admin } from "../http/admin.ts";
import { AnalyticsRoutes } from "../http/analytics.ts";
import { ApiKeyRoutes } from "../http/api-keys.ts";
import { ConsumerGroupRoutes } from "../http/consumer-groups.ts";
import type { DataPlane } from "../http/data-plane.ts";
import { DeadLetterRoutes } from "../http/dead-letters.ts";
import { DiagnosisRoutes } from "../http/diagnosis.ts";
import { Live } from "../http/live.ts";
import { MaintenanceRoutes } from "../http/maintenance.ts";
import { MessageRoutes } from "../http/messages.ts";
import { Page } from "../http/page.ts";
import { PauseRoutes } from "../http/pauses.ts";
import { ResourceRoutes } from "../http/resources.ts";
import { Router } from "../http/router.ts";
import { type Handlers, routes } from "../http/routes.ts";
import { HttpServer } from "../http/server.ts";
import { SessionRoutes } from "../http/sessions.ts";
import { SpoolRoutes } from "../http/spool.ts";
import { StatusRoutes } from "../http/status.ts";
import { SweepRoutes } from "../http/sweeps.ts";
import { TraceRoutes } from "../http/traces.ts";
import { UserRoutes } from "../http/users.ts";
import { classify } from "../postgres/errors.ts";
import type { Log } from "../telemetry.ts";
import type { Access } from "./access.ts";
import { listOf } from "./comma-list.ts";
import type { Connections } from "./connections.ts";
import type { ControlPlane } from "./control-plane.ts";
import type { Engine } from "./engine.ts";
import type { Figures } from "./figures.ts";

export interface InterfaceOptions {
  readonly config: Config;
  readonly version: string;
  readonly workerIndex: number;
  readonly spoolFolder: string | undefined;
  readonly connections: Pick<Connections, "secondary" | "use">;
  readonly engine: Pick<Engine, "memory" | "keyring" | "maintenance" | "hints" | "spooling">;
  readonly access: Access;
  readonly control: ControlPlane;
  readonly data: DataPlane;
  readonly figures: Figures;
  readonly isReady: () => boolean;
  readonly isStopping: () => boolean;
  readonly now: () => number;
  readonly log: Log;
}

// Where the build puts the web page, beside the compiled broker.
const PAGE_FOLDER = new URL("../../page/", import.meta.url);

export function interfaceOf(options: InterfaceOptions): HttpServer {
  const { config, version, engine, access, now, log } = options;
  const { queueOfPartition } = engine.memory;
  const { guard, audit } = access;
  const router = new Router(
    routes(
      handlersOf(options, () => router),
      {
        popDefaults: { timeoutMs: config.popTimeoutMsDefault, batch: config.popBatchSizeDefault },
        version,
      },
    ),
  );
  return new HttpServer({
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
}

function handlersOf(options: InterfaceOptions, router: () => Router): Handlers {
  const { config, version, workerIndex, spoolFolder, engine, access, control, figures, now } = options;
  const { secondary, use } = options.connections;
  const { keyring, maintenance, hints, spooling } = engine;
  const { queueOfPartition } = engine.memory;
  const { keys, users, auditEntries, guard, userSessions } = access;
  const { groups, letters, messages, traces, clearing, queues, readTimestamp } = control;
  const { sharedState, diagnosis, minutes, analytics, metrics } = figures;
  const clockMs = (): number => minutes.nowMs;
  const admin = new Admin({
    queues,
    canEncrypt: !keyring.isEmpty,
    clearing,
    isReady: options.isReady,
    isStopping: options.isStopping,
    sharedState: () => sharedState.shown(),
    metrics,
    workerIndex,
    version,
  });
  const live = new Live({ router, guard, queueOfPartition, classify, now });
  return {
    data: options.data,
    admin,
    keys: new ApiKeyRoutes(keys, auditEntries, readTimestamp),
    users: new UserRoutes(users, readTimestamp),
    groups: new ConsumerGroupRoutes(groups, readTimestamp, clockMs),
    letters: new DeadLetterRoutes(letters, readTimestamp, keyring),
    messages: new MessageRoutes(messages, new MessageSearch(use, messages), readTimestamp, keyring),
    resources: new ResourceRoutes({
      figures: control.figures,
      throughput: () => analytics.throughput(),
      recentQueues: () => analytics.recentQueues(),
      now,
    }),
    traces: new TraceRoutes(traces, keyring),
    pauses: new PauseRoutes(new Pausing({ use, changed: (queue) => hints.queuesChanged([queue]) })),
    maintenance: new MaintenanceRoutes({
      maintenance,
      spool: spooling.figures,
      hasSpool: spooling.spool.isEnabled,
      isDatabaseHealthy: () => secondary.total > 0,
      workerIndex,
    }),
    diagnosis: new DiagnosisRoutes(diagnosis),
    shared: sharedState,
    status: new StatusRoutes({ analytics, readTimestamp, clockMs }),
    analytics: new AnalyticsRoutes({ analytics, readTimestamp, clockMs }),
    sweeps: new SweepRoutes({ sweeps: new Sweeps(use), readTimestamp, clockMs }),
    spool: new SpoolRoutes(spooling.spool, spooling.seal, spoolFolder ?? null),
    sessions: new SessionRoutes({
      guard,
      users: userSessions,
      isTls: config.tlsCertificateFile !== undefined,
      version,
    }),
    live,
    page: new Page(PAGE_FOLDER),
  };
}
