/** All fault tests, in their order. */
import type { FaultTest } from "../fault-test.ts";
import { BROKER_TESTS } from "./brokers.ts";
import { CLOCK_TESTS } from "./clocks.ts";
import { CRASH_POINT_TESTS } from "./crash-points.ts";
import { DATABASE_TESTS } from "./database.ts";
import { DISK_TESTS } from "./disks.ts";
import { FAILOVER_TESTS } from "./failover.ts";
import { GROUP_TESTS } from "./groups.ts";
import { LANE_TESTS } from "./lanes.ts";
import { NETWORK_TESTS } from "./network.ts";
import { POSTGRES_TESTS } from "./postgres.ts";
import { SPOOL_TESTS } from "./spools.ts";

export const TESTS: readonly FaultTest[] = [
  ...BROKER_TESTS,
  ...CRASH_POINT_TESTS,
  ...POSTGRES_TESTS,
  ...NETWORK_TESTS,
  ...FAILOVER_TESTS,
  ...DISK_TESTS,
  ...SPOOL_TESTS,
  ...CLOCK_TESTS,
  ...LANE_TESTS,
  ...GROUP_TESTS,
  ...DATABASE_TESTS,
].sort((a, b) => (a.id < b.id ? -1 : 1));
