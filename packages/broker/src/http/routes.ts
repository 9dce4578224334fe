/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { ConsumerGroupRoutes } from "./consumer-groups.ts";
import type { DataPlane } from "./data-plane.ts";
import type { DeadLetterRoutes } from "./dead-letters.ts";
import type { MessageRoutes } from "./messages.ts";
import type { Route } from "./route.ts";
import { consumerGroupRoutes } from "./routes/consumer-groups.ts";
import { dataPlaneRoutes, type PopDefaults } from "./routes/data-plane.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { messageRoutes } from "./routes/messages.ts";
import { queueRoutes } from "./routes/queues.ts";
import { stateRoutes } from "./routes/state.ts";
import { sweepRoutes } from "./routes/sweeps.ts";
import type { SweepRoutes } from "./sweeps.ts";

/** Who answers what. */
export interface Handlers {
  readonly data: DataPlane;
  readonly admin: Admin;
  readonly groups: ConsumerGroupRoutes;
  readonly letters: DeadLetterRoutes;
  readonly messages: MessageRoutes;
  readonly sweeps: SweepRoutes;
}

export function routes(handlers: Handlers, popDefaults: PopDefaults): Route[] {
  return [
    ...dataPlaneRoutes(handlers.data, popDefaults),
    ...queueRoutes(handlers.admin),
    ...messageRoutes(handlers.messages),
    ...deadLetterRoutes(handlers.letters),
    ...consumerGroupRoutes(handlers.groups),
    ...sweepRoutes(handlers.sweeps),
    ...stateRoutes(handlers.admin),
  ];
}
