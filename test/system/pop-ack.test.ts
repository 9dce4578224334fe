/** Pop and ack over HTTP (P4, P5): what is delivered, to whom, and what an ack finishes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { POP_BYTES_MAX } from "@queen/protocol";
import type { HttpAnswer, HttpClient, PopAnswer, PoppedMessage, PopQuery } from "../support/http.ts";
import {
  dataOf,
  expireLeases,
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
  until,
} from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

/** A broker on the same database, started by the first test that needs it. */
let second: Promise<{ client: HttpClient }> | undefined;
const secondBroker = async (): Promise<HttpClient> => {
  second ??= system.another();
  return (await second).client;
};

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000";
const QUEUE_MODE = "__QUEUE_MODE__";

const ackOne = (message: PoppedMessage, more: Record<string, unknown> = {}): Promise<HttpAnswer> => {
  const { transactionId, partitionId, leaseId } = message;
  return system.client.request("POST", "/api/v1/ack", { transactionId, partitionId, leaseId, ...more });
};

/** Waits until a lane of the queue can be had again, and pops it. */
const popWaiting = (queue: string, query = {}): Promise<PopAnswer> =>
  system.client.pop(queue, { wait: true, timeout: 10_000, batch: 100, ...query });

function assertEmpty(answer: PopAnswer, reason: string): void {
  assert.deepEqual([answer.status, answer.emptyReason, answer.text], [204, reason, ""]);
}

// ----------------------------------------------------------------------------------------------- manualAck

test("manualAck: a pop shows the message with all its fields", async () => {
  const queue = newQueue();
  const traceId = "12345678-1234-4234-8234-123456789abc";
  const [pushed] = await system.client.push([
    { queue, partition: "p", transactionId: "t0", traceId, payload: { a: [1, "x"] } },
  ]);
  const { status, json, headers } = await system.client.pop(queue);
  assert.equal(status, 200);
  assert.equal(headers["content-type"], "application/json");
  const { messages, leaseId, ...outer } = json;
  assert.match(leaseId, UUID);
  assert.deepEqual(outer, {
    success: true,
    queue,
    partition: "p",
    partitionId: pushed!.partition_id,
    consumerGroup: QUEUE_MODE,
    partitionsClaimed: 1,
  });
  const [{ createdAt, ...message }] = messages;
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.deepEqual(message, {
    id: pushed!.message_id,
    transactionId: "t0",
    traceId,
    data: { a: [1, "x"] },
    producerSub: null,
    partitionId: pushed!.partition_id,
    partition: "p",
    leaseId,
    consumerGroup: QUEUE_MODE,
  });
});

test("manualAck: a single ack answers an array of one, and the message never comes back", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const [message] = (await system.client.pop(queue)).messages;
  const answer = await ackOne(message!);
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json, [
    {
      index: 0,
      transactionId: "t0",
      success: true,
      error: null,
      queueName: queue,
      partitionName: "Default",
      leaseReleased: true,
      dlq: false,
    },
  ]);
  assertEmpty(await system.client.pop(queue), "no_available_partition");
  assertEmpty(await system.client.pop(queue, { partition: "Default" }), "no_available_partition");
});

test("manualAck: a batch ack answers in the order asked, and the lane goes on with what comes next", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 25));
  for (const [from, to] of [
    [0, 10],
    [10, 20],
    [20, 25],
  ] as const) {
    const { messages } = await system.client.pop(queue, { batch: 10 });
    assert.deepEqual(idsOf(messages), ids(from, to));
    const results = await system.client.ackMessages(messages.toReversed());
    assert.deepEqual(
      results.map((result) => [result.index, result.transactionId, result.success]),
      ids(from, to)
        .toReversed()
        .map((id, index) => [index, id, true]),
    );
    assert.equal(results.at(-1)!.leaseReleased, true);
  }
  assertEmpty(await system.client.pop(queue), "no_available_partition");
});

test("the lane is released although fewer messages were there than the batch asked for", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  const { messages } = await system.client.pop(queue, { batch: 100 });
  const results = await system.client.ackMessages(messages);
  assert.equal(results.at(-1)!.leaseReleased, true);
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 2, acked: null, leased: false },
  ]);
});

test("acking message 5 does not finish messages 1 to 4 (P5)", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 1 });
  await system.client.push(numbered(queue, 7));
  const { messages } = await system.client.pop(queue, { batch: 5 });
  const [result] = (await ackOne(messages[4]!)).json;
  assert.deepEqual([result.success, result.leaseReleased], [true, false]);
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 0, acked: "{[4,5)}", leased: true },
  ]);
  const again = await popWaiting(queue, { batch: 5 });
  assert.deepEqual(idsOf(again.messages), ids(0, 4), "the lease ran out: 1 to 4 come again, 5 does not");
  await system.client.ackMessages(again.messages);
  assert.deepEqual(idsOf((await system.client.pop(queue, { batch: 5 })).messages), ids(5, 7));
});

test("acks out of order finish exactly their messages; the last one frees the lane", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 6));
  const { messages } = await system.client.pop(queue, { batch: 5 });
  const seen: unknown[] = [];
  for (const index of [3, 1, 4, 0, 2]) {
    const [result] = (await ackOne(messages[index]!)).json;
    const [cursor] = await readCursors(system.database, queue);
    seen.push([result.success, result.leaseReleased, cursor!.committed, cursor!.acked]);
  }
  assert.deepEqual(seen, [
    [true, false, 0, "{[3,4)}"],
    [true, false, 0, "{[1,2),[3,4)}"],
    [true, false, 0, "{[1,2),[3,5)}"],
    [true, false, 2, "{[3,5)}"],
    [true, true, 5, null],
  ]);
  assert.deepEqual(idsOf((await system.client.pop(queue)).messages), ["t5"]);
});

