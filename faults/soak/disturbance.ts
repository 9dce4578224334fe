/** Disturbances are the faults of a soak: now and then, one after the other, each healed before the next. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresProxy } from "@queen/test/support/proxy";
import type { FaultRun } from "../fault-run.ts";
import { signal } from "../rig/processes.ts";

export interface Disturbance {
  readonly name: string;
  cause(): Promise<void>;
}

const CUT_MS = 6_000;
const SESSIONS_ENDED = 30;
const VICTIM = 1;

/** The first broker is never killed, so that its memory has a history; the second is behind the proxy. */
export function disturbances(run: FaultRun, proxy: PostgresProxy): readonly Disturbance[] {
  return [
    {
      name: "a broker is killed",
      async cause() {
        const victim = run.brokers[VICTIM]!;
        await victim.kill();
        await run.pause(500, 3_000);
        await victim.start();
      },
    },
    {
      name: "sessions of PostgreSQL are ended",
      async cause() {
        for (let ended = 0; ended < SESSIONS_ENDED; ended++) {
          const rows = await run.query(
            "select pid from pg_stat_activity where application_name like 'queen %'",
          );
          const pid = rows[Math.floor(run.random() * rows.length)]?.pid as number | undefined;
          if (pid !== undefined) signal(pid, "SIGTERM");
          await sleep(100);
        }
      },
    },
    {
      name: "the network between a broker and PostgreSQL is cut",
      async cause() {
        proxy.set({ kind: "drop" });
        await sleep(CUT_MS);
        proxy.set({ kind: "pass" });
      },
    },
    {
      name: "PostgreSQL is restarted",
      async cause() {
        await run.postgres.stop(run.random() < 0.5 ? "fast" : "immediate");
        await run.pause(0, 5_000);
        await run.postgres.start();
      },
    },
  ];
}
