/** Transactions over HTTP (P6): pushes and acks commit together or not at all. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer, PoppedMessage } from "../support/http.ts";
import {
  countMessages,
  dataOf,
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

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const ackOf = (
  { transactionId, partitionId, leaseId }: PoppedMessage,
  more: Record<string, unknown> = {},
) => ({
  type: "ack",
  transactionId,
  partitionId,
  leaseId,
  ...more,
});
const pushTo = (queue: string, item: Record<string, unknown> = {}) => ({
  type: "push",
  items: [{ queue, ...item }],
});

/** A queue with so many messages, all popped. */
async function popped(
  count: number,
  query = {},
): Promise<{ queue: string; messages: readonly PoppedMessage[] }> {
  const queue = newQueue("source");
  await system.client.push(numbered(queue, count));
  const { messages } = await system.client.pop(queue, { batch: count, ...query });
  assert.equal(messages.length, count);
  return { queue, messages };
}

function assertCommitted(answer: HttpAnswer): void {
  assert.deepEqual([answer.status, answer.json.success], [200, true], answer.text);
  assert.match(answer.json.transactionId, UUID);
}

function assertRefused(answer: HttpAnswer, operations: number, message: RegExp): void {
  assert.deepEqual(
    [answer.status, answer.json.success, answer.json.code],
    [409, false, "CONFLICT"],
    answer.text,
  );
  assert.match(answer.json.error, message);
  assert.deepEqual(
    answer.json.results.map((result: { success: boolean }) => result.success),
    Array(operations).fill(false),
  );
}

/** So many calls were made to the database for transactions. */
const transactionCalls = async (): Promise<number> =>
  (await system.client.request("GET", "/metrics")).json.sidecar.operations.transaction.batches;

test("transaction: ack and push commit together, with a result for each", async () => {
  const { queue, messages } = await popped(2);
  const sink = newQueue("sink");
  const answer = await system.client.transaction([
    ackOf(messages[0]!),
    pushTo(sink, { partition: "p", payload: { n: 1 }, transactionId: "out-1" }),
    ackOf(messages[1]!),
  ]);
  assertCommitted(answer);
  const [first, second, third] = answer.json.results;
  assert.deepEqual(first, {
    index: 0,
    type: "ack",
    success: true,
    transactionId: "t0",
    error: null,
    dlq: false,
  });
  assert.match(second.messageId, UUID);
  assert.match(second.partitionId, UUID);
  const { messageId, partitionId, ...rest } = second;
  assert.deepEqual(rest, {
    index: 1,
    type: "push",
    success: true,
    status: "queued",
    transactionId: "out-1",
    queueName: sink,
  });
  assert.equal(third.transactionId, "t1");
  const [out] = (await system.client.pop(sink)).messages;
  assert.deepEqual(
    [out!.id, out!.partitionId, out!.partition, out!.data],
    [messageId, partitionId, "p", { n: 1 }],
  );
  assert.equal((await system.client.pop(queue)).status, 204);
});

test("transaction: one lost lease rolls everything back, over all queues, partitions and groups", async () => {
  const good = await popped(2);
  const grouped = await popped(1, { consumerGroup: "g" });
  const lost = await popped(1);
  await expireLeases(system.database, lost.queue);
  const next = await system.client.pop(lost.queue, { partition: "Default" });
  const sink = newQueue("sink");
  const operations = [
    pushTo(sink, { partition: "a" }),
    ackOf(good.messages[0]!),
    ackOf(grouped.messages[0]!, { consumerGroup: "g" }),
    pushTo(sink, { partition: "b" }),
    ackOf(lost.messages[0]!),
    ackOf(good.messages[1]!, { status: "dlq" }),
  ];
  const places = async () =>
    (await Promise.all([good, grouped, lost].map(({ queue }) => readCursors(system.database, queue)))).flat();
  const before = await places();
  const refused = await system.client.transaction(operations);
  assertRefused(refused, operations.length, /^ACK operation failed: Invalid or expired lease$/);
  assert.deepEqual(
    refused.json.results.map((result: { index: number; type: string }) => [result.index, result.type]),
    operations.map((operation, index) => [index, operation.type]),
  );
  assert.equal(await countMessages(system.database, sink), 0);
  assert.deepEqual(await places(), before);
  assert.equal((await system.client.pop(sink)).status, 204);

  const repaired = operations.map((operation, index) => (index === 4 ? ackOf(next.messages[0]!) : operation));
  assertCommitted(await system.client.transaction(repaired));
  assert.deepEqual(
    (await places()).map((row) => [row.committed, row.leased]),
    [
      [2, false],
      [1, false],
      [1, false],
    ],
  );
  assert.equal(await countMessages(system.database, sink), 2);
  const dlq = await system.client.request("GET", `/api/v1/dlq?queue=${good.queue}`);
  assert.equal(dlq.json.total, 1);
});

