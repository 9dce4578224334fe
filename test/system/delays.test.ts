/** Delays, windows and subscriptions over HTTP: from when on a message is delivered, and where a group begins. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PopAnswer, PopQuery, PushItem } from "../support/http.ts";
import { ids, idsOf, newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const pop = (queue: string, query: PopQuery = {}): Promise<PopAnswer> =>
  system.client.pop(queue, { batch: 100, ...query });
const popWaiting = (queue: string, query: PopQuery = {}): Promise<PopAnswer> =>
  pop(queue, { wait: true, timeout: 10_000, ...query });

/** How old the messages of a queue are by the database's clock, the youngest first. */
async function agesInSeconds(queue: string): Promise<number[]> {
  const rows = await system.database.query(
    `select extract(epoch from clock_timestamp() - m.created_at)::float8 as age from queen.messages m
       join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id
      where q.name = $1 order by 1`,
    [queue],
  );
  return rows.map((row) => row.age as number);
}

// ------------------------------------------------------------------------------------------- delayedProcessing

for (const [how, query] of [
  ["any lane", {}],
  ["a named lane", { partition: "p" }],
] as const) {
  test(`delayedProcessing: a pop of ${how} gets no message before its delay, and then without being asked`, async () => {
    const queue = newQueue();
    await system.client.configure(queue, { delayedProcessing: 1 });
    await system.client.push(numbered(queue, 2, "p"));
    assert.equal((await pop(queue, query)).emptyReason, "delayed");
    const { messages } = await popWaiting(queue, query);
    assert.deepEqual(idsOf(messages), ids(0, 2));
    assert.ok((await agesInSeconds(queue))[0]! >= 1, "not before its time");
  });
}

test("delayedProcessing: messages become due one after the other, and stay in order", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { delayedProcessing: 1 });
  await system.client.push(numbered(queue, 1));
  await until("the first message is half a second old", async () => (await agesInSeconds(queue))[0]! >= 0.5);
  await system.client.push(numbered(queue, 1, undefined, 1));
  const first = await popWaiting(queue);
  assert.deepEqual(idsOf(first.messages), ["t0"], "the second is not due yet");
  await system.client.ackMessages(first.messages);
  assert.deepEqual(idsOf((await popWaiting(queue)).messages), ["t1"]);
});

test("delayedProcessing: a configure while the broker runs counts from the next pop on", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  await system.client.configure(queue, { delayedProcessing: 600 });
  assert.equal((await pop(queue)).emptyReason, "delayed");
  await system.client.configure(queue, { delayedProcessing: 0 });
  assert.deepEqual(idsOf((await popWaiting(queue)).messages), ["t0"]);
});

// ------------------------------------------------------------------------------------------------ windowBuffer

for (const [how, query] of [
  ["any lane", {}],
  ["a named lane", { partition: "p" }],
] as const) {
  test(`windowBuffer: a pop of ${how} gets nothing until the lane was quiet, and then all of it`, async () => {
    const queue = newQueue();
    await system.client.configure(queue, { windowBuffer: 1 });
    await system.client.push(numbered(queue, 1, "p"));
    assert.equal((await pop(queue, query)).emptyReason, "window_buffer");
    await until("the message is half a second old", async () => (await agesInSeconds(queue))[0]! >= 0.5);
    await system.client.push(numbered(queue, 1, "p", 1)); // the window begins anew
    const { messages } = await popWaiting(queue, query);
    assert.deepEqual(idsOf(messages), ids(0, 2));
    assert.ok((await agesInSeconds(queue))[0]! >= 1, "the newest was old enough");
  });
}

test("windowBuffer: a lane inside its window blocks no other lane", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1, "quiet"));
  await system.client.push(numbered(queue, 1, "busy"));
  await system.client.configure(queue, { windowBuffer: 600 });
  await system.database.query(
    `update queen.partitions p set last_at = last_at - interval '1 hour' from queen.queues q
      where q.id = p.queue_id and q.name = $1 and p.name = 'quiet'`,
    [queue],
  );
  assert.equal((await pop(queue)).json?.partition, "quiet");
  assert.equal((await pop(queue)).emptyReason, "window_buffer");
});

// ----------------------------------------------------------------------------------------------- subscriptions

async function withHistory(): Promise<{ queue: string; more: (from: number) => Promise<unknown> }> {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  return { queue, more: (from) => system.client.push(numbered(queue, 2, undefined, from)) };
}

for (const query of [
  { subscriptionMode: "new" },
  { subscriptionMode: "new-only" },
  { subscriptionFrom: "now" },
  { subscriptionMode: "all", subscriptionFrom: "now" },
]) {
  test(`a group that begins with ${JSON.stringify(query)} gets only what comes after its first pop`, async () => {
    const { queue, more } = await withHistory();
    const group = { consumerGroup: "g" };
    assert.equal((await pop(queue, { ...group, ...query })).status, 204);
    await more(3);
    const { messages } = await pop(queue, group);
    assert.deepEqual(idsOf(messages), ids(3, 5), "recorded at the first pop, later pops need not say it");
    await system.client.push(numbered(queue, 1, "made later"));
    assert.deepEqual((await pop(queue, group)).json?.partition, "made later");
    const other = await pop(queue, { consumerGroup: "other", partition: "Default" });
    assert.deepEqual(idsOf(other.messages), ids(0, 5), "another group's beginning is its own");
  });
}

