/** Acks of ranges over HTTP (P4, P5): a range finishes the messages between its two ids, and no other. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer, HttpClient, PoppedMessage } from "../support/http.ts";
import {
  expireLeases,
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
} from "../support/system.ts";

let system: System;
let other: HttpClient;

before(async () => {
  system = await startSystem();
  other = (await system.another()).client;
});
after(() => system?.stop());

const QUEUE_MODE = "__QUEUE_MODE__";
const LOST = "Invalid or expired lease";

interface RangeResult {
  readonly success: boolean;
  readonly error: string | null;
  readonly leaseReleased: boolean;
}

const rangeOf = (first: PoppedMessage, last: PoppedMessage) => ({
  firstId: first.id,
  lastId: last.id,
  leaseId: first.leaseId,
});

const send = (acknowledgments: readonly unknown[], client = system.client): Promise<HttpAnswer> =>
  client.request("POST", "/api/v1/ack/batch", { acknowledgments });

async function outcomes(acknowledgments: readonly unknown[], client?: HttpClient): Promise<unknown[]> {
  const { status, json } = await send(acknowledgments, client);
  assert.equal(status, 200);
  return (json as RangeResult[]).map(({ success, error, leaseReleased }) => [success, error, leaseReleased]);
}

/** Pops so many of a new queue with so many messages. */
async function popped(pushed: number, batch: number): Promise<{ queue: string; messages: PoppedMessage[] }> {
  const queue = newQueue();
  await system.client.push(numbered(queue, pushed));
  const { messages } = await system.client.pop(queue, { batch });
  assert.equal(messages.length, batch);
  return { queue, messages: [...messages] };
}

async function assertCursor(
  queue: string,
  expected: { committed: number; acked: string | null; leased: boolean },
): Promise<void> {
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, ...expected },
  ]);
}

test("a whole delivery is finished by one range, and the lane goes on behind it", async () => {
  const { queue, messages } = await popped(12, 10);
  const answer = await send([rangeOf(messages[0]!, messages[9]!)]);
  assert.deepEqual(answer.json, [
    {
      index: 0,
      firstId: messages[0]!.id,
      lastId: messages[9]!.id,
      messages: 10,
      success: true,
      error: null,
      queueName: queue,
      partitionName: "Default",
      leaseReleased: true,
      dlq: false,
    },
  ]);
  assert.deepEqual(idsOf((await system.client.pop(queue, { batch: 10 })).messages), ids(10, 12));
});

test("a range in the middle finishes exactly its messages", async () => {
  const { queue, messages } = await popped(10, 10);
  assert.deepEqual(await outcomes([rangeOf(messages[3]!, messages[6]!)]), [[true, null, false]]);
  await assertCursor(queue, { committed: 0, acked: "{[3,7)}", leased: true });
  await system.client.ackMessages([messages[9]!], "retry");
  assert.deepEqual(idsOf((await system.client.pop(queue, { batch: 10 })).messages), [
    "t0",
    "t1",
    "t2",
    "t7",
    "t8",
    "t9",
  ]);
});

test("ranges, single acks and a failure in one batch count together", async () => {
  const { queue, messages } = await popped(10, 10);
  await system.client.configure(queue, { retryDelay: 0 });
  const [failed, single] = [messages[6]!, messages[4]!].map(({ transactionId, partitionId, leaseId }) => ({
    transactionId,
    partitionId,
    leaseId,
  }));
  const results = await outcomes([
    { ...failed, status: "failed", error: "on purpose" },
    rangeOf(messages[7]!, messages[8]!),
    rangeOf(messages[0]!, messages[3]!),
    rangeOf(messages[2]!, messages[3]!),
    single,
  ]);
  assert.deepEqual(results, Array(5).fill([true, null, true]));
  const again = await system.client.pop(queue, { batch: 10, wait: true, timeout: 10_000 });
  assert.deepEqual(
    idsOf(again.messages),
    ["t5", "t6", "t9"],
    "a failure ends the lease after what was finished",
  );
});

test("a lease of several lanes is finished by a range for each", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 3, "a"), ...numbered(queue, 3, "b")]);
  const { messages } = await system.client.pop(queue, { batch: 10, partitions: 2 });
  const of = (partition: string) => messages.filter((message) => message.partition === partition);
  assert.equal(of("a")[0]!.leaseId, of("b")[0]!.leaseId);
  assert.deepEqual(
    await outcomes([rangeOf(of("b")[0]!, of("b")[2]!), rangeOf(of("a")[0]!, of("a")[2]!)]),
    Array(2).fill([true, null, true]),
  );
  assert.equal((await system.client.pop(queue, { batch: 10, partitions: 2 })).status, 204);
});

