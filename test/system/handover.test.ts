/** A message that somebody waits for is stored and leased in one transaction, and handed over after one commit. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PopAnswer, PopQuery } from "../support/http.ts";
import { idsOf, newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

const LONG_MS = 30_000;

let system: System;

before(async () => {
  // A look in the database may try a lane at the very moment of an append, which then hands nothing over.
  system = await startSystem({ NUM_WORKERS: "1", POP_WAIT_MAX_INTERVAL_MS: "60000" });
});
after(() => system?.stop());

/** A pop that is parked when this resolves. */
async function park(queue: string, query: PopQuery = {}): Promise<{ answer: Promise<PopAnswer> }> {
  const parked = async (): Promise<number> =>
    (await system.client.request("GET", "/metrics")).json.pops.parked;
  const before = await parked();
  const answer = system.client.pop(queue, { wait: true, timeout: LONG_MS, ...query });
  await until("the pop is parked", async () => (await parked()) > before);
  return { answer };
}

/** Makes the groups' cursors of the lanes; nothing is left to deliver, and the broker knows that. */
async function empty(queue: string, lanes: readonly string[], groups = [undefined as string | undefined]) {
  await system.client.push(lanes.flatMap((lane) => numbered(queue, 1, lane, 1_000)));
  for (const consumerGroup of groups) {
    const query = consumerGroup === undefined ? {} : { consumerGroup, subscriptionMode: "all" };
    for (const _ of lanes)
      assert.equal((await system.client.pop(queue, { autoAck: true, ...query })).messages.length, 1);
    assert.equal((await system.client.pop(queue, query)).status, 204);
  }
}

/** Of each cursor of a queue, whether the transaction that changed it last is the one that appended last. */
async function handedOver(queue: string): Promise<boolean[]> {
  const rows = await system.database.query(
    `select c.xmin = p.xmin as same from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by c.group_id, p.name`,
    [queue],
  );
  return rows.map((row) => row.same as boolean);
}

for (const [kind, query] of [
  ["any lane", {}],
  ["a named lane", { partition: "a" }],
  ["any lane with auto-ack", { autoAck: true }],
] as const) {
  test(`a message for a pop of ${kind} is leased in the transaction that stores it`, async () => {
    const queue = newQueue();
    await empty(queue, ["a"]);
    const { answer } = await park(queue, { batch: 10, ...query });
    await system.client.push(numbered(queue, 3, "a"));
    assert.deepEqual(idsOf((await answer).messages), ["t0", "t1", "t2"]);
    assert.deepEqual(await handedOver(queue), [true]);
    assert.equal((await system.client.pop(queue)).status, 204);
  });
}

test("several groups that wait get the message each, all in its transaction", async () => {
  const queue = newQueue();
  const groups = ["one", "two", "three"];
  await empty(queue, ["a"], groups);
  const waiting = [];
  for (const consumerGroup of groups) waiting.push(await park(queue, { consumerGroup }));
  await system.client.push(numbered(queue, 1, "a"));
  for (const { answer } of waiting) assert.deepEqual(idsOf((await answer).messages), ["t0"]);
  assert.deepEqual(await handedOver(queue), [true, true, true]);
});

test("a pop of several lanes gets all that one push brings, and leaves what is too much to the next", async () => {
  const queue = newQueue();
  await empty(queue, ["a", "b", "c"]);
  const first = await park(queue, { partitions: 2, batch: 10 });
  const second = await park(queue, { partitions: 2, batch: 10 });
  await system.client.push(["a", "b", "c"].flatMap((lane) => numbered(queue, 2, lane)));
  const lanes = (answer: PopAnswer): string[] => [
    ...new Set(answer.messages.map(({ partition }) => partition)),
  ];
  const got = [lanes(await first.answer), lanes(await second.answer)];
  assert.deepEqual(got.flat().sort(), ["a", "b", "c"]);
  assert.deepEqual(got.map((each) => each.length).sort(), [1, 2]);
});

test("a duplicate hands nothing over, and who waits goes on waiting", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1, "a"));
  await system.client.pop(queue, { autoAck: true });
  const { answer } = await park(queue);
  assert.equal((await system.client.push(numbered(queue, 1, "a")))[0]!.status, "duplicate");
  await system.client.push(numbered(queue, 1, "a", 1));
  assert.deepEqual(idsOf((await answer).messages), ["t1"]);
});