test("transaction: a lease lost between the look at it and the commit rolls back too", async () => {
  const { queue, messages } = await popped(1);
  const sink = newQueue("sink");
  await system.client.push(numbered(sink, 1));
  // Another transaction holds the sink, so that the broker's waits with the lease that it has seen.
  const client = await system.database.client();
  await client.query("begin");
  await client.query(
    `select 1 from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 for update`,
    [sink],
  );
  const running = system.client.transaction([ackOf(messages[0]!), pushTo(sink)]);
  await expireLeases(system.database, queue);
  await system.client.pop(queue, { partition: "Default" });
  await client.query("commit");
  assertRefused(await running, 2, /Invalid or expired lease/);
  assert.equal(await countMessages(system.database, sink), 1);
});

test("transaction: several queues and partitions, order inside each as given", async () => {
  const [a, b] = [newQueue("a"), newQueue("b")];
  const items = Array.from({ length: 20 }, (_, index) => ({
    queue: index % 2 ? a : b,
    partition: `p${index % 3}`,
    payload: index,
  }));
  const answer = await system.client.transaction([
    { type: "push", items: items.slice(0, 15) },
    { type: "push", items: items.slice(15) },
  ]);
  assertCommitted(answer);
  assert.deepEqual(
    answer.json.results.map((result: { index: number; queueName: string }) => [
      result.index,
      result.queueName,
    ]),
    items.map((item, index) => [index, item.queue]),
  );
  for (const queue of [a, b]) {
    for (const partition of ["p0", "p1", "p2"]) {
      const { messages } = await system.client.pop(queue, { partition, batch: 100 });
      assert.deepEqual(
        dataOf(messages),
        items
          .filter((item) => item.queue === queue && item.partition === partition)
          .map((item) => item.payload),
      );
    }
  }
});

test("transaction: requiredLeases must be held, also of lanes that it does not ack", async () => {
  const mine = await popped(1);
  const other = await popped(1);
  const lease = other.messages[0]!.leaseId;
  const sink = newQueue("sink");
  assertCommitted(await system.client.transaction([pushTo(sink)], [lease]));
  await system.client.ackMessages(other.messages);
  assertRefused(
    await system.client.transaction([ackOf(mine.messages[0]!), pushTo(sink)], [lease]),
    2,
    /Invalid or expired lease/,
  );
  assertRefused(await system.client.transaction([pushTo(sink)], ["no-lease"]), 1, /Invalid or expired lease/);
  assert.equal(await countMessages(system.database, sink), 1);
  assert.equal((await readCursors(system.database, mine.queue))[0]!.committed, 0);
});

test("transaction: an ack without a lease of its own is checked against requiredLeases", async () => {
  const { queue, messages } = await popped(1);
  await expireLeases(system.database, queue);
  const next = await system.client.pop(queue, { partition: "Default" });
  const operation = ackOf(messages[0]!, { leaseId: undefined });
  const stale = await system.client.transaction([operation, pushTo(newQueue())], [messages[0]!.leaseId]);
  assertRefused(stale, 2, /Invalid or expired lease/);
  assertCommitted(await system.client.transaction([operation], [next.messages[0]!.leaseId]));
});

test("transaction: acks without leaseId count while the messages are leased, and else refuse", async () => {
  const { queue, messages } = await popped(2);
  const sink = newQueue("sink");
  const free = { leaseId: undefined };
  assertCommitted(await system.client.transaction([ackOf(messages[0]!, free), pushTo(sink)]));
  await system.client.ackMessages([messages[1]!], "retry");
  assertRefused(
    await system.client.transaction([ackOf(messages[1]!, free), pushTo(sink)]),
    2,
    /^ACK operation failed: Invalid or expired lease$/,
  );
  const unknown = { ...messages[1]!, transactionId: "never" };
  assertRefused(
    await system.client.transaction([ackOf(unknown, free), pushTo(sink)]),
    2,
    /^ACK operation failed: Message not found$/,
  );
  assert.equal(await countMessages(system.database, sink), 1);
  assert.deepEqual(idsOf((await system.client.pop(queue)).messages), ["t1"]);
});

