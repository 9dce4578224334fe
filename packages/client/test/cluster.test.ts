/**
 * Three brokers on one database, of which one is killed and started again while producers and consumers are at
 * work: what was answered is delivered, and every lane keeps its order.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startTestQueen, type TestQueen } from "@queen/testing";
import type { Balancing, Queen } from "../src/index.ts";

let system: TestQueen;
before(async () => {
  // Short, because a broker that is killed takes its knowledge of leases along.
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
        const [result] = await queue.push({ data: next });
        assert.notEqual(result?.status, "duplicate", "the same message twice would be one message less");
        await sleep(10);
      }
    }),
  );
}

/** Drops what came again: of messages that are delivered twice the first delivery counts. */
function firsts(seen: readonly number[]): number[] {
  return [...new Set(seen)];
}

for (const balancing of ["affinity", "round-robin", "session"] satisfies Balancing[]) {
  test(`${balancing}: with one of three brokers killed and restarted nothing is lost or reordered`, async () => {
    const name = `cluster-${balancing}`;
    const queen = system.client({ balancing, recoverMillis: 500 });
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
    const victim = system.brokers[1]!;
    await victim.kill();
    await sleep(100);
    await victim.start();
    await producing;
    await system.drained(name, "g");
    await consumer.stop();
    const all = Array.from({ length: PUSHES }, (_, index) => index);
    for (const lane of LANES) {
      assert.deepEqual(firsts(seen.get(lane)!), all, `lane ${lane}: ${seen.get(lane)}`);
    }
  });
}

test("a client whose brokers are all away for a while goes on where it was", async () => {
  const queen = system.client({ recoverMillis: 200, retries: 8 });
  await Promise.all(system.brokers.map((broker) => broker.kill()));
  const pushing = queen.queue("away").push([{ data: 1 }]);
  const waiting = queen
    .queue("away")
    .limit(1)
    .timeoutMillis(1_000)
    .consume(() => undefined);
  await Promise.all(system.brokers.map((broker) => broker.start()));
  assert.equal((await pushing)[0]?.status, "queued");
  assert.deepEqual(await waiting, { completed: 1, failed: 0 });
});