for (const [kind, query] of [
  ["any lane", {}],
  ["this very lane", { partition: "new" }],
  ["any lane, from now on", { consumerGroup: "late", subscriptionMode: "new" }],
] as const) {
  test(`the first message of a new lane is handed over to who waits for ${kind}`, async () => {
    const queue = newQueue();
    await system.client.configure(queue);
    const { answer } = await park(queue, query);
    await system.client.push(numbered(queue, 2, "new"));
    assert.deepEqual(idsOf((await answer).messages), ["t0"]);
    assert.deepEqual(await handedOver(queue), [true]);
  });
}

test("new lanes of several queues are made with the cursors of who waits for each", async () => {
  const queues = [newQueue(), newQueue()];
  const groups = ["one", "two"];
  const waiting = [];
  for (const queue of queues) {
    await system.client.configure(queue);
    for (const consumerGroup of groups)
      waiting.push(await park(queue, { consumerGroup, partitions: 2, batch: 10 }));
  }
  await system.client.push(
    queues.flatMap((queue) => [...numbered(queue, 1, "a"), ...numbered(queue, 1, "b")]),
  );
  for (const { answer } of waiting) assert.deepEqual(idsOf((await answer).messages), ["t0", "t0"]);
  for (const queue of queues) assert.deepEqual(await handedOver(queue), [true, true, true, true]);
});

test("who waits for any lane has its cursor in one that is met before a message is stored there", async () => {
  const queue = newQueue();
  await system.client.configure(queue);
  await system.database.query(
    "insert into queen.partitions (queue_id, name) select id, 'met' from queen.queues where name = $1",
    [queue],
  );
  const { answer } = await park(queue);
  const blocker = await system.database.client();
  await blocker.query("begin; lock table queen.segments in share mode");
  const pushing = system.client.push(numbered(queue, 1, "met"));
  await until("the cursor is there", async () => {
    const cursors = await system.database.query(
      `select p.next_offset from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
         join queen.queues q on q.id = p.queue_id where q.name = $1 and p.name = 'met'`,
      [queue],
    );
    return cursors.length === 1 && Number(cursors[0]!.next_offset) === 0;
  });
  await blocker.query("commit");
  assert.equal((await pushing)[0]!.status, "queued");
  assert.deepEqual(idsOf((await answer).messages), ["t0"]);
});

test("a lane that is paused hands nothing over before it is resumed", async () => {
  const queue = newQueue();
  await empty(queue, ["a"]);
  const { answer } = await park(queue);
  assert.equal((await system.client.request("POST", `/api/v1/queues/${queue}/pause`, {})).status, 200);
  await system.client.push(numbered(queue, 1, "a"));
  assert.deepEqual(await handedOver(queue), [false]);
  assert.equal((await system.client.request("POST", `/api/v1/queues/${queue}/resume`, {})).status, 200);
  assert.deepEqual(idsOf((await answer).messages), ["t0"]);
});

test("a pop that takes fewer than come gets the first, and the rest comes next", async () => {
  const queue = newQueue();
  await empty(queue, ["a"]);
  const { answer } = await park(queue, { batch: 2, autoAck: true });
  await system.client.push(numbered(queue, 5, "a"));
  assert.deepEqual(idsOf((await answer).messages), ["t0", "t1"]);
  assert.deepEqual(idsOf((await system.client.pop(queue, { batch: 10 })).messages), ["t2", "t3", "t4"]);
});

test("what is handed over is what was pushed, in any script and of any size", async () => {
  for (const payload of [
    'ü€😀\u0000\\"',
    "x".repeat(40_000),
    "€".repeat(400_000),
    { a: [1, null, "\u2028"] },
  ]) {
    const queue = newQueue();
    await empty(queue, ["a"]);
    const { answer } = await park(queue);
    await system.client.push([{ queue, partition: "a", transactionId: "t", payload }]);
    const { messages } = await answer;
    assert.deepEqual(
      messages.map(({ data }) => data),
      [payload],
    );
    const [seen] = (
      await system.client.request("GET", `/api/v1/messages?queue=${queue}&limit=10`)
    ).json.messages.filter((each: { transactionId: string }) => each.transactionId === "t");
    assert.ok(seen !== undefined);
  }
});

test("acks of what was handed over count, and a nack brings it again", async () => {
  const queue = newQueue();
  await empty(queue, ["a"]);
  const { answer } = await park(queue, { batch: 3 });
  await system.client.push(numbered(queue, 3, "a"));
  const { messages } = await answer;
  assert.deepEqual(idsOf(messages), ["t0", "t1", "t2"]);
  await system.client.ackMessages(messages.slice(0, 1));
  await system.client.ackMessages(messages.slice(1, 2), "retry");
  assert.deepEqual(
    idsOf((await system.client.pop(queue, { batch: 3, wait: true, timeout: LONG_MS })).messages),
    ["t1", "t2"],
  );
});
