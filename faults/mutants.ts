import type { FaultTest } from "./fault-test.ts";
export const MUTANTS: readonly FaultTest[] = [];