test("a partial ack and a lease that runs out: the rest comes again, in order, with what is new", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 1 });
  await system.client.push(numbered(queue, 10));
  const { messages } = await system.client.pop(queue, { batch: 8 });
  const acked = [0, 1, 4, 6].map((index) => messages[index]!);
  assert.ok((await system.client.ackMessages(acked)).every((result) => result.success));
  const again = await popWaiting(queue);
  assert.deepEqual(idsOf(again.messages), ["t2", "t3", "t5", "t7", "t8", "t9"]);
  await system.client.ackMessages(again.messages);
  assertEmpty(await system.client.pop(queue), "no_available_partition");
});

test("a repeated ack is a success and changes nothing: with the lease, after it, and without one", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  const { messages } = await system.client.pop(queue, { batch: 2 });
  for (let time = 0; time < 3; time++) {
    const [result] = (await ackOne(messages[0]!)).json;
    assert.deepEqual([result.success, result.error, result.leaseReleased], [true, null, false]);
  }
  assert.equal((await ackOne(messages[1]!)).json[0].leaseReleased, true);
  const before = await readCursors(system.database, queue);
  for (const more of [{}, { leaseId: undefined }, { leaseId: null }, { leaseId: "" }]) {
    const [result] = (await ackOne(messages[0]!, more)).json;
    assert.deepEqual([result.success, result.error], [true, null]);
  }
  assert.deepEqual(await readCursors(system.database, queue), before);
  const next = await system.client.pop(queue);
  assert.deepEqual(idsOf(next.messages), ["t2"]);
  // The finished ones may be acked while somebody else holds the lane; it stays his.
  assert.ok((await system.client.ackMessages(messages)).every((result) => result.success));
  assertEmpty(await system.client.pop(queue, { partition: "Default" }), "lease_held");
});

test("the same ack many times in one batch finishes one message", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 4));
  const { messages } = await system.client.pop(queue, { batch: 4 });
  const results = await system.client.ackMessages([0, 0, 0, 0].map((index) => messages[index]!));
  assert.deepEqual(
    results.map((result) => [result.success, result.leaseReleased]),
    Array(4).fill([true, false]),
  );
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 1, acked: null, leased: true },
  ]);
});

for (const status of ["completed", "failed", "dlq", "retry"] as const) {
  test(`an ack «${status}» with a lease that was replaced is refused and changes nothing (P4)`, async () => {
    const queue = newQueue();
    await system.client.push(numbered(queue, 3));
    const first = await system.client.pop(queue, { batch: 3 });
    assert.equal(await expireLeases(system.database, queue), 1);
    const second = await system.client.pop(queue, { partition: "Default", batch: 3 });
    assert.deepEqual(idsOf(second.messages), ids(0, 3));
    assert.notEqual(second.messages[0]!.leaseId, first.messages[0]!.leaseId);

    const before = await readCursors(system.database, queue);
    const results = await system.client.ackMessages(first.messages, status, "too late");
    assert.deepEqual(
      results.map((result) => [result.success, result.error, result.leaseReleased, result.dlq]),
      Array(3).fill([false, "Invalid or expired lease", false, false]),
    );
    assert.deepEqual(await readCursors(system.database, queue), before);
    assertEmpty(await system.client.pop(queue, { partition: "Default" }), "lease_held");
    const owners = await system.client.ackMessages(second.messages);
    assert.ok(owners.every((result) => result.success));
  });
}

test("a lease that ran out but was not replaced still counts", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  const { messages } = await system.client.pop(queue, { batch: 2 });
  await expireLeases(system.database, queue);
  const results = await system.client.ackMessages(messages);
  assert.deepEqual(
    results.map((result) => [result.success, result.leaseReleased]),
    [
      [true, true],
      [true, true],
    ],
  );
  assertEmpty(await system.client.pop(queue), "no_available_partition");
});

test("an ack without leaseId finishes a message that is leased, and none that is not", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  const { messages } = await system.client.pop(queue, { batch: 2 });
  const [result] = (await ackOne(messages[0]!, { leaseId: undefined })).json;
  assert.deepEqual([result.success, result.leaseReleased], [true, false]);
  const beyond = { ...messages[0]!, transactionId: "t2" };
  for (const leaseId of [undefined, messages[0]!.leaseId]) {
    const [refused] = (await ackOne(beyond, { leaseId })).json;
    assert.deepEqual([refused.success, refused.error], [false, "Invalid or expired lease"]);
  }
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 1, acked: null, leased: true },
  ]);
});

test("acks of unknown messages, partitions and groups say so, and the others of the batch count", async () => {
  const queue = newQueue();
  const [pushed] = await system.client.push(numbered(queue, 1));
  const { messages } = await system.client.pop(queue);
  const { partitionId, leaseId } = messages[0]!;
  const results = await system.client.ack([
    { transactionId: "never", partitionId, leaseId },
    { transactionId: "t0", partitionId: UNKNOWN_UUID, leaseId },
    { transactionId: "t0", partitionId: pushed!.message_id, leaseId },
    { transactionId: "t0", partitionId, leaseId },
  ]);
  const outcome = (index: number) => {
    const { success, error, queueName, partitionName } = results[index]!;
    return [success, error, queueName, partitionName];
  };
  assert.deepEqual(outcome(0), [false, "Message not found", queue, "Default"]);
  assert.deepEqual(outcome(1), [false, "Message not found", null, null]);
  assert.deepEqual(outcome(2), [false, "Message not found", null, null]);
  assert.deepEqual(outcome(3), [true, null, queue, "Default"]);
  const strangers = await system.client.ack([{ transactionId: "t0", partitionId }], "nobody");
  assert.deepEqual([strangers[0]!.success, strangers[0]!.error], [false, "Message not found"]);
});