test("transaction: a push that repeats a transactionId is a duplicate, and the rest commits", async () => {
  const { queue, messages } = await popped(1);
  const sink = newQueue("sink");
  const [stored] = await system.client.push(numbered(sink, 1));
  const answer = await system.client.transaction([
    {
      type: "push",
      items: [
        { queue: sink, transactionId: "t0", payload: "again" },
        { queue: sink, transactionId: "t1", payload: 1 },
        { queue: sink, transactionId: "t1", payload: "twice" },
        { queue: sink, partition: "other", transactionId: "t0", payload: 2 },
      ],
    },
    ackOf(messages[0]!),
  ]);
  assertCommitted(answer);
  const results = answer.json.results.slice(0, 4);
  assert.deepEqual(
    results.map((result: { status: string }) => result.status),
    ["duplicate", "queued", "duplicate", "queued"],
  );
  assert.equal(results[0].messageId, stored!.message_id);
  assert.equal(results[2].messageId, results[1].messageId);
  assert.deepEqual(
    dataOf((await system.client.pop(sink, { partition: "Default", batch: 10 })).messages),
    [0, 1],
  );
  assert.equal((await system.client.pop(queue)).status, 204);
});

test("transaction: failed acks count retries like acks of their own", async () => {
  const queue = newQueue("source");
  await system.client.configure(queue, { retryLimit: 1, retryDelay: 0 });
  await system.client.push(numbered(queue, 2));
  const seen: boolean[] = [];
  for (let attempt = 0; attempt < 2; attempt++) {
    const { messages } = await system.client.pop(queue, { batch: 2 });
    assert.deepEqual(idsOf(messages), ids(0, 2));
    const answer = await system.client.transaction([
      ackOf(messages[0]!, { status: "failed", error: `attempt ${attempt}` }),
      pushTo("log", { payload: attempt }),
    ]);
    assertCommitted(answer);
    seen.push(answer.json.results[0].dlq);
    if (attempt === 1) await system.client.ackMessages(messages.slice(1));
  }
  assert.deepEqual(seen, [false, true]);
  const { json } = await system.client.request("GET", `/api/v1/dlq?queue=${queue}`);
  assert.deepEqual(
    json.messages.map((letter: { errorMessage: string; retryCount: number }) => [
      letter.errorMessage,
      letter.retryCount,
    ]),
    [["attempt 1", 1]],
  );
  assert.equal((await system.client.pop(queue)).status, 204);
});

test("transaction: the replay of a committed one with explicit transactionIds is a success", async () => {
  const { queue, messages } = await popped(2);
  const sink = newQueue("sink");
  const operations = [
    ackOf(messages[0]!),
    ackOf(messages[1]!),
    pushTo(sink, { transactionId: "out-1" }),
    pushTo(sink, { transactionId: "out-2", partition: "p" }),
  ];
  const lease = [messages[0]!.leaseId];
  const first = await system.client.transaction(operations, lease);
  assertCommitted(first);
  const second = await system.client.transaction(operations, lease);
  assertCommitted(second);
  const idsIn = (answer: HttpAnswer) =>
    answer.json.results.map((result: { messageId?: string }) => result.messageId);
  assert.deepEqual(idsIn(second), idsIn(first));
  assert.deepEqual(
    second.json.results.slice(2).map((result: { status: string }) => result.status),
    ["duplicate", "duplicate"],
  );
  assert.equal(await countMessages(system.database, sink), 2);

  // The same acks with a push that is new are no replay: the messages were finished by somebody else.
  const other = await system.client.transaction([
    ackOf(messages[0]!),
    pushTo(sink, { transactionId: "out-3" }),
  ]);
  assertRefused(other, 2, /already acknowledged/);
  assert.equal(await countMessages(system.database, sink), 2);
  assert.equal((await system.client.pop(queue)).status, 204);
});

test("transaction: the same one sent many times at once commits once", async () => {
  const { messages } = await popped(1);
  const sink = newQueue("sink");
  const operations = [ackOf(messages[0]!), pushTo(sink, { transactionId: "out" })];
  const answers = await Promise.all(Array.from({ length: 10 }, () => system.client.transaction(operations)));
  for (const answer of answers) assertCommitted(answer);
  assert.equal(await countMessages(system.database, sink), 1);
});

test("transaction: of many that ack the same message and push something of their own, one commits", async () => {
  const { messages } = await popped(1);
  const sink = newQueue("sink");
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => system.client.transaction([ackOf(messages[0]!), pushTo(sink)])),
  );
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, ...Array(9).fill(409)]);
  assert.equal(await countMessages(system.database, sink), 1);
});