test("a range said again is a success and changes nothing, there and on another broker", async () => {
  const { queue, messages } = await popped(6, 4);
  const range = rangeOf(messages[0]!, messages[3]!);
  assert.deepEqual(await outcomes([range]), [[true, null, true]]);
  const next = await system.client.pop(queue, { batch: 1 });
  for (const client of [system.client, other])
    assert.deepEqual(await outcomes([range], client), [[true, null, false]]);
  await assertCursor(queue, { committed: 4, acked: null, leased: true });
  assert.deepEqual(await outcomes([rangeOf(next.messages[0]!, next.messages[0]!)]), [[true, null, true]]);
});

test("a broker that did not serve the pop finishes its range", async () => {
  const { queue, messages } = await popped(8, 6);
  assert.deepEqual(await outcomes([rangeOf(messages[0]!, messages[2]!)], other), [[true, null, false]]);
  assert.deepEqual(await outcomes([rangeOf(messages[3]!, messages[5]!)]), [[true, null, true]]);
  await assertCursor(queue, { committed: 6, acked: null, leased: false });
});

test("a range of a lease that was replaced changes nothing, on any broker (P4)", async () => {
  const { queue, messages } = await popped(5, 5);
  await expireLeases(system.database, queue);
  const held = await other.pop(queue, { partition: "Default", batch: 5 });
  assert.deepEqual(idsOf(held.messages), ids(0, 5));
  for (const client of [system.client, other])
    assert.deepEqual(await outcomes([rangeOf(messages[0]!, messages[4]!)], client), [[false, LOST, false]]);
  await assertCursor(queue, { committed: 0, acked: null, leased: true });
});

test("a range that goes beyond its lease is refused, and no other ack with it", async () => {
  const { queue, messages } = await popped(10, 4);
  const [partition] = messages[0]!.id.split(/(?<=-8001-8000-)/);
  const beyond = { ...rangeOf(messages[0]!, messages[3]!), lastId: `${partition}000000000004` };
  for (const client of [system.client, other])
    assert.deepEqual(await outcomes([beyond, rangeOf(messages[0]!, messages[1]!)], client), [
      [false, LOST, false],
      [true, null, false],
    ]);
  await assertCursor(queue, { committed: 2, acked: null, leased: true });
});

test("a range of another group's lease, of an unknown lease or an unknown lane is refused", async () => {
  const { queue, messages } = await popped(3, 3);
  const range = rangeOf(messages[0]!, messages[2]!);
  const { json } = await system.client.request("POST", "/api/v1/ack/batch", {
    acknowledgments: [range],
    consumerGroup: "strangers",
  });
  assert.deepEqual([json[0].success, json[0].error], [false, "Message not found"]);
  const unknown = {
    ...range,
    firstId: "00ffffff-ffff-8001-8000-000000000000",
    lastId: "00ffffff-ffff-8001-8000-000000000001",
  };
  assert.deepEqual(await outcomes([{ ...range, leaseId: "nonsense" }, unknown]), [
    [false, LOST, false],
    [false, "Message not found", false],
  ]);
  await assertCursor(queue, { committed: 0, acked: null, leased: true });
});

test("bad ranges are refused with the item and what to do, and nothing of the batch is done", async () => {
  const { queue, messages } = await popped(3, 3);
  const good = rangeOf(messages[0]!, messages[2]!);
  const elsewhere = (await popped(1, 1)).messages[0]!;
  const cases: [object, RegExp][] = [
    [
      { ...good, firstId: "t0" },
      /acknowledgments\[1\]\.firstId must be the id of a message, as a pop gave it/,
    ],
    [{ ...good, firstId: 7 }, /acknowledgments\[1\]\.firstId/],
    [{ ...good, lastId: undefined }, /acknowledgments\[1\]\.lastId must be the id of a message/],
    [{ ...good, lastId: messages[0]!.partitionId }, /acknowledgments\[1\]\.lastId/],
    [{ ...good, lastId: elsewhere.id }, /lastId must be of the same partition as firstId, and not before it/],
    [
      rangeOf(messages[2]!, messages[0]!),
      /lastId must be of the same partition as firstId, and not before it/,
    ],
    [
      { ...good, lastId: good.lastId.replace(/.{12}$/, "ffffffffffff") },
      /acknowledgments\[1\]: a range is of one delivery, which has at most 10000 messages/,
    ],
    [
      { ...good, leaseId: undefined },
      /acknowledgments\[1\]\.leaseId: a range is acked with the lease of its pop/,
    ],
    [{ ...good, leaseId: 7 }, /acknowledgments\[1\]\.leaseId/],
    [{ ...good, status: "failed" }, /a range can be completed, nothing else; ack other messages one by one/],
    [{ ...good, status: "toString" }, /a range can be completed, nothing else/],
    [{ ...good, consumerGroup: 7 }, /acknowledgments\[1\]\.consumerGroup/],
  ];
  for (const [item, message] of cases) {
    const answer = await send([good, item]);
    assert.deepEqual([answer.status, answer.json.code], [400, "VALIDATION_FAILED"], answer.text);
    assert.match(answer.json.error, message);
  }
  await assertCursor(queue, { committed: 0, acked: null, leased: true });
});