test("an unknown status is refused for its item alone and changes nothing", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  const { messages } = await system.client.pop(queue, { batch: 2 });
  const { status, json } = await system.client.request("POST", "/api/v1/ack/batch", {
    acknowledgments: [
      { ...messages[0], status: "done" },
      { ...messages[1], status: "success" },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual(
    json.map((result: { success: boolean; leaseReleased: boolean }) => [
      result.success,
      result.leaseReleased,
    ]),
    [
      [false, false],
      [true, false],
    ],
  );
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 0, acked: "{[1,2)}", leased: true },
  ]);
});

test("an empty ack batch is answered with an empty array", async () => {
  const answer = await system.client.request("POST", "/api/v1/ack/batch", { acknowledgments: [] });
  assert.deepEqual([answer.status, answer.text], [200, "[]"]);
});

test("the group at the top of an ack batch wins over the items' own", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { messages } = await system.client.pop(queue, { consumerGroup: "g" });
  const { transactionId, partitionId, leaseId } = messages[0]!;
  const item = { transactionId, partitionId, leaseId };
  const own = await system.client.request("POST", "/api/v1/ack/batch", {
    acknowledgments: [{ ...item, consumerGroup: "other" }],
  });
  assert.equal(own.json[0].success, false);
  const top = await system.client.request("POST", "/api/v1/ack/batch", {
    acknowledgments: [{ ...item, consumerGroup: "other" }],
    consumerGroup: "g",
  });
  assert.deepEqual([top.json[0].success, top.json[0].leaseReleased], [true, true]);
  const single = await system.client.request("POST", "/api/v1/ack", { ...item, consumerGroup: "g" });
  assert.equal(single.json[0].success, true);
});

test("bad acks are refused with the item and the field, and nothing of the batch is done", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { messages } = await system.client.pop(queue);
  const { transactionId, partitionId, leaseId } = messages[0]!;
  const good = { transactionId, partitionId, leaseId };
  const cases: [string, unknown, RegExp][] = [
    ["ack", {}, /^transactionId is required$/],
    ["ack", { ...good, transactionId: 5 }, /transactionId is required/],
    ["ack", { transactionId }, /^partitionId is required to ensure message uniqueness$/],
    ["ack", { ...good, partitionId: "x" }, /partitionId/],
    ["ack", { ...good, leaseId: 7 }, /leaseId/],
    ["ack", { ...good, status: 7 }, /status/],
    ["ack", { ...good, consumerGroup: 7 }, /consumerGroup/],
    ["ack", [], /transactionId is required/],
    ["ack/batch", {}, /^acknowledgments array is required$/],
    ["ack/batch", { acknowledgments: {} }, /^acknowledgments array is required$/],
    [
      "ack/batch",
      { acknowledgments: [good, { ...good, transactionId: "" }] },
      /acknowledgments\[1\].*Each acknowledgment must have a valid transactionId string/,
    ],
    [
      "ack/batch",
      { acknowledgments: [good, { ...good, partitionId: "not-a-uuid" }] },
      /acknowledgments\[1\].*valid partitionId string to ensure message uniqueness/,
    ],
    ["ack/batch", { acknowledgments: [good, null] }, /acknowledgments\[1\]/],
    ["ack/batch", { acknowledgments: [good], consumerGroup: "x".repeat(256) }, /consumerGroup/],
  ];
  for (const [path, body, message] of cases) {
    const answer = await system.client.request("POST", `/api/v1/${path}`, body);
    assert.deepEqual([answer.status, answer.json.code], [400, "VALIDATION_FAILED"], answer.text);
    assert.match(answer.json.error, message);
  }
  const empty = await system.client.request("POST", "/api/v1/ack", "");
  assert.deepEqual([empty.status, empty.json.error], [400, "Empty request body"]);
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 0, acked: null, leased: true },
  ]);
});

test("hundreds of acks of one lease at once, each in a request of its own, finish all", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 300));
  const { messages } = await system.client.pop(queue, { batch: 300 });
  const answers = await Promise.all(messages.map((message) => ackOne(message)));
  assert.ok(answers.every((answer) => answer.json[0].success));
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 300, acked: null, leased: false },
  ]);
});

// ------------------------------------------------------------------------------------------ pop parameters

test("batch: one by default, values below one act as one, and no pop gets more than it asked for", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 12));
  const take = async (query: object): Promise<number> => {
    const { messages } = await system.client.pop(queue, query);
    await system.client.ackMessages(messages);
    return messages.length;
  };
  assert.equal(await take({}), 1);
  assert.equal(await take({ batch: 0 }), 1);
  assert.equal(await take({ batch: -3 }), 1);
  assert.equal(await take({ batch: -3, partition: "Default" }), 1);
  assert.equal(await take({ batch: 3 }), 3);
  assert.equal(await take({ batch: 999_999 }), 5);
});

test("wrong numbers and names in a pop's parameters are refused by name", async () => {
  for (const [query, message] of [
    ["batch=x", /batch/],
    ["batch=1.5", /batch/],
    ["batch=99999999999999999999", /batch/],
    ["wait=true&timeout=soon", /timeout/],
    ["partitions=many", /partitions/],
    [`consumerGroup=${"g".repeat(256)}`, /consumerGroup/],
    ["consumerGroup=%00", /consumerGroup/],
  ] as const) {
    const answer = await system.client.request("GET", `/api/v1/pop/queue/q?${query}`);
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"], query);
    assert.match(answer.json.error, message);
  }
  const nothing = await system.client.request("GET", "/api/v1/pop");
  assert.equal(nothing.status, 400);
  const unknown = await system.client.request("GET", "/api/v1/pop/queue/q?xbatch=zero&later=1");
  assert.equal(unknown.status, 204, "parameters that the broker does not know are ignored");
});

