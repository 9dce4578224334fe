/** Clearing a queue or a partition, with two brokers that both know it; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpClient } from "../support/http.ts";
import {
  countMessages,
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
} from "../support/system.ts";

let system: System;
let one: HttpClient;
let two: HttpClient;
before(async () => {
  system = await startSystem();
  one = system.client;
  ({ client: two } = await system.another());
});
after(() => system.stop());

async function clear(queue: string, query = "", by = one) {
  const answer = await by.request("DELETE", `/api/v1/queues/${encodeURIComponent(queue)}/clear${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

test("a cleared queue is empty for everybody, and the same transactionIds may come again on any broker", async () => {
  const queue = newQueue();
  // Both brokers append to the lane and read it, so that both hold its keys and segments.
  const before = [
    ...(await one.push(numbered(queue, 50, "p"))),
    ...(await two.push(numbered(queue, 50, "p", 50))),
  ];
  for (const client of [one, two]) {
    const again = await client.push(numbered(queue, 100, "p"));
    assert.ok(again.every((result) => result.status === "duplicate"));
    const { messages } = await client.pop(queue, { consumerGroup: `of-${client === one}`, batch: 10 });
    assert.equal(messages.length, 10);
  }
  await one.push(numbered(queue, 5, "q"));
  assert.deepEqual(await clear(queue), {
    cleared: true,
    queue,
    messages: 105,
    partitions: 2,
    deadLetters: 0,
  });
  assert.equal(await countMessages(system.database, queue), 0);
  for (const client of [one, two]) {
    assert.equal((await client.pop(queue, { batch: 100 })).status, 204);
    assert.equal((await client.pop(queue, { consumerGroup: "of-true", batch: 100 })).status, 204);
  }
  const after = [
    ...(await two.push(numbered(queue, 50, "p"))),
    ...(await one.push(numbered(queue, 50, "p", 50))),
  ];
  assert.ok(after.every((result) => result.status === "queued"));
  const used = new Set(before.map((result) => result.message_id));
  assert.ok(
    after.every((result) => !used.has(result.message_id)),
    "no id is used again",
  );
  for (const [client, consumerGroup] of [
    [one, "of-true"],
    [two, "of-false"],
    [two, "new-here"],
  ] as const) {
    // Without the bus, the end of a lease at another broker is found by looking.
    const { messages } = await client.pop(queue, {
      consumerGroup,
      batch: 1_000,
      wait: true,
      timeout: 10_000,
    });
    assert.deepEqual(idsOf(messages), ids(0, 100), consumerGroup);
  }
});

test("leases end with a clear: their acks change nothing, and the lane is free for what comes", async () => {
  const queue = newQueue();
  await one.push(numbered(queue, 10, "p"));
  const held = await two.pop(queue, { partition: "p", batch: 4 });
  await clear(queue, "?partition=p");
  const places = await readCursors(system.database, queue);
  assert.deepEqual(
    places.map(({ committed, leased }) => [committed, leased]),
    [[10, false]],
  );
  await two.ackMessages(held.messages, "failed", "too late"); // answered as for any message that is finished
  assert.deepEqual(await readCursors(system.database, queue), places);
  const [extended] = (await two.extend(held.messages[0]!.leaseId)).json;
  assert.equal(extended.success, false);
  // The broker that served the lease believed it for five minutes.
  const waiting = two.pop(queue, { partition: "p", batch: 4, wait: true, timeout: 20_000 });
  await one.push(numbered(queue, 2, "p", 10));
  assert.deepEqual(idsOf((await waiting).messages), ["t10", "t11"]);
  const { json } = await one.request("GET", `/api/v1/dlq?queue=${queue}`);
  assert.equal(json.total, 0, "a late failure buries nothing");
});

test("a broker that hears no notifications finds out by looking", async () => {
  const queue = newQueue();
  const { client: deaf } = await system.another({ QUEEN_BUS: "false" });
  await deaf.push(numbered(queue, 3, "p"));
  assert.equal((await deaf.pop(queue, { partition: "p", batch: 3 })).messages.length, 3);
  await clear(queue);
  const waiting = deaf.pop(queue, { batch: 4, wait: true, timeout: 20_000 });
  const pushed = await one.push(numbered(queue, 2, "p"));
  assert.ok(pushed.every((result) => result.status === "queued"));
  assert.deepEqual(idsOf((await waiting).messages), ["t0", "t1"]);
});

test("one partition is cleared, the others stay", async () => {
  const queue = newQueue("a b/ü");
  await one.push([...numbered(queue, 3, "x/1"), ...numbered(queue, 2, "y")]);
  assert.deepEqual(await clear(queue, "?partition=x%2F1", two), {
    cleared: true,
    queue,
    partition: "x/1",
    messages: 3,
    partitions: 1,
    deadLetters: 0,
  });
  assert.equal((await one.pop(queue, { partition: "x/1", batch: 9 })).status, 204);
  assert.deepEqual(idsOf((await one.pop(queue, { partition: "y", batch: 9 })).messages), ["t0", "t1"]);
  assert.equal((await clear(queue, "?partition=x%2F1")).messages, 0, "again: nothing is left");
});

test("dead letters stay, unless they are asked for", async () => {
  const queue = newQueue();
  await one.push(numbered(queue, 3, "p"));
  const { messages } = await one.pop(queue, { batch: 2 });
  await one.ackMessages(messages, "dlq", "no");
  const letters = async (): Promise<number> =>
    (await one.request("GET", `/api/v1/dlq?queue=${queue}`)).json.total;
  assert.deepEqual([(await clear(queue)).messages, await letters()], [3, 2]);
  const requeued = await one.request("POST", "/api/v1/dlq/requeue", { queue, limit: 1 });
  assert.equal(requeued.json.requeued, 1, "a letter outlives the clear and can come back");
  assert.equal((await one.pop(queue)).messages.length, 1);
  assert.deepEqual([(await clear(queue, "?deadLetters=true")).deadLetters, await letters()], [1, 0]);
});

test("pushes during a clear are kept or removed whole, and each message is counted once", async () => {
  const queue = newQueue();
  const PER_PUSH = 20;
  let pushed = PER_PUSH;
  await one.push(numbered(queue, PER_PUSH, "p"));
  const push = async (client: HttpClient): Promise<void> => {
    for (let round = 0; round < 15; round++) {
      const from = pushed;
      pushed += PER_PUSH;
      const results = await client.push(numbered(queue, PER_PUSH, "p", from));
      assert.ok(results.every((result) => result.status === "queued"));
    }
  };
  let cleared = 0;
  const clearing = async (): Promise<void> => {
    for (let round = 0; round < 5; round++)
      cleared += (await clear(queue, "", round % 2 ? one : two)).messages;
  };
  await Promise.all([push(one), push(two), clearing()]);
  const { messages } = await one.pop(queue, { batch: 10_000 });
  assert.equal(cleared + messages.length, pushed);
  const pushes = new Map<number, number>();
  for (const id of idsOf(messages)) {
    const push = Math.floor(Number(id.slice(1)) / PER_PUSH);
    pushes.set(push, (pushes.get(push) ?? 0) + 1);
  }
  for (const [push, count] of pushes) assert.equal(count, PER_PUSH, `push ${push} is there whole`);
});

test("what is not there cannot be cleared", async () => {
  const none = await one.request("DELETE", "/api/v1/queues/none/clear");
  assert.deepEqual([none.status, none.json], [404, { error: "Queue not found", code: "NOT_FOUND" }]);
  const queue = newQueue();
  await one.push(numbered(queue, 1));
  const partition = await one.request("DELETE", `/api/v1/queues/${queue}/clear?partition=none`);
  assert.deepEqual([partition.status, partition.json.error], [404, "Partition not found"]);
});