for (const subscriptionMode of ["all", "from_beginning", "anything"]) {
  test(`a group that begins with mode ${subscriptionMode} gets all history`, async () => {
    const { queue } = await withHistory();
    assert.deepEqual(idsOf((await pop(queue, { consumerGroup: "g", subscriptionMode })).messages), ids(0, 3));
  });
}

test("a subscription is of the first pop: what later pops say changes nothing", async () => {
  const { queue, more } = await withHistory();
  const first = await pop(queue, { consumerGroup: "g", batch: 1 });
  await system.client.ackMessages(first.messages);
  await more(3);
  const { messages } = await pop(queue, { consumerGroup: "g", subscriptionMode: "new" });
  assert.deepEqual(idsOf(messages), ids(1, 5));
});

test("subscriptionFrom a time: from the first message stored at or after it", async () => {
  const { queue, more } = await withHistory();
  await more(3);
  const all = await pop(queue, { consumerGroup: "all" });
  const { createdAt } = all.messages[3]!;
  const from = await pop(queue, { consumerGroup: "g", subscriptionFrom: createdAt });
  assert.deepEqual(idsOf(from.messages), ids(3, 5));
  const offset = createdAt.replace("Z", "+00:00");
  assert.deepEqual(
    idsOf((await pop(queue, { consumerGroup: "h", subscriptionFrom: offset })).messages),
    ids(3, 5),
  );
  const early = await pop(queue, { consumerGroup: "i", subscriptionFrom: "2001-01-01" });
  assert.deepEqual(idsOf(early.messages), ids(0, 5));
  const future = await pop(queue, { consumerGroup: "j", subscriptionFrom: "2100-01-01T00:00:00Z" });
  assert.equal(future.status, 204);
});

test("subscriptionFrom that is no time is refused, and the group is not made", async () => {
  const { queue } = await withHistory();
  for (const subscriptionFrom of ["yesterdayish", "2026-13-45", "12", "'; drop schema queen; --", "\0"]) {
    const answer = await pop(queue, { consumerGroup: "g", subscriptionFrom });
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"], subscriptionFrom);
    assert.match(answer.json.error, /subscriptionFrom/);
  }
  assert.deepEqual(idsOf((await pop(queue, { consumerGroup: "g" })).messages), ids(0, 3));
});

for (const [how, query] of [
  ["any lane", {}],
  ["a named lane", { partition: "p" }],
] as const) {
  test(`a subscription by a pop of ${how} counts although the queue does not exist yet (C-7)`, async () => {
    const queue = newQueue();
    const group = { consumerGroup: "g", ...query };
    const items: PushItem[] = numbered(queue, 2, "p");
    assert.equal((await pop(queue, { ...group, subscriptionMode: "new" })).status, 204);
    await system.client.push(items);
    assert.deepEqual(idsOf((await pop(queue, group)).messages), ids(0, 2));
  });

  test(`a waiting pop of ${how} with mode new gets the first message of a queue made meanwhile (C-7)`, async () => {
    const queue = newQueue();
    const waiting = popWaiting(queue, { consumerGroup: "g", subscriptionMode: "new", ...query });
    await until("the group is recorded", async () => {
      const rows = await system.database.query(
        "select 1 from queen.consumer_groups g join queen.queues q on q.id = g.queue_id where q.name = $1",
        [queue],
      );
      return rows.length > 0;
    });
    await system.client.push(numbered(queue, 1, "p"));
    assert.deepEqual(idsOf((await waiting).messages), ["t0"]);
  });
}

test("queue mode has no subscription: it gets everything, whatever a pop says", async () => {
  const { queue } = await withHistory();
  assert.deepEqual(idsOf((await pop(queue, { subscriptionMode: "new" })).messages), ids(0, 3));
});

test("DEFAULT_SUBSCRIPTION_MODE is for groups whose pops say nothing", async () => {
  const { client } = await system.another({ DEFAULT_SUBSCRIPTION_MODE: "new" });
  const { queue, more } = await withHistory();
  assert.equal((await client.pop(queue, { consumerGroup: "g", batch: 10 })).status, 204);
  const all = await client.pop(queue, { consumerGroup: "h", subscriptionMode: "all", batch: 10 });
  assert.deepEqual(idsOf(all.messages), ids(0, 3));
  assert.deepEqual(idsOf((await client.pop(queue, { batch: 10 })).messages), ids(0, 3), "queue mode");
  await more(3);
  assert.deepEqual(idsOf((await client.pop(queue, { consumerGroup: "g", batch: 10 })).messages), ids(3, 5));
});