test("partitions=N claims up to N lanes under one lease, and batch counts over all of them", async () => {
  const queue = newQueue();
  await readBefore(queue);
  for (const partition of ["a", "b", "c", "d"]) await system.client.push(numbered(queue, 3, partition));
  const { messages, json } = await system.client.pop(queue, { batch: 7, partitions: 3 });
  assert.equal(json.partitionsClaimed, 3);
  const claimed = [...new Set(messages.map((message) => message.partition))];
  assert.equal(claimed.length, 3);
  assert.deepEqual(
    messages.map((message) => [message.partition, message.transactionId]),
    claimed.flatMap((partition) => ids(0, 3).map((id) => [partition, id])).slice(0, 7),
    "partition after partition, each in order",
  );
  assert.deepEqual([...new Set(messages.map((message) => message.leaseId))], [json.leaseId]);
  assert.equal(new Set(messages.map((message) => message.partitionId)).size, 3);
  assert.deepEqual([json.partition, json.partitionId], [claimed[0], messages[0]!.partitionId]);
  const results = await system.client.ackMessages(messages);
  assert.ok(results.every((result) => result.success && result.leaseReleased));
  assert.deepEqual(
    results.map((result) => result.partitionName),
    messages.map((message) => message.partition),
  );
  const rest = await system.client.pop(queue, { batch: 100, partitions: 100 });
  assert.equal(rest.messages.length, 5);
});

test("lanes that a pop had no budget left for stay free for others", async () => {
  const queue = newQueue();
  const partitions = ["a", "b", "c"];
  await readBefore(queue);
  for (const partition of partitions) await system.client.push(numbered(queue, 3, partition));
  const first = await system.client.pop(queue, { batch: 2, partitions: 3 });
  assert.deepEqual([first.json.partitionsClaimed, idsOf(first.messages)], [1, ids(0, 2)]);
  const second = await system.client.pop(queue, { batch: 100, partitions: 100 });
  const others = partitions.filter((partition) => partition !== first.json.partition);
  assert.deepEqual(
    second.messages.map((message) => `${message.partition}${message.transactionId}`).sort(),
    others.flatMap((partition) => ids(0, 3).map((id) => `${partition}${id}`)),
  );
});

test("partitions=N claims several lanes also where the broker learns of them just then", async () => {
  const client = await secondBroker();
  const queue = newQueue();
  // A pop takes what is known when its turn comes: at times that is less than all, but not every time.
  const claims: number[] = [];
  for (let round = 0; round < 10 && !claims.includes(3); round++) {
    const lanes = ["a", "b", "c"].map((lane) => `${lane}${round}`);
    await system.client.push(lanes.flatMap((partition) => numbered(queue, 2, partition)));
    let left = 6;
    while (left > 0) {
      const { messages, json } = await client.pop(queue, { batch: 100, partitions: 10 });
      claims.push(json.partitionsClaimed);
      left -= messages.length;
    }
  }
  assert.ok(claims.includes(3), `claimed ${claims.join(", ")}`);
});

/** The broker has read the queue once: from then on it knows of pushes before they are answered. */
const readBefore = async (queue: string): Promise<void> => {
  await system.client.configure(queue);
  assertEmpty(await system.client.pop(queue), "no_available_partition");
};

test("autoAck: no lease, nothing to ack, each message once", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 5));
  const { messages, json } = await system.client.pop(queue, { batch: 3, autoAck: true });
  assert.equal(json.leaseId, "");
  assert.deepEqual(
    messages.map((message) => [message.transactionId, message.leaseId]),
    ids(0, 3).map((id) => [id, ""]),
  );
  assert.deepEqual(idsOf((await system.client.pop(queue, { batch: 3, autoAck: true })).messages), ids(3, 5));
  assertEmpty(await system.client.pop(queue, { autoAck: true }), "no_available_partition");
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: QUEUE_MODE, committed: 5, acked: null, leased: false },
  ]);
});

test("autoAck leaves out what was acked before, and delivers the rest", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 6));
  const { messages } = await system.client.pop(queue, { batch: 5 });
  await system.client.ackMessages([messages[1]!, messages[3]!]);
  await expireLeases(system.database, queue);
  const rest = await system.client.pop(queue, { partition: "Default", batch: 10, autoAck: true });
  assert.deepEqual(idsOf(rest.messages), ["t0", "t2", "t4", "t5"]);
  assertEmpty(await system.client.pop(queue, { partition: "Default" }), "no_available_partition");
});

test("a named partition is popped by its path and by /api/v1/pop?queue=&partition=", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 2, "a"), ...numbered(queue, 2, "b & c/ä")]);
  const byPath = await system.client.pop(queue, { partition: "b & c/ä" });
  assert.deepEqual([byPath.json.partition, idsOf(byPath.messages)], ["b & c/ä", ["t0"]]);
  const parameters = new URLSearchParams({ queue, partition: "a", batch: "2" });
  const byQuery = await system.client.request("GET", `/api/v1/pop?${parameters}`);
  assert.deepEqual([byQuery.json.partition, idsOf(byQuery.json.messages)], ["a", ids(0, 2)]);
  const any = newQueue();
  await system.client.push(numbered(any, 1, "x"));
  const wildcard = await system.client.request("GET", `/api/v1/pop?queue=${any}`);
  assert.equal(wildcard.json.messages[0].partition, "x");
});

test("a pop by namespace or task takes the queue with the highest priority that has something", async () => {
  const space = newQueue("space");
  const configure = (name: string, task: string, priority: number) =>
    system.client.request("POST", "/api/v1/configure", {
      queue: `${space}.${name}`,
      namespace: space,
      task,
      options: { priority },
    });
  await configure("low", "mail", 1);
  await configure("high", "mail", 9);
  await configure("none", "sms", 0);
  for (const name of ["low", "high", "none"]) await system.client.push(numbered(`${space}.${name}`, 1));
  const pop = (query: string) => system.client.request("GET", `/api/v1/pop?${query}`);
  const queues: string[] = [];
  for (let time = 0; time < 3; time++) queues.push((await pop(`namespace=${space}`)).json.queue);
  assert.deepEqual(queues, [`${space}.high`, `${space}.low`, `${space}.none`]);
  assert.equal((await pop(`namespace=${space}`)).status, 204);

  await system.client.push(numbered(`${space}.none`, 1, "new"));
  assert.equal((await pop(`namespace=${space}&task=mail`)).status, 204);
  assert.equal((await pop(`namespace=${space}&task=sms`)).json.queue, `${space}.none`);
  assert.equal((await pop("namespace=nobody")).status, 204);
});

