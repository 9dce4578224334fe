export * from "./errors.ts";
export type { QueenOptions } from "./options.ts";
export { Queen } from "./queen.ts";
export type { Balancing } from "./transport/balancer.ts";
export type { Answer, Query, QueryValue } from "./transport/call.ts";
export type { RequestOptions } from "./transport/transport.ts";
