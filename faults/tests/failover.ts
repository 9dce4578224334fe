/** A primary that dies, a replica that takes over, and an old primary that comes back. */
import { setTimeout as sleep } from "node:timers/promises";
import { entryOf, keyOf, type Popped } from "@queen/test/checker/history";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { InstalledServer, installedPrograms, query, startStandby } from "../rig/postgres.ts";

const SETTINGS = { wal_level: "replica", max_wal_senders: "5", hot_standby: "on" };
// How far the replica is made to be behind, and may be on a busy machine.
const LAG_MS = 1_000;
const LAG_MS_MAX = 5_000;
const KILL_MS_MAX = 1_000;
// After this, everything that is popped comes from the new primary.
const PROMOTION_MS_MAX = 3_000;

interface Pair {
  readonly primary: InstalledServer;
  readonly standby: InstalledServer;
}

/** A primary with a standby, and brokers that know both. */
async function startPair(run: FaultRun, isSynchronous: boolean): Promise<Pair> {
  const programs = installedPrograms();
  if (programs === undefined) throw new Error("replicas need pg_basebackup: apt-get install postgresql");
  const primary = await InstalledServer.create(programs, { settings: SETTINGS });
  await run.useServer(primary);
  run.tell("making the standby");
  const standby = await startStandby(primary, "s1", { settings: SETTINGS });
  run.onEnd(() => standby.dispose());
  if (isSynchronous) {
    await query(primary.urlOf("postgres"), "alter system set synchronous_standby_names = 's1'");
    await query(primary.urlOf("postgres"), "select pg_reload_conf()");
  }
  const wanted = isSynchronous ? "sync" : "async";
  await until(`the standby is ${wanted}`, async () => {
    const [row] = await query(primary.urlOf("postgres"), "select sync_state from pg_stat_replication");
    return row?.sync_state === wanted;
  });
  const databaseUrl = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/queen`;
  await run.startBrokers(2, { databaseUrl });
  return { primary, standby };
}

async function failOver(run: FaultRun, { primary, standby }: Pair, lagMs = 0): Promise<void> {
  await run.pause(run.seconds * 200, run.seconds * 400);
  if (lagMs > 0) {
    // The standby gets nothing any more, and the primary goes on.
    await query(standby.urlOf("postgres"), "alter system set primary_conninfo = ''");
    await query(standby.urlOf("postgres"), "select pg_reload_conf()");
    await until("the standby is behind", async () => {
      const rows = await query(standby.urlOf("postgres"), "select 1 from pg_stat_wal_receiver");
      return rows.length === 0;
    });
    await sleep(lagMs);
  }
  run.fault("the primary is killed, the standby takes over");
  await primary.kill();
  await query(standby.urlOf("postgres"), "select pg_promote(true, 60)");
  run.moveTo(standby);
  await run.progressBy(50);
}

/** What pops that were sent after a moment brought, and is not what the log has at its place. */
function wronglyDelivered(run: FaultRun, afterMs: number): string[] {
  const log = new Map(run.log.map((entry) => [entryOf(entry), entry.value]));
  return run.events
    .filter((event): event is Popped => event.type === "popped")
    .filter((event) => event.sentAtMs > afterMs)
    .flatMap((event) => event.messages)
    .filter((message) => log.get(entryOf(message)) !== message.value)
    .map((message) => `${entryOf(message)} ${message.value}`);
}

const asynchronous: FaultTest = {
  id: "F16",
  title: "fail-over to an asynchronous replica",
  async run(run) {
    const pair = await startPair(run, false);
    // What was not replicated is gone, with the leases and acks among it; all of it is counted.
    run.tolerate(
      "lost",
      "phantom",
      "redelivered after ack",
      "overlap",
      "exactly once",
      "log order",
      "delivery order",
    );
    run.tolerate(
      "skip",
      "dead letter",
      "fencing",
      "duplicate entry",
      "redelivery budget",
      "finished without ack",
    );
    await run.underLoad({}, () => failOver(run, pair, LAG_MS));
    const fault = run.events.find((event) => event.type === "mark" && event.what === "fault")!;
    // A request is answered when the last of its messages is stored or buffered, which may take until after the kill.
    const sent = new Map<string, number>();
    const answered = new Map<string, number>();
    for (const event of run.events) {
      if (event.type === "push-sent") for (const item of event.items) sent.set(keyOf(item), event.atMs);
      if (event.type === "push-answered" && event.outcome === "stored")
        for (const item of event.items) answered.set(keyOf(item), event.atMs);
    }
    const lost = run.violations.filter(
      ({ rule, message }) => rule === "lost" && message.includes("was answered"),
    );
    run.note(`lost with the primary, as asynchronous replication does: ${lost.length} messages`);
    for (const { message } of lost) {
      const [sentAtMs, answeredAtMs] = [sent, answered].map(
        (times) => times.get(message.split(" ")[0]!) ?? 0,
      );
      const isLag = answeredAtMs! > fault.atMs - LAG_MS_MAX && sentAtMs! < fault.atMs + KILL_MS_MAX;
      const before = (atMs: number): number => Math.round(fault.atMs - atMs);
      run.expect(
        isLag,
        `${message}, sent ${before(sentAtMs!)} ms and answered ${before(answeredAtMs!)} ms before the primary was killed`,
      );
    }
    const undelivered = run.violations.filter(({ rule }) => rule === "lost").length - lost.length;
    run.expect(undelivered === 0, `${undelivered} messages of the new primary were never delivered`);
    const wrong = wronglyDelivered(run, fault.atMs + PROMOTION_MS_MAX);
    run.expect(
      wrong.length === 0,
      `the old primary's messages came after the fail-over: ${wrong.join(", ")}`,
    );
  },
};

const synchronous: FaultTest = {
  id: "F17",
  title: "fail-over to a synchronous replica",
  async run(run) {
    const pair = await startPair(run, true);
    await run.underLoad({}, () => failOver(run, pair));
  },
};

const splitBrain: FaultTest = {
  id: "F18",
  title: "the old primary comes back after a fail-over",
  async run(run) {
    const pair = await startPair(run, true);
    const { primary, standby } = pair;
    const writtenOn = async (): Promise<unknown> => {
      const [row] = await query(
        primary.urlOf("queen"),
        "select coalesce(sum(next_offset), 0)::float8 as written from queen.partitions",
      );
      return row!.written;
    };
    await run.underLoad({}, async () => {
      await failOver(run, pair);
      // As a careless operator starts it: not as a standby of the new primary.
      await primary.start();
      await query(primary.urlOf("postgres"), "alter system set synchronous_standby_names = ''");
      await query(primary.urlOf("postgres"), "select pg_reload_conf()");
      const before = await writtenOn();
      run.fault("the old primary is back, connections to the new one are cut");
      await query(
        standby.urlOf("postgres"),
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'queen %'",
      );
      await run.progressBy(50);
      await sleep(2_000);
      const after = await writtenOn();
      run.expect(
        before === after,
        `${Number(after) - Number(before)} messages were written to the old primary`,
      );
      await primary.stop("fast");
      await run.progressBy(50);
    });
  },
};

export const FAILOVER_TESTS: readonly FaultTest[] = [asynchronous, synchronous, splitBrain];