test("a waiting pop by namespace gets what any of its queues gets first, and leases nothing else", async () => {
  const space = newQueue("space");
  for (const name of ["a", "b", "c"]) {
    await system.client.request("POST", "/api/v1/configure", { queue: `${space}.${name}`, namespace: space });
  }
  const waiting = system.client.request("GET", `/api/v1/pop?namespace=${space}&wait=true&timeout=10000`);
  await untilParked(3);
  await system.client.push([...numbered(`${space}.b`, 1), ...numbered(`${space}.c`, 1)]);
  const first = (await waiting).json.queue;
  const left = first === `${space}.b` ? `${space}.c` : `${space}.b`;
  const [message] = (await popWaiting(left)).messages;
  assert.equal(message!.transactionId, "t0");
});

const untilParked = (count: number): Promise<unknown> =>
  until(`${count} parked pops`, async () => {
    const { json } = await system.client.request("GET", "/metrics");
    return json.pops.parked >= count;
  });

// -------------------------------------------------------------------------------------------- empty reasons

test("Queen-Empty-Reason says why nothing came", async () => {
  const { client } = system;
  const queue = newQueue();
  assertEmpty(await client.pop(queue), "no_available_partition");
  assertEmpty(await client.pop(queue, { partition: "p" }), "partition_not_found");
  await client.push(numbered(queue, 1, "p"));
  assertEmpty(await client.pop(queue, { partition: "other" }), "partition_not_found");
  const { messages } = await client.pop(queue);
  assertEmpty(await client.pop(queue), "no_available_partition");
  assertEmpty(await client.pop(queue, { partition: "p" }), "lease_held");
  assertEmpty(await client.pop(queue, { wait: true, timeout: 50 }), "timeout");
  assertEmpty(await client.pop(queue, { partition: "p", wait: true, timeout: 50 }), "lease_held");
  await client.ackMessages(messages);
  assertEmpty(await client.pop(queue, { partition: "p" }), "no_available_partition");

  const delayed = newQueue();
  await client.configure(delayed, { delayedProcessing: 600 });
  await client.push(numbered(delayed, 1, "p"));
  assertEmpty(await client.pop(delayed, { partition: "p" }), "delayed");
  assertEmpty(await client.pop(delayed), "delayed");

  const buffered = newQueue();
  await client.configure(buffered, { windowBuffer: 600 });
  await client.push(numbered(buffered, 1, "p"));
  assertEmpty(await client.pop(buffered, { partition: "p" }), "window_buffer");
  assertEmpty(await client.pop(buffered), "window_buffer");

  const failing = newQueue();
  await client.configure(failing, { retryDelay: 600_000 });
  await client.push(numbered(failing, 1, "p"));
  await client.ackMessages((await client.pop(failing)).messages, "failed");
  assertEmpty(await client.pop(failing, { partition: "p" }), "retry_delay");
  assertEmpty(await client.pop(failing), "retry_delay");
});

// ------------------------------------------------------------------------------------ groups, lanes, fairness

test("groups are independent: each sees everything, and acks of one are nothing to another", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 4));
  const pops = await Promise.all(
    [undefined, "a", "b"].map((consumerGroup) =>
      system.client.pop(queue, { batch: 4, ...(consumerGroup ? { consumerGroup } : {}) }),
    ),
  );
  for (const { messages } of pops) assert.deepEqual(idsOf(messages), ids(0, 4));
  await system.client.ackMessages(pops[1]!.messages.slice(0, 2));
  await system.client.ackMessages(pops[2]!.messages);
  assert.deepEqual(
    (await readCursors(system.database, queue)).map((row) => [row.group, row.committed, row.leased]),
    [
      [QUEUE_MODE, 0, true],
      ["a", 2, true],
      ["b", 4, false],
    ],
  );
  const foreign = await system.client.ack(
    [{ ...pops[0]!.messages[0]!, leaseId: pops[0]!.json.leaseId }],
    "a",
  );
  assert.equal(foreign[0]!.success, true, "group a has finished t0 itself");
  assert.equal((await readCursors(system.database, queue))[0]!.committed, 0);
});

test("pops of any lane, many at once, never get the same lane", async () => {
  const queue = newQueue();
  const partitions = Array.from({ length: 20 }, (_, index) => `p${index}`);
  await system.client.push(partitions.flatMap((partition) => numbered(queue, 2, partition)));
  const pops = await Promise.all(Array.from({ length: 30 }, () => system.client.pop(queue, { batch: 2 })));
  const lanes = pops.flatMap((pop) => (pop.status === 200 ? [pop.json.partition as string] : []));
  assert.deepEqual(lanes.sort(), [...partitions].sort());
});

test("pops of any lane on two brokers at once never get the same lane", async () => {
  const client = await secondBroker();
  const queue = newQueue();
  const partitions = Array.from({ length: 20 }, (_, index) => `p${index}`);
  await system.client.push(partitions.flatMap((partition) => numbered(queue, 1, partition)));
  const pops = await Promise.all(
    Array.from({ length: 40 }, (_, index) => (index % 2 ? client : system.client).pop(queue)),
  );
  const lanes = pops.flatMap((pop) => (pop.status === 200 ? [pop.json.partition as string] : []));
  assert.equal(new Set(lanes).size, lanes.length, "no lane twice");
  // Where both tried the same lane one got nothing; what is left comes with the next pop.
  while (lanes.length < partitions.length) lanes.push((await popWaiting(queue)).json.partition);
  assert.deepEqual(lanes.sort(), [...partitions].sort());
});

