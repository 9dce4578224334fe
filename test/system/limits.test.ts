/** ttl and maxSize over HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import {
  countMessages,
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
after(() => system.stop());

const push = (items: readonly unknown[]): Promise<HttpAnswer> =>
  system.client.request("POST", "/api/v1/push", { items });

async function age(queue: string, seconds: number): Promise<void> {
  await system.database.query(
    `with lanes as (update queen.partitions p set last_at = last_at - $2 * interval '1 second'
                      from queen.queues q where q.id = p.queue_id and q.name = $1 returning p.id)
     update queen.segments s set created_at = created_at - $2 * interval '1 second' from lanes l
      where s.partition_id = l.id`,
    [queue, seconds],
  );
}

// -------------------------------------------------------------------------------------------------- ttl

test("ttl is shown as 3600 where nobody said it, and then nothing expires", async () => {
  const { client } = system;
  const queue = newQueue();
  const configured = await client.configure(queue, { leaseTime: 10 });
  assert.equal(configured.json.options.ttl, 3600);
  await client.push(numbered(queue, 1));
  await age(queue, 100_000);
  assert.deepEqual(idsOf((await client.pop(queue)).messages), ["t0"]);
});

test("with a ttl that was said, older messages are not delivered and count as finished for the group", async () => {
  const { client, database } = system;
  const queue = newQueue();
  assert.equal((await client.configure(queue, { ttl: 3600 })).json.options.ttl, 3600);
  await client.push([...numbered(queue, 3, "a"), ...numbered(queue, 2, "b")]);
  await age(queue, 4000);
  const nothing = await client.pop(queue, { batch: 10, partitions: 10 });
  assert.deepEqual([nothing.status, nothing.emptyReason], [204, "no_available_partition"]);
  assert.deepEqual(
    (await readCursors(database, queue))
      .filter((each) => each.partition !== "Default")
      .map((each) => each.committed),
    [3, 2],
  );
  const parked = client.pop(queue, { batch: 10, wait: true, timeout: 20_000 });
  await client.push(numbered(queue, 2, "a", 3));
  assert.deepEqual(idsOf((await parked).messages), ids(3, 5));
  assert.equal((await client.request("GET", `/api/v1/dlq?queue=${queue}`)).json.total, 0);
});

// ---------------------------------------------------------------------------------------------- maxSize

test("a full queue refuses with 429, QUEUE_FULL and Retry-After, until consumers are further", async () => {
  const { client, database } = system;
  const queue = newQueue();
  await client.configure(queue, { maxSize: 3 });
  await client.push(numbered(queue, 3));
  const refused = await push(numbered(queue, 1, undefined, 3));
  assert.equal(refused.status, 429);
  assert.equal(refused.headers["retry-after"], "1");
  assert.equal(refused.json.code, "QUEUE_FULL");
  assert.match(refused.json.error, /has 3 unfinished messages or more \(maxSize\)/);
  assert.equal(await countMessages(database, queue), 3);

  const { messages } = await client.pop(queue, { batch: 1 });
  await client.ackMessages(messages);
  const accepted = await until("there is room", async () => {
    const answer = await push(numbered(queue, 2, undefined, 3));
    return answer.status === 201 && answer.json;
  });
  assert.deepEqual(
    accepted.map((each: { status: string }) => each.status),
    ["queued", "queued"],
    "a push is stored as a whole, also beyond the limit",
  );
  assert.equal((await push(numbered(queue, 1, undefined, 9))).status, 429);
});

test("the slowest group counts, and a group that is forgotten no more", async () => {
  const { client } = system;
  const queue = newQueue();
  await client.configure(queue, { maxSize: 2 });
  await client.pop(queue, { consumerGroup: "slow" });
  await client.push(numbered(queue, 2));
  await client.pop(queue, { batch: 10, autoAck: true });
  assert.equal((await push(numbered(queue, 1, undefined, 2))).status, 429);
  await client.request("DELETE", "/api/v1/consumer-groups/slow");
  await until("there is room", async () => (await push(numbered(queue, 1, undefined, 2))).status === 201);
});

test("a request with several queues is refused as a whole", async () => {
  const { client, database } = system;
  const full = newQueue("full");
  const free = newQueue("free");
  await client.configure(full, { maxSize: 1 });
  await client.push(numbered(full, 1));
  for (const items of [
    [...numbered(free, 2), ...numbered(full, 1, undefined, 1)],
    [...numbered(full, 1, undefined, 1), ...numbered(free, 2)],
  ]) {
    assert.equal((await push(items)).status, 429);
  }
  assert.equal(await countMessages(database, free), 0);
});

test("pushes of others that come at the same time are not concerned", async () => {
  const { client } = system;
  const full = newQueue("full");
  const free = newQueue("free");
  await client.configure(full, { maxSize: 1 });
  await client.push([...numbered(full, 1), ...numbered(free, 1)]);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      push(numbered(index % 2 === 0 ? full : free, 1, undefined, 1 + index)),
    ),
  );
  assert.deepEqual(
    answers.map((each) => each.status),
    answers.map((_, index) => (index % 2 === 0 ? 429 : 201)),
  );
});

test("pushes at once through one broker do not pass the limit together", async () => {
  const { client, database } = system;
  const queue = newQueue();
  await client.configure(queue, { maxSize: 5 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) => push(numbered(queue, 1, undefined, index))),
  );
  assert.equal(answers.filter((each) => each.status === 201).length, 5);
  assert.equal(await countMessages(database, queue), 5);
});

test("a transaction that pushes to a full queue is refused, and its ack is not kept", async () => {
  const { client } = system;
  const source = newQueue("source");
  const full = newQueue("full");
  await client.configure(full, { maxSize: 1 });
  await client.push([...numbered(source, 1), ...numbered(full, 1)]);
  const [message] = (await client.pop(source)).messages;
  const operations = [
    { type: "ack", transactionId: "t0", partitionId: message!.partitionId, consumerGroup: "__QUEUE_MODE__" },
    { type: "push", items: numbered(full, 1, undefined, 1) },
  ];
  const refused = await client.transaction(operations, [message!.leaseId]);
  assert.deepEqual([refused.status, refused.json.code], [429, "QUEUE_FULL"]);
  const [acked] = await client.ackMessages([message!]);
  assert.equal(acked!.success, true, "the message is still held");
});

test("a second broker learns of the limit and of what the first one pushed within a second", async () => {
  const { client } = system;
  const second = await system.another();
  const queue = newQueue();
  await second.client.push(numbered(queue, 1));
  await client.configure(queue, { maxSize: 3 });
  await client.push(numbered(queue, 2, undefined, 1));
  await until("the second broker refuses", async () => {
    const answer = await second.client.request("POST", "/api/v1/push", {
      items: [{ queue, transactionId: "t0" }],
    });
    return answer.status === 429;
  });
});

test("maxSize 0 is no limit, and taking the limit away opens the queue", async () => {
  const { client } = system;
  const queue = newQueue();
  await client.configure(queue, { maxSize: 1 });
  await client.push(numbered(queue, 1));
  assert.equal((await push(numbered(queue, 1, undefined, 1))).status, 429);
  await client.configure(queue, { maxSize: 0 });
  assert.equal((await push(numbered(queue, 1, undefined, 1))).status, 201);
});