test("transaction: of many that go together, those with a lost lease keep nothing and the others everything", async () => {
  const sink = newQueue("sink");
  const sources = await Promise.all(Array.from({ length: 24 }, () => popped(2)));
  const lost = sources.filter((_, index) => index % 3 === 0);
  // Another broker gave the leases to somebody else, which this one does not know.
  const stolen = await system.database.query(
    `update queen.partition_consumers c set lease_token = c.lease_token + 1
       from queen.partitions p join queen.queues q on q.id = p.queue_id
      where p.id = c.partition_id and q.name = any ($1) returning 1`,
    [lost.map(({ queue }) => queue)],
  );
  assert.equal(stolen.length, lost.length);
  const before = await transactionCalls();
  const answers = await Promise.all(
    sources.map(({ queue, messages }) =>
      system.client.transaction([
        ...messages.map((message) => ackOf(message)),
        pushTo(sink, { partition: queue, payload: queue }),
      ]),
    ),
  );
  for (const [index, answer] of answers.entries()) {
    if (lost.includes(sources[index]!)) assertRefused(answer, 3, /Invalid or expired lease/);
    else assertCommitted(answer);
  }
  const { messages } = await system.client.pop(sink, { batch: 100, partitions: 100 });
  const kept = sources.filter((source) => !lost.includes(source)).map(({ queue }) => queue);
  assert.deepEqual(dataOf(messages).sort(), kept.sort());
  const calls = (await transactionCalls()) - before;
  assert.ok(calls < sources.length, `${calls} calls for ${sources.length} transactions`);
});

test("transaction: many that push to one lane go together, and one that repeats a transactionId is a duplicate", async () => {
  const sink = newQueue("sink");
  const sources = await Promise.all(Array.from({ length: 30 }, () => popped(1)));
  await system.client.push([{ queue: sink, transactionId: "first" }]);
  const before = await transactionCalls();
  const answers = await Promise.all(
    sources.map(({ messages }, index) =>
      system.client.transaction([
        ackOf(messages[0]!),
        pushTo(sink, { transactionId: index % 10 === 0 ? "same" : `t${index}` }),
      ]),
    ),
  );
  const calls = (await transactionCalls()) - before;
  assert.ok(calls < sources.length / 2, `${calls} calls for ${sources.length} transactions`);
  for (const answer of answers) assertCommitted(answer);
  const pushes = answers.map((answer) => answer.json.results[1]);
  assert.deepEqual(
    pushes.filter((push) => push.status === "duplicate").map((push) => push.transactionId),
    ["same", "same"],
  );
  assert.equal(new Set(pushes.map((push) => push.messageId)).size, 28);
  const { messages } = await system.client.pop(sink, { batch: 100 });
  const byId = new Map(messages.map((message) => [message.id, message.transactionId]));
  for (const push of pushes) assert.equal(byId.get(push.messageId), push.transactionId);
  assert.deepEqual(
    idsOf(messages).sort(),
    ["first", "same", ...pushes.map((push) => push.transactionId).filter((id) => id !== "same")].sort(),
  );
});

test("transaction: a pipeline of many workers moves every message exactly once, in order per lane", async () => {
  const source = newQueue("source");
  const sink = newQueue("sink");
  await system.client.configure(source, { leaseTime: 30 });
  const lanes = ["a", "b", "c"];
  for (const lane of lanes) await system.client.push(numbered(source, 60, lane));
  let moved = 0;
  const work = async (): Promise<void> => {
    while (moved < 180) {
      const { messages } = await system.client.pop(source, { batch: 7, wait: true, timeout: 200 });
      if (messages.length === 0) continue;
      const answer = await system.client.transaction([
        ...messages.map((message) => ackOf(message)),
        {
          type: "push",
          items: messages.map(({ partition, data }) => ({ queue: sink, partition, payload: data })),
        },
      ]);
      assertCommitted(answer);
      moved += messages.length;
    }
  };
  await Promise.all(Array.from({ length: 6 }, work));
  for (const partition of lanes) {
    const { messages } = await system.client.pop(sink, { partition, batch: 1_000 });
    assert.deepEqual(
      dataOf(messages),
      Array.from({ length: 60 }, (_, index) => index),
    );
  }
});