test("fifty named pops on fifty lanes in flight at once all get their own", async () => {
  const queue = newQueue();
  const partitions = Array.from({ length: 50 }, (_, index) => `p${index}`);
  await system.client.push(partitions.flatMap((partition) => numbered(queue, 1, partition)));
  const pops = await Promise.all(partitions.map((partition) => system.client.pop(queue, { partition })));
  assert.deepEqual(
    pops.map((pop) => pop.json?.partition),
    partitions,
  );
});

test("many named pops on one lane: one gets it, the others are told at once", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  const pops = await Promise.all(
    Array.from({ length: 20 }, () => system.client.pop(queue, { partition: "Default" })),
  );
  assert.equal(pops.filter((pop) => pop.status === 200).length, 1);
  assert.equal(pops.filter((pop) => pop.emptyReason === "lease_held").length, 19);
});

test("the lane served last goes last", async () => {
  const queue = newQueue();
  const partitions = ["a", "b", "c", "d"];
  for (const partition of partitions) await system.client.push(numbered(queue, 5, partition));
  const served: string[] = [];
  for (let round = 0; round < 5; round++) {
    for (let time = 0; time < partitions.length; time++) {
      const { messages } = await system.client.pop(queue);
      served.push(messages[0]!.partition);
      await system.client.ackMessages(messages);
    }
  }
  const rounds = [0, 1, 2, 3, 4].map((round) => served.slice(round * 4, round * 4 + 4).sort());
  assert.deepEqual(rounds, Array(5).fill(partitions));
});

test("a busy lane that is filled again and again does not keep the others from being served", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1, "busy"));
  await system.client.push(numbered(queue, 1, "quiet"));
  const served: string[] = [];
  for (let turn = 1; turn <= 4; turn++) {
    await system.client.push(numbered(queue, 1, "busy", turn));
    const { messages } = await system.client.pop(queue);
    served.push(messages[0]!.partition);
    await system.client.ackMessages(messages);
  }
  assert.ok(served.slice(0, 2).includes("quiet"), `served ${served.join(", ")}`);
});

test("delayed, failed and leased lanes block nobody", async () => {
  const { client } = system;
  const queue = newQueue();
  await client.configure(queue, { retryDelay: 600_000 });
  await client.push(numbered(queue, 1, "failed"));
  await client.ackMessages((await client.pop(queue)).messages, "failed");
  await client.push(numbered(queue, 1, "leased"));
  assert.equal((await client.pop(queue)).json.partition, "leased");
  await client.push(numbered(queue, 1, "good"));
  const { messages } = await client.pop(queue, { partitions: 1 });
  assert.equal(messages[0]!.partition, "good");

  // A lane whose messages are not due yet does not count as a claim of another one.
  const delayed = newQueue();
  for (const partition of ["old", "young"]) await client.push(numbered(delayed, 1, partition));
  await client.configure(delayed, { delayedProcessing: 3_600 });
  await system.database.query(
    `update queen.segments s set created_at = s.created_at - interval '2 hours' from queen.partitions p
       join queen.queues q on q.id = p.queue_id
      where s.partition_id = p.id and p.name = 'old' and q.name = $1`,
    [delayed],
  );
  const due = await client.pop(delayed, { partitions: 1, batch: 10 });
  assert.deepEqual(
    due.messages.map((message) => message.partition),
    ["old"],
  );
});

// ------------------------------------------------------------------------------------------- other brokers

test("a pop on a second broker finds what was pushed just before on the first, without waiting", async () => {
  const client = await secondBroker();
  for (let time = 0; time < 10; time++) {
    const queue = newQueue();
    await system.client.push(numbered(queue, 1));
    assert.deepEqual(idsOf((await client.pop(queue)).messages), ["t0"], "a queue it never saw");
    await system.client.push(numbered(queue, 1, "new"));
    assert.deepEqual(
      (await client.pop(queue)).messages.map((message) => message.partition),
      ["new"],
    );
    await system.client.push(numbered(queue, 1, "new2"));
    assert.equal((await client.pop(queue, { partition: "new2" })).status, 200);
  }
});

test("with the bus off, a pop on a second broker still finds what was pushed just before", async () => {
  const { client } = await system.another({ QUEEN_BUS: "off" });
  const queue = newQueue();
  for (let time = 0; time < 10; time++) {
    await system.client.push(numbered(queue, 1, `p${time}`));
    assert.deepEqual(
      (await client.pop(queue)).messages.map((message) => message.partition),
      [`p${time}`],
    );
  }
});

test("acks on a broker that did not serve the pop count, and its lane goes on there and here", async () => {
  const client = await secondBroker();
  const queue = newQueue();
  await system.client.push(numbered(queue, 6));
  const { messages } = await system.client.pop(queue, { batch: 3 });
  const results = await client.ackMessages([messages[2]!, messages[0]!]);
  assert.deepEqual(
    results.map((result) => [result.success, result.leaseReleased]),
    [
      [true, false],
      [true, false],
    ],
  );
  const last = await client.ackMessages([messages[1]!]);
  assert.deepEqual([last[0]!.success, last[0]!.leaseReleased], [true, true]);
  assert.deepEqual(idsOf((await popWaiting(queue, { batch: 2 })).messages), ids(3, 5));
});

test("an ack on another broker with a replaced lease is refused", async () => {
  const client = await secondBroker();
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const first = await system.client.pop(queue);
  await expireLeases(system.database, queue);
  const second = await client.pop(queue, { partition: "Default" });
  for (const each of [system.client, client]) {
    const [result] = await each.ackMessages(first.messages);
    assert.deepEqual([result!.success, result!.error], [false, "Invalid or expired lease"]);
  }
  assert.equal((await system.client.ackMessages(second.messages))[0]!.success, true);
});

