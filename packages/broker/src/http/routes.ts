/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { ConsumerGroupRoutes } from "./consumer-groups.ts";
import type { DataPlane } from "./data-plane.ts";
import type { DeadLetterRoutes } from "./dead-letters.ts";
import type { DiagnosisRoutes } from "./diagnosis.ts";
import type { MaintenanceRoutes } from "./maintenance.ts";
import type { MessageRoutes } from "./messages.ts";
import type { PauseRoutes } from "./pauses.ts";
import type { Route } from "./route.ts";
import { consumerGroupRoutes } from "./routes/consumer-groups.ts";
import { dataPlaneRoutes, type PopDefaults } from "./routes/data-plane.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { diagnosisRoutes } from "./routes/diagnosis.ts";
import { maintenanceRoutes } from "./routes/maintenance.ts";
import { messageRoutes } from "./routes/messages.ts";
import { pauseRoutes } from "./routes/pauses.ts";
import { queueRoutes } from "./routes/queues.ts";
import { sharedStateRoutes } from "./routes/shared-state.ts";
import { stateRoutes } from "./routes/state.ts";
import type { SharedState } from "./shared-state.ts";

/** Who answers what. */
export interface Handlers {
  readonly data: DataPlane;
  readonly admin: Admin;
  readonly groups: ConsumerGroupRoutes;
  readonly letters: DeadLetterRoutes;
  readonly messages: MessageRoutes;
  readonly pauses: PauseRoutes;
  readonly maintenance: MaintenanceRoutes;
  readonly diagnosis: DiagnosisRoutes;
  readonly shared: SharedState;
}

export function routes(handlers: Handlers, popDefaults: PopDefaults): Route[] {
  return [
    ...dataPlaneRoutes(handlers.data, popDefaults),
    ...queueRoutes(handlers.admin),
    ...pauseRoutes(handlers.pauses),
    ...messageRoutes(handlers.messages),
    ...deadLetterRoutes(handlers.letters),
    ...consumerGroupRoutes(handlers.groups),
    ...diagnosisRoutes(handlers.diagnosis),
    ...maintenanceRoutes(handlers.maintenance),
    ...sharedStateRoutes(handlers.shared),
    ...stateRoutes(handlers.admin),
  ];
}
