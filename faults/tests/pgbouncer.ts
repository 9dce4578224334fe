/** PgBouncer in transaction mode between brokers and PostgreSQL. */
import { type PgBouncer, startPgBouncer } from "@queen/test/support/pgbouncer";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { expectBuffered } from "./postgres.ts";

async function startBehindPgBouncer(run: FaultRun): Promise<PgBouncer> {
  const server = await run.startPostgres();
  const bouncer = await startPgBouncer(server.urlOf("postgres"));
  run.onEnd(() => bouncer.dispose());
  await run.startBrokers(2, { databaseUrl: bouncer.urlOf(run.databaseUrl) });
  return bouncer;
}

const calm: FaultTest = {
  id: "pgbouncer-calm",
  title: "PgBouncer: no fault",
  async run(run) {
    await startBehindPgBouncer(run);
    await run.underLoad({ leaseSeconds: 20, abandonedShare: 0, lateShare: 0 }, async () => undefined);
    const failed = run.events.filter(
      (event) => event.type === "request" && (event.status >= 500 || event.status < 1),
    );
    run.expect(failed.length === 0, `${failed.length} requests had no answer, or 5xx`);
  },
};

const restarts: FaultTest = {
  id: "pgbouncer-restarts",
  title: "PgBouncer: stopped and killed, and started again",
  async run(run) {
    const bouncer = await startBehindPgBouncer(run);
    await run.underLoad({}, async () => {
      for (let turn = 0; turn === 0 || run.hasTime(4_000); turn++) {
        await run.pause(500, 1_500);
        run.fault(turn % 2 === 0 ? "PgBouncer is killed" : "PgBouncer is stopped");
        await (turn % 2 === 0 ? bouncer.kill() : bouncer.stop());
        await run.pause(100, 1_000);
        await bouncer.start();
        await run.progressBy(50);
      }
    });
  },
};

const outage: FaultTest = {
  id: "pgbouncer-outage",
  title: "PgBouncer: PostgreSQL behind it is killed, and started again after a while",
  async run(run) {
    await startBehindPgBouncer(run);
    await run.underLoad({}, async () => {
      do {
        run.fault("PostgreSQL is killed");
        await run.postgres.kill();
        await run.pause(5_000);
        await run.postgres.start();
        await run.progressBy(50);
      } while (run.hasTime(8_000));
    });
    expectBuffered(run);
  },
};

export const PGBOUNCER_TESTS: readonly FaultTest[] = [calm, restarts, outage];