// ---------------------------------------------------------------------------------- queues that are deleted

const deleteByRoute = async (queue: string): Promise<void> => {
  const answer = await system.client.request(
    "DELETE",
    `/api/v1/resources/queues/${encodeURIComponent(queue)}`,
  );
  assert.deepEqual([answer.status, answer.json], [200, { deleted: true, queue, existed: true }]);
};
const deleteBySql = async (queue: string): Promise<void> => {
  await system.database.query("delete from queen.queues where name like $1 || '%'", [queue]);
};

for (const [how, deleteQueue] of [
  ["by its route", deleteByRoute],
  ["by SQL", deleteBySql],
] as const) {
  test(`a queue deleted ${how} is gone whole, and pushes and pops go on with a new one`, async () => {
    const { client, database } = system;
    const queue = newQueue("gone");
    for (let life = 0; life < 3; life++) {
      await client.push([...numbered(queue, 3), ...numbered(queue, 2, "p")]);
      const { messages } = await client.pop(queue, { partition: "Default", batch: 2 });
      assert.deepEqual(idsOf(messages), ids(0, 2), "the same transactionIds are new in each life");
      await client.ackMessages(messages.slice(0, 1));
      await client.ackMessages(messages.slice(1), "dlq");
      await deleteQueue(queue);
      const [left] = await database.query(
        `select (select count(*) from queen.segments s
                  where not exists (select 1 from queen.partitions p where p.id = s.partition_id)) as segments,
                (select count(*) from queen.partition_consumers c
                  where not exists (select 1 from queen.partitions p where p.id = c.partition_id)) as cursors,
                (select count(*) from queen.dead_letters d
                  where not exists (select 1 from queen.queues q where q.id = d.queue_id)) as letters`,
      );
      assert.deepEqual(left, { segments: 0, cursors: 0, letters: 0 });
      const [result] = await client.ackMessages(messages.slice(1));
      assert.equal(result!.success, false);
    }
    assertEmpty(await client.pop(queue), "no_available_partition");
    await client.push(numbered(queue, 2));
    assert.deepEqual(dataOf((await client.pop(queue, { batch: 5 })).messages), [0, 1]);
  });
}

test("pops that wait while their queue is deleted by SQL and pushed to anew get the new messages", async () => {
  const { client } = system;
  const queue = newQueue("waiting");
  await client.push(numbered(queue, 1));
  await client.ackMessages((await client.pop(queue)).messages);
  const any = client.pop(queue, { wait: true, timeout: 10_000 });
  const named = client.pop(queue, { wait: true, timeout: 10_000, partition: "Default", consumerGroup: "g" });
  await untilParked(1);
  await deleteBySql(queue);
  await client.push(numbered(queue, 1));
  assert.deepEqual(idsOf((await any).messages), ["t0"]);
  assert.deepEqual(idsOf((await named).messages), ["t0"]);
});

test("a queue deleted by SQL is noticed by another broker that has it in memory", async () => {
  const client = await secondBroker();
  const queue = newQueue("noticed");
  await system.client.push(numbered(queue, 2));
  await client.push(numbered(queue, 2, "p"));
  assert.equal((await client.pop(queue, { batch: 10 })).status, 200);
  await deleteBySql(queue);
  await system.client.push(numbered(queue, 1));
  await client.push(numbered(queue, 1, "p"));
  const lanes = [await client.pop(queue), await client.pop(queue)].map((pop) => pop.json?.partition);
  assert.deepEqual(lanes.sort(), ["Default", "p"]);
});

test("a group that begins now waits for whoever is deleting its queue, and is recorded then", async () => {
  const queue = newQueue("leaving");
  const begins = { consumerGroup: "late", subscriptionMode: "new" } as const;
  await system.client.push(numbered(queue, 1));
  const transaction = await system.database.client();
  await transaction.query("begin");
  await transaction.query("delete from queen.queues where name = $1", [queue]);
  const first = system.client.pop(queue, begins);
  const attempts = new Set<string>(); // each of one query waits for the lock 50 ms; a query that gives up has three
  await until("more attempts than one query has", async () => {
    const waiting = await system.database.query(
      `select query_start::text from pg_stat_activity where wait_event_type = 'Lock' and query like '%try_open_groups%'`,
    );
    for (const { query_start } of waiting) attempts.add(query_start as string);
    return attempts.size > 3;
  });
  await transaction.query("commit");
  await transaction.end();
  assert.equal((await first).status, 204);
  await system.client.push(numbered(queue, 1, "Default", 7));
  assert.deepEqual(idsOf((await system.client.pop(queue, begins)).messages), ["t7"]);
});

test("a queue that is being deleted holds up no group of another queue", async () => {
  const held = newQueue("held");
  const free = newQueue("free");
  await system.client.push([...numbered(held, 1), ...numbered(free, 1)]);
  const transaction = await system.database.client();
  await transaction.query("begin");
  await transaction.query("delete from queen.queues where name = $1", [held]);
  // All at once, so that the groups are looked for together.
  const [nothing, ...pops] = await Promise.all([
    system.client.pop(held, { consumerGroup: "g" }),
    ...Array.from({ length: 20 }, (_, index) => system.client.pop(free, { consumerGroup: `g${index}` })),
  ]);
  await transaction.query("rollback");
  await transaction.end();
  assert.equal(nothing.status, 204);
  for (const pop of pops) assert.deepEqual(idsOf(pop.messages), ["t0"]);
  assert.deepEqual(idsOf((await system.client.pop(held, { consumerGroup: "g" })).messages), ["t0"]);
});

