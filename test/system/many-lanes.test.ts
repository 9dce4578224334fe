/** A worker that cannot remember all lanes forgets those unused for longest, and nothing of what is in them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dataOf, newQueue, type System, startSystem } from "../support/system.ts";

// So little that only the lanes are remembered that always are.
const HEAP_MB = 64;
const REMEMBERED = 10_000;
const LANES = 30_000;
const AT_ONCE = 500;
// Of the first ones nothing is known any more when the last ones were pushed to.
const FORGOTTEN = 1_000;
const EVERY = 100;

let system: System;

before(async () => {
  system = await startSystem({
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    // Many duplicates take long to look up; no machine is so slow that they should go to the disk meanwhile.
    QUEEN_SPOOL_AFTER_MS: "600000",
  });
});
after(() => system?.stop());

const nameOf = (lane: number): string => `device-${lane}`;

/** Pushes message `nth` of each of these lanes, and returns how often each status was answered. */
async function pushTo(queue: string, lanes: number, nth: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let first = 0; first < lanes; first += AT_ONCE) {
    const results = await system.client.push(
      Array.from({ length: AT_ONCE }, (_, index) => ({
        queue,
        partition: nameOf(first + index),
        transactionId: `${nth} of ${first + index}`,
        payload: nth,
      })),
    );
    for (const { status } of results) counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

/** By now, by the worker that answers. */
const lanesRemembered = async (): Promise<number> =>
  Number(/"lanes":(\d+)/.exec((await system.client.request("GET", "/metrics")).text)![1]);

test("of more lanes than it can remember, each message is stored once and delivered in order", async () => {
  const queue = newQueue();
  const [pid] = system.broker.workerPids();
  assert.deepEqual(await pushTo(queue, LANES, 1), { queued: LANES });
  assert.deepEqual(await pushTo(queue, FORGOTTEN, 1), { duplicate: FORGOTTEN });
  assert.deepEqual(await pushTo(queue, LANES, 2), { queued: LANES });
  assert.equal(await lanesRemembered(), REMEMBERED);
  for (let lane = 0; lane < LANES; lane += EVERY) {
    const pop = { partition: nameOf(lane), batch: 10, autoAck: true };
    assert.deepEqual(dataOf((await system.client.pop(queue, pop)).messages), [1, 2], nameOf(lane));
  }
  const next = { batch: 1, partitions: 1, autoAck: true, wait: true, timeout: 20_000 };
  assert.deepEqual(
    dataOf((await system.client.pop(queue, next)).messages),
    [1],
    "a lane that was not popped yet",
  );
  assert.deepEqual(system.broker.workerPids(), [pid], "the worker lives");
});
