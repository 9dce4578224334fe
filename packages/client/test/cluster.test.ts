/**
 * Clients of one broker and of three on one database, of which one is killed and started again while producers
 * and consumers are at work: what was answered is delivered, and every lane keeps its order.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startTestQueen, type TestQueen } from "@queen/testing";
import { type Balancing, Queen } from "../src/index.ts";

let system: TestQueen;
before(async () => {
  system = await startTestQueen({ brokers: 3, env: { NUM_WORKERS: "1" } });
});
after(() => system?.stop());

const LANES = ["a", "b", "c", "d"];
const PUSHES = 40;

async function produce(queen: Queen, name: string): Promise<void> {
  await Promise.all(
    LANES.map(async (lane) => {
      const queue = queen.queue<number>(name).partition(lane);
      for (let next = 0; next < PUSHES; next++) {
        await queue.push({ data: next });
        await sleep(10);
      }
    }),
  );
}

/** Drops what came again: of messages that are delivered twice the first delivery counts. */
function firsts(seen: readonly number[]): number[] {
  return [...new Set(seen)];
}

const CASES: readonly (readonly [number, Balancing])[] = [
  [1, "affinity"],
  [3, "affinity"],
  [3, "round-robin"],
  [3, "session"],
];

for (const [count, balancing] of CASES) {
  test(`${balancing}: with one of ${count} killed and restarted nothing is lost or reordered`, async () => {
    const name = `cluster-${count}-${balancing}`;
    const urls = system.urls.slice(0, count);
    // More patience than usual: the only broker takes some seconds to start.
    const queen = new Queen({ urls, balancing, recoverMillis: 500, retries: 20 });
    await queen.queue(name).config({ leaseTime: 3, retryLimit: 20, retryDelay: 0 }).create();
    const seen = new Map<string, number[]>(LANES.map((lane) => [lane, []]));
    const consumer = queen
      .queue<number>(name)
      .group("g")
      .batch(5)
      .concurrency(2)
      .timeoutMillis(1_000)
      .each()
      .consume(({ partition, data }) => {
        seen.get(partition)!.push(data);
      });
    const producing = produce(queen, name);
    await sleep(100);
    // The one that the consumer uses, so that it notices.
    const { endpoint } = await queen.answer("GET", "/livez", { affinityKey: `${name}:*:g` });
    const victim = system.brokers.find(({ url }) => url === endpoint)!;
    await victim.kill();
    await sleep(100);
    await victim.start();
    await producing;
    await system.drained(name, "g");
    await queen.close();
    assert.equal((await consumer).failed, 0);
    const all = Array.from({ length: PUSHES }, (_, index) => index);
    for (const lane of LANES) {
      assert.deepEqual(firsts(seen.get(lane)!), all, `lane ${lane}: ${seen.get(lane)}`);
    }
  });
}

test("a client whose brokers are all away for a while goes on where it was", async () => {
  const queen = system.client({ recoverMillis: 200, retries: 20 });
  await Promise.all(system.brokers.map((broker) => broker.kill()));
  const pushing = queen.queue("away").push([{ data: 1 }]);
  const waiting = queen
    .queue("away")
    .limit(1)
    .timeoutMillis(1_000)
    .consume(() => undefined);
  await Promise.all(system.brokers.map((broker) => broker.start()));
  // A broker that has no connection yet keeps it on its disk.
  assert.match((await pushing)[0]!.status, /^(queued|buffered)$/);
  assert.deepEqual(await waiting, { completed: 1, failed: 0 });
});
