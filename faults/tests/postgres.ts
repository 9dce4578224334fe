/** PostgreSQL that is killed, restarted, frozen or away. */
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryEvent, PushAnswered, RequestEnded } from "@queen/test/checker/history";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { memoryMb, signal } from "../rig/processes.ts";

// A server that does not answer is given up after so long.
export const SHORT_DEADLINES = {
  DB_STATEMENT_TIMEOUT: "3000",
  LIBQUEEN_INFLIGHT_DEADLINE_MS: "4000",
  DB_CONNECTION_TIMEOUT: "1000",
};
const HANG_MS_MAX = 10_000;

export const bufferedIn = (events: readonly HistoryEvent[]): PushAnswered[] =>
  events.filter((event) => event.type === "push-answered").filter((event) => event.outcome === "buffered");

/** While the database was away, pushes were taken all the same. */
export function expectBuffered(run: FaultRun): void {
  const buffered = bufferedIn(run.events).reduce((sum, event) => sum + event.items.length, 0);
  run.note(`${buffered} messages were answered "buffered"`);
  run.expect(buffered > 0, "no push was answered buffered while PostgreSQL was away");
}

const killBackends: FaultTest = {
  id: "F06",
  title: "processes of PostgreSQL's sessions are ended and killed",
  async run(run) {
    await run.startBrokers(1);
    await run.underLoad({}, async () => {
      for (let turn = 1; run.hasTime(1_000); turn++) {
        await run.pause(80, 120);
        const rows = await run
          .query("select pid from pg_stat_activity where application_name like 'queen %'")
          .catch(() => []);
        const pid = rows[Math.floor(run.random() * rows.length)]?.pid as number | undefined;
        if (pid === undefined) continue;
        // A killed session makes PostgreSQL end all others and recover: now and then, so that there is a database.
        const isKill = turn % 40 === 0;
        run.fault(isKill ? "a session's process is killed" : "a session is ended");
        signal(pid, isKill ? "SIGKILL" : "SIGTERM");
        if (isKill) await run.progressBy(20);
      }
    });
  },
};

const killServer: FaultTest = {
  id: "F07",
  title: "PostgreSQL is killed, and started again after a while",
  async run(run) {
    await run.startBrokers(1);
    await run.underLoad({}, async () => {
      do {
        run.fault("PostgreSQL is killed");
        await run.postgres.kill();
        await sleep(5_000);
        await run.postgres.start();
        await run.progressBy(50);
      } while (run.hasTime(8_000));
    });
    expectBuffered(run);
  },
};

const restartServer: FaultTest = {
  id: "F08",
  title: "PostgreSQL is restarted at once, five times",
  async run(run) {
    await run.startBrokers(1);
    await run.underLoad({}, async () => {
      for (let time = 0; time < 5; time++) {
        await run.pause(500, 1_500);
        run.fault("immediate restart");
        await run.postgres.stop("immediate");
        await run.postgres.start();
        await run.progressBy(50);
      }
    });
  },
};

const freezeServer: FaultTest = {
  id: "F09",
  title: "all processes of PostgreSQL stand still",
  async run(run) {
    await run.startBrokers(1, { env: SHORT_DEADLINES });
    const stillMs = Math.min(20_000, Math.max(8_000, run.seconds * 500));
    await run.underLoad(
      {},
      async () => {
        run.fault("PostgreSQL stands still");
        run.postgres.freeze();
        await sleep(stillMs);
        run.postgres.thaw();
        await run.progressBy(50);
      },
      { requestMsMax: HANG_MS_MAX },
    );
    noteLongest(run);
    expectBuffered(run);
  },
};

export function noteLongest(run: FaultRun): void {
  const requests = run.events.filter((event): event is RequestEnded => event.type === "request");
  const longest = Math.max(...requests.map((request) => request.tookMs - request.waitMs));
  run.note(`the longest request took ${Math.round(longest)} ms`);
}

const away: FaultTest = {
  id: "F10",
  title: "PostgreSQL is away for long under load",
  async run(run) {
    await run.startBrokers(1);
    const memories: number[] = [];
    await run.underLoad({}, async () => {
      run.fault("PostgreSQL is stopped");
      await run.postgres.stop("fast");
      while (run.hasTime()) {
        await sleep(1_000);
        memories.push(Math.max(...run.brokers[0]!.pids.map(memoryMb)));
      }
      const startedMs = performance.now();
      const { stored } = run.progress;
      await run.postgres.start();
      await run.progressBy(50);
      while ((await run.spooled()) > 0) await sleep(100);
      const seconds = (performance.now() - startedMs) / 1000;
      run.note(`the spool was empty ${seconds.toFixed(1)} s after PostgreSQL was back, at ${stored} pushed`);
    });
    const memory = Math.max(...memories);
    run.note(`the broker had at most ${Math.round(memory)} MB`);
    run.expect(memory < 400, `the broker had ${Math.round(memory)} MB`);
    expectBuffered(run);
  },
};

export const POSTGRES_TESTS: readonly FaultTest[] = [
  killBackends,
  killServer,
  restartServer,
  freezeServer,
  away,
];
