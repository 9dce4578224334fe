/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { AnalyticsRoutes } from "./analytics.ts";
import type { ApiKeyRoutes } from "./api-keys.ts";
import type { ConsumerGroupRoutes } from "./consumer-groups.ts";
import type { DataPlane } from "./data-plane.ts";
import type { DeadLetterRoutes } from "./dead-letters.ts";
import type { DiagnosisRoutes } from "./diagnosis.ts";
import { Documentation } from "./documentation.ts";
import type { Live } from "./live.ts";
import type { MaintenanceRoutes } from "./maintenance.ts";
import type { MessageRoutes } from "./messages.ts";
import type { Page } from "./page.ts";
import type { PauseRoutes } from "./pauses.ts";
import type { ResourceRoutes } from "./resources.ts";
import type { Route } from "./route.ts";
import { accessRoutes } from "./routes/access.ts";
import { analyticsRoutes } from "./routes/analytics.ts";
import { consumerGroupRoutes } from "./routes/consumer-groups.ts";
import { dataPlaneRoutes, type PopDefaults } from "./routes/data-plane.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { diagnosisRoutes } from "./routes/diagnosis.ts";
import { documentationRoutes } from "./routes/documentation.ts";
import { liveRoutes } from "./routes/live.ts";
import { maintenanceRoutes } from "./routes/maintenance.ts";
import { messageRoutes } from "./routes/messages.ts";
import { pageRoutes } from "./routes/page.ts";
import { pauseRoutes } from "./routes/pauses.ts";
import { queueRoutes } from "./routes/queues.ts";
import { resourceRoutes } from "./routes/resources.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { sharedStateRoutes } from "./routes/shared-state.ts";
import { spoolRoutes } from "./routes/spool.ts";
import { stateRoutes } from "./routes/state.ts";
import { statusRoutes } from "./routes/status.ts";
import { sweepRoutes } from "./routes/sweeps.ts";
import { traceRoutes } from "./routes/traces.ts";
import { userRoutes } from "./routes/users.ts";
import type { SessionRoutes } from "./sessions.ts";
import type { SharedState } from "./shared-state.ts";
import type { SpoolRoutes } from "./spool.ts";
import type { StatusRoutes } from "./status.ts";
import type { SweepRoutes } from "./sweeps.ts";
import type { TraceRoutes } from "./traces.ts";
import type { UserRoutes } from "./users.ts";

/** Who answers what. */
export interface Handlers {
  readonly data: DataPlane;
  readonly admin: Admin;
  readonly keys: ApiKeyRoutes;
  readonly users: UserRoutes;
  readonly groups: ConsumerGroupRoutes;
  readonly letters: DeadLetterRoutes;
  readonly messages: MessageRoutes;
  readonly resources: ResourceRoutes;
  readonly traces: TraceRoutes;
  readonly pauses: PauseRoutes;
  readonly maintenance: MaintenanceRoutes;
  readonly diagnosis: DiagnosisRoutes;
  readonly shared: SharedState;
  readonly status: StatusRoutes;
  readonly analytics: AnalyticsRoutes;
  readonly sweeps: SweepRoutes;
  readonly spool: SpoolRoutes;
  readonly sessions: SessionRoutes;
  readonly live: Live;
  readonly page: Page;
}

export interface RouteOptions {
  readonly popDefaults: PopDefaults;
  readonly version: string;
}

export function routes(handlers: Handlers, { popDefaults, version }: RouteOptions): Route[] {
  let documentation: Documentation | undefined;
  const all: Route[] = [
    ...dataPlaneRoutes(handlers.data, popDefaults),
    ...queueRoutes(handlers.admin),
    ...resourceRoutes(handlers.resources),
    ...messageRoutes(handlers.messages),
    ...deadLetterRoutes(handlers.letters),
    ...consumerGroupRoutes(handlers.groups),
    ...traceRoutes(handlers.traces),
    ...pauseRoutes(handlers.pauses),
    ...diagnosisRoutes(handlers.diagnosis),
    ...maintenanceRoutes(handlers.maintenance),
    ...sharedStateRoutes(handlers.shared),
    ...statusRoutes(handlers.status),
    ...analyticsRoutes(handlers.analytics),
    ...sweepRoutes(handlers.sweeps),
    ...stateRoutes(handlers.admin),
    ...accessRoutes(handlers.keys),
    ...userRoutes(handlers.users),
    ...spoolRoutes(handlers.spool),
    ...sessionRoutes(handlers.sessions),
    ...liveRoutes(handlers.live),
    ...pageRoutes(handlers.page),
    ...documentationRoutes(() => {
      documentation ??= new Documentation(all, version);
      return documentation;
    }),
  ];
  return all;
}

/** The table alone, for those who print it: nobody answers. */
export function routeTable(popDefaults: PopDefaults): Route[] {
  return routes({} as Handlers, { popDefaults, version: "" });
}