test("transaction: pushes and transactions on one lane, side by side, keep its offsets whole", async () => {
  const queue = newQueue("mixed");
  await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      index % 2
        ? system.client.push([{ queue, payload: index }])
        : system.client.transaction([pushTo(queue)]),
    ),
  );
  const rows = await system.database.query(
    `select array_agg(m.message_offset order by m.message_offset) as offsets from queen.messages m
       join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id where q.name = $1`,
    [queue],
  );
  assert.deepEqual(
    rows[0]!.offsets,
    Array.from({ length: 40 }, (_, index) => index),
  );
});

test("transaction: a push in flat form, and its payload's default", async () => {
  const queue = newQueue();
  const answer = await system.client.transaction([
    { type: "push", queue, payload: { flat: true }, transactionId: "flat" },
    { type: "push", items: [{ queue }] },
    { type: "push", items: [{ queue, payload: null }] },
    { type: "push", items: [] },
  ]);
  assertCommitted(answer);
  assert.equal(answer.json.results.length, 3);
  const { messages } = await system.client.pop(queue, { batch: 10 });
  assert.deepEqual(dataOf(messages), [{ flat: true }, {}, null]);
  assert.equal(messages[0]!.transactionId, "flat");
});

test("transaction: what is pushed wakes a waiting pop, and a freed lane goes on", async () => {
  const { queue, messages } = await popped(1);
  const sink = newQueue("sink");
  const waiting = system.client.pop(sink, { wait: true, timeout: 10_000 });
  const next = system.client.pop(queue, { wait: true, timeout: 10_000 });
  await system.client.push(numbered(queue, 1, undefined, 1));
  assertCommitted(await system.client.transaction([pushTo(sink, { payload: 7 }), ackOf(messages[0]!)]));
  assert.deepEqual(dataOf((await waiting).messages), [7]);
  assert.deepEqual(idsOf((await next).messages), ["t1"]);
});

test("transaction: bad ones are refused with the operation and the field, and nothing is stored", async () => {
  const queue = newQueue("bad");
  const { messages } = await popped(1);
  const ack = ackOf(messages[0]!);
  const cases: [unknown, RegExp][] = [
    [{}, /^operations array required$/],
    [[], /^operations array required$/],
    [{ operations: {} }, /^operations array required$/],
    [{ operations: [] }, /^operations array cannot be empty$/],
    [{ operations: [pushTo(queue), 5] }, /operations\[1\]/],
    [{ operations: [pushTo(queue), { type: "pop" }] }, /operations\[1\].*Unknown operation type: pop/],
    [{ operations: [pushTo(queue), {}] }, /operations\[1\].*Unknown operation type/],
    [{ operations: [pushTo(queue), { type: "push", items: {} }] }, /operations\[1\]\.items/],
    [
      { operations: [pushTo(queue), pushTo(queue, { partition: 5 })] },
      /operations\[1\]\.items\[0\]\.partition/,
    ],
    [
      { operations: [pushTo(queue), { type: "push", payload: 1 }] },
      /operations\[1\].*[qQ]ueue must be a string/,
    ],
    [{ operations: [pushTo(queue), pushTo(queue, { traceId: "x" })] }, /operations\[1\].*traceId.*UUID/],
    [{ operations: [pushTo(queue), { ...ack, transactionId: 1 }] }, /operations\[1\]\.transactionId/],
    [{ operations: [pushTo(queue), { ...ack, partitionId: "x" }] }, /operations\[1\]\.partitionId/],
    [{ operations: [pushTo(queue)], requiredLeases: "x" }, /requiredLeases/],
    [{ operations: [pushTo(queue)], requiredLeases: [5] }, /requiredLeases/],
  ];
  for (const [body, message] of cases) {
    const answer = await system.client.request("POST", "/api/v1/transaction", body as object);
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"], answer.text);
    assert.match(answer.json.error, message);
  }
  const unknownStatus = await system.client.transaction([pushTo(queue), { ...ack, status: "done" }]);
  assert.ok([400, 409].includes(unknownStatus.status), unknownStatus.text);
  assert.match(unknownStatus.json.error, /status.*done/);
  for (const text of ["", "{", '{"operations":[{"type":"push","items":[}]}']) {
    const answer = await system.client.request("POST", "/api/v1/transaction", text);
    assert.deepEqual([answer.status, answer.json?.code], [400, "INVALID_JSON"], answer.text);
  }
  assert.equal(await countMessages(system.database, queue), 0);
  assert.equal(
    (await system.database.query("select 1 from queen.queues where name = $1", [queue])).length,
    0,
  );
});
