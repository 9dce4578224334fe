/** All fault tests, in their order. */
import type { FaultTest } from "../fault-test.ts";
import { BROKER_TESTS } from "./brokers.ts";

export const TESTS: readonly FaultTest[] = [...BROKER_TESTS].sort((a, b) => (a.id < b.id ? -1 : 1));
