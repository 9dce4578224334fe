/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { ConsumerGroupRoutes } from "./consumer-groups.ts";
import type { DataPlane } from "./data-plane.ts";
import type { DeadLetterRoutes } from "./dead-letters.ts";
import { Documentation } from "./documentation.ts";
import type { MessageRoutes } from "./messages.ts";
import type { Route } from "./route.ts";
import { consumerGroupRoutes } from "./routes/consumer-groups.ts";
import { dataPlaneRoutes, type PopDefaults } from "./routes/data-plane.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { documentationRoutes } from "./routes/documentation.ts";
import { messageRoutes } from "./routes/messages.ts";
import { queueRoutes } from "./routes/queues.ts";
import { spoolRoutes } from "./routes/spool.ts";
import { stateRoutes } from "./routes/state.ts";
import type { SpoolRoutes } from "./spool.ts";

/** Who answers what. */
export interface Handlers {
  readonly data: DataPlane;
  readonly admin: Admin;
  readonly groups: ConsumerGroupRoutes;
  readonly letters: DeadLetterRoutes;
  readonly messages: MessageRoutes;
  readonly spool: SpoolRoutes;
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
    ...messageRoutes(handlers.messages),
    ...deadLetterRoutes(handlers.letters),
    ...consumerGroupRoutes(handlers.groups),
    ...stateRoutes(handlers.admin),
    ...spoolRoutes(handlers.spool),
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
