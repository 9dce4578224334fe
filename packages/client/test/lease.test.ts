/** Leases renew by themselves while a handler works, and a handler hears of a lost one. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startTestQueen, type TestQueen, until } from "@queen/testing";
import { LeaseLostError, type Queen } from "../src/index.ts";

let system: TestQueen;
before(async () => {
  system = await startTestQueen({ env: { QUEEN_LEASE_SWEEP_INTERVAL_MS: "200" } });
});
after(() => system?.stop());

async function oneMessage(queen: Queen, name: string) {
  const queue = queen.queue<number>(name).config({ leaseTime: 2, retryLimit: 9, retryDelay: 0 });
  await queue.create();
  await queue.push({ data: 1 });
  return queue;
}

/** Another consumer, which would get the message if the lease ran out. */
async function rival(queue: ReturnType<Queen["queue"]>): Promise<unknown[]> {
  return (await queue.pop()).map(({ data }) => data);
}

for (const useWorker of [true, false]) {
  test(`a lease outlives its leaseTime while the handler works (${useWorker ? "worker" : "timer"})`, async () => {
    const queen = system.client({ useWorker });
    const queue = await oneMessage(queen, `long-${useWorker}`);
    let stolen: unknown[] = [];
    let isAborted = false;
    await queue.limit(1).consume(async (_, { signal }) => {
      await sleep(3_500);
      stolen = await rival(queue);
      isAborted = signal.aborted;
    });
    assert.deepEqual([stolen, isAborted], [[], false]);
    await system.drained(`long-${useWorker}`);
  });
}

test("a lease outlives its leaseTime while the handler blocks the event loop", async () => {
  const queen = system.client();
  const queue = await oneMessage(queen, "blocking");
  let deliveries = 0;
  const summary = await queue.limit(1).consume(() => {
    deliveries++;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_500); // nothing else runs in this thread
  });
  assert.deepEqual([summary.completed, deliveries], [1, 1]);
  await system.drained("blocking");
  assert.deepEqual(await rival(queue), []);
});

test("without renewal a lease runs out, and the handler's ack has no effect", async () => {
  const warnings: unknown[] = [];
  const queen = system.client({ onWarning: (_, cause) => warnings.push(cause) });
  const queue = await oneMessage(queen, "no-renewal");
  let stolen: unknown[] = [];
  await queue
    .renewLease(false)
    .limit(1)
    .consume(async () => {
      stolen = await until("the lease ran out", async () => {
        const got = await rival(queue);
        return got.length > 0 ? got : undefined;
      });
    });
  assert.deepEqual(stolen, [1]);
  assert.equal(warnings.length, 1);
});

test("a handler hears through its signal that the lease is lost", async () => {
  const queen = system.client();
  const queue = await oneMessage(queen, "lost");
  const reason = await new Promise<unknown>((resolve) => {
    const consumption = queue.renewLease(3).consume(async (_, { signal }) => {
      await queen.admin.seek("__QUEUE_MODE__", "lost", "end"); // an operator moves the group: leases end
      signal.addEventListener("abort", () => resolve(signal.reason));
      await until("it is aborted", () => signal.aborted);
      void consumption.stop();
    });
  });
  assert.ok(reason instanceof LeaseLostError);
  assert.match(reason.message, /^The lease is lost \([^()]+\): others/);
});

test("a lease that ended because its messages are settled is not lost", async () => {
  const queen = system.client();
  const queue = await oneMessage(queen, "settled");
  let isAborted = true;
  await queue.limit(1).consume(async ([message], { signal }) => {
    await queen.transaction().ack(message!).queue("settled-out").push({ data: 1 }).commit();
    await sleep(1_500); // the next renewal finds no lease
    isAborted = signal.aborted;
  });
  assert.equal(isAborted, false);
});
