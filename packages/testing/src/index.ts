export type { TestBroker } from "./test-broker.ts";
export { type Network, startTestQueen, type TestQueen, type TestQueenOptions } from "./test-queen.ts";
export { type UntilOptions, until } from "./until.ts";
