/** The calls of Queen's procedures: their parameters and how a row is read. The SQL is in packages/schema. */
export * from "./statements/access.ts";
export * from "./statements/consumer-groups.ts";
export * from "./statements/data-plane.ts";
export * from "./statements/dead-letters.ts";
export * from "./statements/diagnosis.ts";
export * from "./statements/figures.ts";
export * from "./statements/hints.ts";
export * from "./statements/lanes.ts";
export * from "./statements/maintenance.ts";
export * from "./statements/messages.ts";
export * from "./statements/metrics.ts";
export * from "./statements/pauses.ts";
export * from "./statements/queues.ts";
export * from "./statements/server.ts";
export * from "./statements/sweeps.ts";
export * from "./statements/traces.ts";
export * from "./statements/users.ts";