test("a queue deleted by SQL again and again under load fails no request and ends no worker", async () => {
  const { client, broker } = system;
  const workers = broker.workerPids();
  const queue = newQueue("storm");
  const statuses = new Map<string, number>();
  let deletions = 0;
  let next = 0;
  const note = (what: string, answer: HttpAnswer): void => {
    const key = `${what} ${answer.status}${answer.status >= 400 ? ` ${answer.text}` : ""}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
  };
  const repeat = async (step: () => Promise<void>): Promise<void> => {
    while (deletions < 50) await step();
  };
  const push = async (): Promise<void> => {
    next++;
    note(
      "push",
      await client.request("POST", "/api/v1/push", { items: numbered(queue, 1, `p${next % 9}`, next) }),
    );
  };
  const transaction = async (): Promise<void> => {
    next++;
    note("transaction", await client.transaction([{ type: "push", queue, partition: `p${next % 3}` }]));
  };
  const pop = (query: PopQuery) => async (): Promise<void> => {
    const answer = await client.pop(queue, { timeout: 50, ...query });
    note("pop", answer);
    const { consumerGroup } = query;
    const acknowledgments = answer.messages.map(({ transactionId, partitionId, leaseId }) => ({
      transactionId,
      partitionId,
      leaseId,
    }));
    const body = { acknowledgments, ...(consumerGroup ? { consumerGroup } : {}) };
    note("ack", await client.request("POST", "/api/v1/ack/batch", body));
  };
  const remove = async (): Promise<void> => {
    await sleep(30); // long enough for messages to arrive, too short for caches to learn of the deletion before
    await deleteBySql(queue);
    deletions++;
  };
  await Promise.all([
    ...[push, push, push, push, transaction, transaction, remove].map(repeat),
    ...[
      {},
      { wait: true },
      { consumerGroup: "g" },
      { consumerGroup: "g", wait: true },
      { partition: "p1" },
    ].map((query) => repeat(pop(query))),
    repeat(pop({ consumerGroup: "new", subscriptionMode: "new", wait: true })),
    repeat(pop({ partition: "p2", wait: true, partitions: 3, consumerGroup: "h" })),
  ]);
  const errors = broker
    .output()
    .split("\n")
    .filter((line) => line.includes('"level":"error"'));
  assert.deepEqual(errors, []);
  const allowed = ["ack 200", "pop 200", "pop 204", "push 201", "transaction 200"];
  assert.deepEqual(
    [...statuses.keys()].filter((key) => !allowed.includes(key)),
    [],
  );
  assert.deepEqual(broker.workerPids(), workers);
});

test("a group's first pop gets as many lanes as it asks for, whatever the broker has heard of", async () => {
  for (let round = 0; round < 20; round += 1) {
    const queue = newQueue();
    for (const lane of ["a", "b", "c"]) await system.client.push(numbered(queue, 1, lane));
    const { messages } = await system.client.pop(queue, { batch: 10, partitions: 3 });
    assert.deepEqual(messages.map(({ partition }) => partition).sort(), ["a", "b", "c"]);
  }
});

// --------------------------------------------------------------------------------------------------- bytes

// So many messages of a megabyte: their names and times take room, too.
const FITTING = POP_BYTES_MAX / 1024 ** 2 - 1;

test("a pop answers as many messages as fit, whatever it asks for, and the next one goes on behind them", async () => {
  const queue = newQueue();
  const payload = "x".repeat(1024 ** 2);
  for (let part = 0; part < 3; part += 1) {
    await system.client.push(numbered(queue, 8, "p", 8 * part).map((item) => ({ ...item, payload })));
  }
  const first = await system.client.pop(queue, { batch: 10_000 });
  assert.deepEqual(idsOf(first.messages), ids(0, FITTING));
  await system.client.ackMessages(first.messages);
  const second = await system.client.pop(queue, { batch: 10_000 });
  assert.deepEqual(idsOf(second.messages), ids(FITTING, 24));
  await system.client.ackMessages(second.messages, "dlq");
  const list = `/api/v1/dlq?queue=${queue}&limit=1000`;
  const letters = (await system.client.request("GET", list)).json;
  assert.deepEqual([letters.messages.length, letters.nextPage], [24 - FITTING, null]);

  const other = newQueue();
  const lanes = Array.from({ length: 4 }, (_, lane) => numbered(other, 10, `p${lane}`, 10 * lane));
  for (const items of lanes) await system.client.push(items.map((item) => ({ ...item, payload })));
  const pops = await Promise.all(lanes.map(() => popWaiting(other, { partitions: 1, autoAck: true })));
  const got = pops.flatMap(({ messages }) => idsOf(messages));
  assert.ok(
    pops.every(({ messages }) => messages.length > 0),
    "pops that do not fit into one call are served in part, or one after the other",
  );
  // Which of them share a call, and so the bytes of one, is chance.
  for (;;) {
    const { messages } = await system.client.pop(other, { batch: 10_000, autoAck: true });
    if (messages.length === 0) break;
    got.push(...idsOf(messages));
  }
  for (const [lane] of lanes.entries()) {
    const own = ids(10 * lane, 10 * lane + 10);
    assert.deepEqual(
      got.filter((id) => own.includes(id)),
      own,
    );
  }
});

test("a page of dead letters has as many as fit, and says how to go on", async () => {
  const queue = newQueue();
  const payload = "x".repeat(1024 ** 2);
  for (let part = 0; part < 3; part += 1) {
    await system.client.push(numbered(queue, 8, "p", 8 * part).map((item) => ({ ...item, payload })));
    const { messages } = await system.client.pop(queue, { batch: 8 });
    await system.client.ackMessages(messages, "dlq");
  }
  const list = `/api/v1/dlq?queue=${queue}&limit=1000`;
  const first = (await system.client.request("GET", list)).json;
  assert.deepEqual([first.messages.length, first.total], [FITTING, 24]);
  const second = (await system.client.request("GET", `${list}&page=${first.nextPage}`)).json;
  assert.deepEqual([second.messages.length, second.nextPage], [24 - FITTING, null]);
});
