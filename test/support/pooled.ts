/** What is different where the tests run with a pooler before their server (`npm run test:pgbouncer`). */
import type { Bus } from "./fleet.ts";

/** Brokers hear nothing of each other there. */
export const isPooled = Boolean(process.env.QUEEN_TEST_PGBOUNCER_PORT);

/** Fleets are tested with the bus and without it; there, only without. */
export const BUSES: readonly Bus[] = isPooled ? ["off"] : ["on", "off"];

/** For tests of what the bus tells at once, or of the server's sessions. */
export const NOT_POOLED = isPooled ? { skip: "there is a pooler in between" } : {};
