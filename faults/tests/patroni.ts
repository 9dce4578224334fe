/** A highly available PostgreSQL as people run it: Patroni, etcd and HAProxy. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PushResult } from "@queen/test/support/http";
import { until } from "@queen/test/support/moments";
import type { FaultRun } from "../fault-run.ts";
import type { FaultTest } from "../fault-test.ts";
import { PatroniCluster } from "../rig/patroni.ts";

const WATCH_EVERY_MS = 50;
// What we may take after Patroni has its new primary.
const BACK_MS_MAX = 2_000;
const ELECTION_MS_MAX = 120_000;

/** What happened to the database while it was watched, in milliseconds of `performance.now()`. */
interface Watched {
  /** The old primary was last seen, and the new one first. */
  goneAtMs: number;
  electedAtMs: number;
  /** The last push that the database took before, and the first that was sent after the election. */
  lastPushMs: number;
  backAtMs: number;
}

/** Pushes single messages, each to a lane of its own, and asks Patroni, until both are through the change. */
async function watchChange(
  run: FaultRun,
  cluster: PatroniCluster,
  broker: number,
  change: () => Promise<void>,
): Promise<Watched> {
  const client = run.client(broker);
  const before = await cluster.primary();
  const watched: Watched = { goneAtMs: 0, electedAtMs: 0, lastPushMs: 0, backAtMs: 0 };
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const primary = await cluster.primary();
      const nowMs = performance.now();
      if (primary === before) watched.goneAtMs = nowMs;
      else if (primary !== undefined && watched.electedAtMs === 0) watched.electedAtMs = nowMs;
      await sleep(WATCH_EVERY_MS);
    }
  })();
  const pushing = (async () => {
    for (let n = 0; !isOver; n++) {
      const sentMs = performance.now();
      const items = [{ queue: "watch", partition: `${broker}-${n}`, payload: n }];
      const answer = await client.request("POST", "/api/v1/push", { items }).catch(() => undefined);
      const isStored = answer?.status === 201 && (answer.json as PushResult[])[0]!.status === "queued";
      if (isStored && watched.electedAtMs === 0) watched.lastPushMs = performance.now();
      else if (isStored && sentMs > watched.electedAtMs && watched.backAtMs === 0)
        watched.backAtMs = performance.now();
      await sleep(WATCH_EVERY_MS);
    }
  })();
  try {
    await until("the database takes pushes", () => watched.lastPushMs > 0, ELECTION_MS_MAX);
    await change();
    await until("the database takes pushes again", () => watched.backAtMs > 0, ELECTION_MS_MAX);
  } finally {
    isOver = true;
    await Promise.all([asking, pushing]);
  }
  return watched;
}

function judge(run: FaultRun, what: string, watched: Watched): void {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const { goneAtMs, electedAtMs, lastPushMs, backAtMs } = watched;
  run.note(
    `${what}: Patroni had no primary for ${seconds(electedAtMs - goneAtMs)}; no push went to the database for ` +
      `${seconds(backAtMs - lastPushMs)}, and the first one ${seconds(backAtMs - electedAtMs)} after the election`,
  );
  run.expect(
    backAtMs - electedAtMs < BACK_MS_MAX,
    `${what}: the first push was stored ${seconds(backAtMs - electedAtMs)} after Patroni had its primary`,
  );
}

const failOver = (id: string, title: string, urlOf: (cluster: PatroniCluster) => string): FaultTest => ({
  id,
  title,
  async run(run) {
    const cluster = await PatroniCluster.start((phase) => run.tell(phase));
    await run.useDatabaseOf(cluster);
    await run.startBrokers(2, { databaseUrl: urlOf(cluster) });
    await run.underLoad({}, async () => {
      await run.pause(1_000, 3_000);
      run.fault("switchover");
      judge(run, "switchover", await watchChange(run, cluster, 0, () => cluster.switchOver()));
      await run.progressBy(50);
      run.tell("waiting for the old primary to be a standby");
      await cluster.untilWhole();
      run.fault("the primary is killed");
      let killed = "";
      const kill = async (): Promise<void> => {
        killed = await cluster.killPrimary();
      };
      judge(run, "killed primary", await watchChange(run, cluster, 1, kill));
      await run.progressBy(50);
      cluster.revive(killed);
      run.tell("waiting for the killed node to be a standby");
      await cluster.untilWhole();
    });
  },
});

export const PATRONI_TESTS: readonly FaultTest[] = [
  failOver("patroni-haproxy", "Patroni: switchover and killed primary, through HAProxy", (cluster) =>
    cluster.urlOf("queen"),
  ),
  failOver("patroni-hosts", "Patroni: switchover and killed primary, with a URL of all nodes", (cluster) =>
    cluster.directUrlOf("queen"),
  ),
];
