/** PostgreSQL that is killed, restarted, frozen or away. */
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryEvent, PushAnswered, RequestEnded } from "@queen/test/checker/history";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { memoryMb, signal } from "../rig/processes.ts";

export const HANG_MS_MAX = 10_000;
// A goal of 3 s on a quiet machine, and of 20 s for the disk to be empty.
const BUFFERED_MS_MAX = 10_000;
const DRAINED_MS_MAX = 60_000;

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
    const drainedMs: number[] = [];
    await run.underLoad({}, async () => {
      do {
        run.fault("PostgreSQL is killed");
        await run.postgres.kill();
        await sleep(5_000);
        await run.postgres.start();
        const startedMs = performance.now();
        await until("the spool is empty", async () => (await run.spooled()) === 0, DRAINED_MS_MAX);
        drainedMs.push(performance.now() - startedMs);
        await run.progressBy(50);
      } while (run.hasTime(8_000));
    });
    expectBuffered(run);
    const faultsMs = run.events.flatMap((event) =>
      event.type === "mark" && event.what === "fault" ? [event.atMs] : [],
    );
    const buffered = bufferedIn(run.events);
    const firstMs = faultsMs.map(
      (atMs) => (buffered.find((event) => event.atMs > atMs)?.atMs ?? Infinity) - atMs,
    );
    run.note(
      `the first push was buffered at most ${Math.round(Math.max(...firstMs))} ms after PostgreSQL was killed, and the ` +
        `disk was empty at most ${Math.round(Math.max(...drainedMs))} ms after it was back`,
    );
    run.expect(Math.max(...firstMs) < BUFFERED_MS_MAX, "pushes were not buffered in time");
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
    await run.startBrokers(1);
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

// The disk may take 1.3 times the payload, of messages of 1 KB; the load's own have next to none.
const RECORD_BYTES_MAX = 0.3 * 1024;

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
      const { json } = await run.client().request("GET", "/api/v1/system/spool");
      const { pending, bytes } = json as { pending: number; bytes: number };
      const recordBytes = bytes / pending;
      run.note(`${pending} messages waited on the disk, with ${Math.round(recordBytes)} bytes each`);
      run.expect(
        recordBytes < RECORD_BYTES_MAX,
        `a message of the load took ${Math.round(recordBytes)} bytes`,
      );
      await run.postgres.start();
      const startedMs = performance.now();
      while ((await run.spooled()) > 0) await sleep(100);
      const rate = pending / ((performance.now() - startedMs) / 1000);
      run.note(`they were stored with ${Math.round(rate)} messages a second, beside the load`);
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
