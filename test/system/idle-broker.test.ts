/** A broker that nobody asked for longer than hints are remembered forgets what it knew of lanes, and nothing else. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ids, idsOf, newQueue, numbered, type System, startSystem } from "../support/system.ts";

// Hints count for half a minute after the last look, and a broker goes on looking for a while after the last request.
const FORGOTTEN_MS = 37_000;

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

test("a lane whose lease is older than what the broker remembers goes on after its ack", async () => {
  const { client } = system;
  const any = newQueue("any");
  const named = newQueue("named");
  for (const queue of [any, named]) {
    await client.configure(queue, { leaseTime: 300 });
    await client.push(numbered(queue, 2, "slow"));
  }
  const slow = await Promise.all([any, named].map((queue) => client.pop(queue, { batch: 1 })));
  await sleep(FORGOTTEN_MS);
  for (const queue of [any, named]) assert.equal((await client.pop(queue)).status, 204);
  for (const { messages } of slow) {
    const [result] = await client.ackMessages(messages);
    assert.equal(result!.success, true);
  }
  const next = await client.pop(any, { batch: 10 });
  assert.deepEqual(idsOf(next.messages), ids(1, 2));
  const waiting = client.pop(named, { partition: "slow", batch: 10, wait: true, timeout: 10_000 });
  assert.deepEqual(idsOf((await waiting).messages), ids(1, 2));
});
