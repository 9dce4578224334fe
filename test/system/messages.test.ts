/** Messages as operators handle them: lists, one message, delete, retry, move to the dead letters; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer, HttpClient } from "../support/http.ts";
import {
  countMessages,
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
after(() => system.stop());

const send = (method: string, path: string, body?: unknown): Promise<HttpAnswer> =>
  system.client.request(method, path, body);
const list = async (query: string) => {
  const answer = await send("GET", `/api/v1/messages?${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const shown = (page: { messages: { transactionId: string }[] }): string[] =>
  page.messages.map((message) => message.transactionId);
const path = (partitionId: string, transactionId: string): string =>
  `/api/v1/messages/${partitionId}/${transactionId}`;

/** Pushes to one partition, message by message, so that each has a segment of its own. */
async function pushApart(queue: string, count: number, partition?: string, from = 0): Promise<string> {
  let partitionId = "";
  for (const item of numbered(queue, count, partition, from)) {
    const [pushed] = await system.client.push([item]);
    partitionId = pushed!.partition_id!;
  }
  return partitionId;
}

async function pushTogether(queue: string, count: number, partition?: string, from = 0): Promise<string> {
  const [pushed] = await system.client.push(numbered(queue, count, partition, from));
  return pushed!.partition_id!;
}

// -------------------------------------------------------------------------------------------------------- list

test("list: the newest first, with everything but the payload", async () => {
  const queue = newQueue("shop.orders");
  const traceId = "0af76519-16cd-43dd-8448-eb211c80319c";
  await send("POST", "/api/v1/configure", { queue, namespace: "n", task: "t", options: { priority: 4 } });
  await system.client.push([
    { queue, partition: "ü/1", transactionId: "tö", traceId, payload: { big: "x" } },
  ]);
  const { messages, mode, nextPage } = await list(`queue=${queue}`);
  const [message] = messages;
  const { id, partitionId, createdAt, ...rest } = message;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.match(partitionId, /^[0-9a-f-]{36}$/);
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000);
  assert.deepEqual(rest, {
    transactionId: "tö",
    traceId,
    producerSub: null,
    isEncrypted: false,
    queuePath: `${queue}/ü/1`,
    queue,
    partition: "ü/1",
    namespace: "n",
    task: "t",
    status: "pending",
    queueStatus: null,
    busStatus: { consumedBy: 0, totalGroups: 0 },
    queuePriority: 4,
    leaseExpiresAt: null,
  });
  assert.deepEqual(mode, { hasQueueMode: false, busGroupsCount: 0, type: "none" });
  assert.equal(nextPage, null);
});

test("list: one partition, by limit, offset and page, whatever its segments are", async () => {
  const queue = newQueue();
  await pushTogether(queue, 10, "p");
  await pushApart(queue, 5, "p", 10);
  await pushTogether(queue, 10, "p", 15);
  const all = ids(0, 25).reverse();
  const filter = `queue=${queue}&partition=p`;
  assert.deepEqual(shown(await list(filter)), all);
  for (const [limit, offset] of [
    [3, 0],
    [3, 2],
    [7, 8],
    [5, 10],
    [12, 9],
    [1, 24],
    [5, 23],
  ] as const) {
    const page = await list(`${filter}&limit=${limit}&offset=${offset}`);
    assert.deepEqual(shown(page), all.slice(offset, offset + limit), `${limit} from ${offset}`);
    assert.equal(page.nextPage === null, offset + limit >= 25);
  }
  assert.deepEqual(shown(await list(`${filter}&offset=25`)), []);
  assert.deepEqual(shown(await list(`${filter}&offset=1000000000`)), []);
  assert.deepEqual(await pages(filter, 4), all);
});

/** All pages of a list, one after the other. */
async function pages(filter: string, limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let page = ""; ; ) {
    const answer = await list(`${filter}&limit=${limit}&page=${page}`);
    assert.ok(answer.messages.length <= limit);
    seen.push(...shown(answer));
    if (answer.nextPage === null) return seen;
    page = answer.nextPage;
  }
}

test("list: a queue's partitions are merged, the newest segment first, page by page", async () => {
  const queue = newQueue();
  const order: string[] = [];
  for (let round = 0; round < 6; round++) {
    for (const partition of ["a", "b", "c"]) {
      const from = order.length;
      await pushTogether(queue, 2, partition, from);
      order.push(`t${from}`, `t${from + 1}`);
    }
  }
  order.reverse();
  const filter = `queue=${queue}`;
  assert.deepEqual(shown(await list(filter)), order);
  assert.deepEqual(shown(await list(`${filter}&limit=5&offset=4`)), order.slice(4, 9));
  assert.deepEqual(shown(await list(`${filter}&limit=5&offset=11`)), order.slice(11, 16));
  for (const limit of [1, 5, 36]) assert.deepEqual(await pages(filter, limit), order, `pages of ${limit}`);
  assert.deepEqual(
    (await send("GET", `/api/v1/messages?${filter}&offset=10001`)).json.code,
    "VALIDATION_FAILED",
  );
});

test("list: one push to many partitions has one time, and pages stay whole", async () => {
  const queue = newQueue();
  const items = ["a", "b", "c", "d"].flatMap((partition, index) => numbered(queue, 3, partition, index * 3));
  await system.client.push(items);
  for (const limit of [1, 2, 5, 12]) {
    const seen = await pages(`queue=${queue}`, limit);
    assert.deepEqual(seen.toSorted(), ids(0, 12).sort(), `pages of ${limit}`);
  }
});

test("list: by namespace, by task, and without any filter, the last hour's", async () => {
  const [one, two] = [newQueue("list"), newQueue("list")];
  for (const [queue, task] of [
    [one, "x"],
    [two, "y"],
  ] as const) {
    await send("POST", "/api/v1/configure", { queue, namespace: "of-two", task });
    await pushTogether(queue, 1, task);
  }
  const queues = (page: { messages: { queue: string }[] }) => page.messages.map((message) => message.queue);
  assert.deepEqual(queues(await list("ns=of-two")), [two, one]);
  assert.deepEqual(queues(await list("ns=of-two&task=x")), [one]);
  assert.deepEqual(queues(await list("ns=nowhere")), []);
  assert.equal(queues(await list("limit=1"))[0], two);
});

test("list: by time; an hour if nothing is said, and `to` counts to the end of its minute", async () => {
  const queue = newQueue();
  await pushApart(queue, 4, "p");
  await system.database.query(
    `update queen.segments s set created_at = timestamptz '2026-01-01T10:00:30Z' + s.first_offset * interval '1 minute'
       from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 and p.id = s.partition_id`,
    [queue],
  );
  await system.database.query(
    `update queen.partitions p set created_at = '2026-01-01T09:00:00Z', last_at = '2026-01-01T10:03:30Z'
       from queen.queues q where q.name = $1 and q.id = p.queue_id`,
    [queue],
  );
  const between = async (from: string, to: string): Promise<string[]> => {
    const filters = [`queue=${queue}`, `queue=${queue}&partition=p`];
    const [merged, one] = await Promise.all(filters.map((filter) => list(`${filter}&from=${from}&to=${to}`)));
    assert.deepEqual(shown(merged), shown(one));
    return shown(one);
  };
  assert.deepEqual(shown(await list(`queue=${queue}`)), []);
  assert.deepEqual(await between("2026-01-01T00:00:00Z", ""), ids(0, 4).reverse());
  assert.deepEqual(await between("2026-01-01T10:01:30Z", ""), ids(1, 4).reverse());
  assert.deepEqual(await between("2026-01-01T10:01:31Z", ""), ids(2, 4).reverse());
  assert.deepEqual(await between("2026-01-01T10:00:00Z", "2026-01-01T10:02:00Z"), ids(0, 3).reverse());
  assert.deepEqual(await between("2026-01-01T10:04:00Z", ""), []);
  const brief = await send("GET", `/api/v1/status/queues/${queue}/messages`);
  assert.equal(brief.json.length, 4, "of any age");
});

test("list: the status follows the cursors, and filters without looking at every message", async () => {
  const queue = newQueue();
  await pushTogether(queue, 10, "p");
  const first = await system.client.pop(queue, { partition: "p", batch: 3 });
  await system.client.ackMessages(first.messages.slice(0, 2));
  await system.client.ackMessages(first.messages.slice(2), "dlq");
  const second = await system.client.pop(queue, { partition: "p", batch: 4 });
  await system.client.ackMessages([second.messages[2]!]);
  const of = async (status: string): Promise<string[]> => {
    const page = await list(`queue=${queue}&partition=p&status=${status}`);
    for (const message of page.messages) assert.equal(message.status, status);
    assert.deepEqual(shown(await list(`queue=${queue}&status=${status}`)), shown(page));
    return shown(page).reverse();
  };
  assert.deepEqual(await of("completed"), ["t0", "t1", "t5"]);
  assert.deepEqual(await of("dead_letter"), ["t2"]);
  assert.deepEqual(await of("processing"), ["t3", "t4", "t6"]);
  assert.deepEqual(await of("pending"), ["t7", "t8", "t9"]);
  const everything = await list(`queue=${queue}`);
  assert.deepEqual(everything.mode, { hasQueueMode: true, busGroupsCount: 0, type: "queue" });
  const leased = everything.messages.find(
    (message: { transactionId: string }) => message.transactionId === "t3",
  );
  assert.deepEqual([leased.queueStatus, typeof leased.leaseExpiresAt], ["processing", "string"]);
  assert.deepEqual(shown(await list(`queue=${queue}&partition=p&status=pending&limit=1&offset=1`)), ["t8"]);
});

test("list: where only named groups read, a message is completed when all of them finished it", async () => {
  const queue = newQueue();
  await pushTogether(queue, 3);
  const all = await system.client.pop(queue, { consumerGroup: "g", batch: 3 });
  await system.client.ackMessages(all.messages);
  const one = await system.client.pop(queue, { consumerGroup: "h", batch: 1 });
  await system.client.ackMessages(one.messages);
  const { messages, mode } = await list(`queue=${queue}`);
  assert.deepEqual(mode, { hasQueueMode: false, busGroupsCount: 2, type: "bus" });
  assert.deepEqual(
    messages.map((message: { status: string; busStatus: unknown }) => [message.status, message.busStatus]),
    [
      ["pending", { consumedBy: 1, totalGroups: 2 }],
      ["pending", { consumedBy: 1, totalGroups: 2 }],
      ["completed", { consumedBy: 2, totalGroups: 2 }],
    ],
  );
  assert.deepEqual(shown(await list(`queue=${queue}&status=completed`)), ["t0"]);
  assert.deepEqual(shown(await list(`queue=${queue}&status=pending`)), ["t2", "t1"]);
  await system.client.pop(queue, { batch: 1 });
  assert.equal((await list(`queue=${queue}`)).mode.type, "hybrid");
});

test("list: nothing there is an empty list, and what cannot be meant is refused", async () => {
  const nothing = await list("queue=no-such-queue");
  assert.deepEqual([nothing.messages, nothing.mode.type], [[], "none"]);
  const queue = newQueue();
  await pushTogether(queue, 1);
  assert.deepEqual((await list(`queue=${queue}&partition=nowhere`)).messages, []);
  for (const query of ["limit=x", "offset=x", "status=open", "from=soon", "to=x", "page=2", "partition=p"]) {
    const { status, json } = await send("GET", `/api/v1/messages?${query}`);
    assert.deepEqual([status, json.code], [400, "VALIDATION_FAILED"], query);
  }
});

test("a queue's messages: an array, paged by limit, offset and the header's page", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 5);
  const route = `/api/v1/status/queues/${queue}/messages`;
  const { status, json, headers } = await send("GET", `${route}?limit=2&offset=1`);
  assert.equal(status, 200);
  const { id, createdAt, ...rest } = json[0];
  assert.deepEqual([typeof id, typeof createdAt], ["string", "string"]);
  assert.deepEqual(rest, {
    transactionId: "t3",
    partitionId,
    queuePath: `${queue}/Default`,
    queue,
    partition: "Default",
    status: "pending",
  });
  const next = await send("GET", `${route}?limit=10&page=${headers["queen-next-page"]}`);
  assert.deepEqual(
    next.json.map((message: { transactionId: string }) => message.transactionId),
    ["t1", "t0"],
  );
  assert.equal(next.headers["queen-next-page"], undefined);
  await system.client.configure(`${queue}-empty`);
  assert.deepEqual((await send("GET", `/api/v1/status/queues/${queue}-empty/messages`)).text, "[]");
  const unknown = await send("GET", "/api/v1/status/queues/no-such-queue/messages");
  assert.deepEqual([unknown.status, unknown.json.error], [404, "Queue not found"]);
});

// --------------------------------------------------------------------------------------------------------- one

test("one message: its payload byte for byte, and what each group made of it", async () => {
  const queue = newQueue();
  const payload = '{"n":12345678901234567890.00,"ü":"\\u0000"}';
  await send(
    "POST",
    "/api/v1/push",
    `{"items":[{"queue":"${queue}","transactionId":"a"},{"queue":"${queue}","transactionId":"b/c","payload":${payload}}]}`,
  );
  const { messages } = await system.client.pop(queue, { consumerGroup: "done", batch: 2 });
  await system.client.ackMessages(messages);
  await system.client.pop(queue, { batch: 2 });
  const partitionId = messages[0]!.partitionId;
  const answer = await send("GET", path(partitionId, encodeURIComponent("b/c")));
  assert.equal(answer.status, 200);
  assert.ok(answer.text.includes(`"payload":${payload},`));
  const { id, createdAt, leaseExpiresAt, payload: _, ...rest } = answer.json;
  assert.equal(id, messages[1]!.id);
  assert.equal(createdAt, messages[1]!.createdAt);
  assert.equal(typeof leaseExpiresAt, "string");
  assert.deepEqual(rest, {
    transactionId: "b/c",
    traceId: null,
    producerSub: null,
    partitionId,
    queuePath: `${queue}/Default`,
    queue,
    partition: "Default",
    namespace: queue,
    task: "",
    status: "processing",
    isEncrypted: false,
    payloadError: null,
    errorMessage: null,
    retryCount: null,
    queueConfig: { leaseTime: 300, retryLimit: 3, retryDelay: 1_000, ttl: 3_600, priority: 0 },
    mode: { hasQueueMode: true, busGroupsCount: 1, consumedByGroups: 1, type: "hybrid" },
    consumerGroups: [
      { name: "__QUEUE_MODE__", consumed: false, leaseExpiresAt },
      { name: "done", consumed: true, leaseExpiresAt: null },
    ],
  });
  const byId = await send("GET", `${path(partitionId, "a")}?id=${messages[0]!.id}`);
  assert.deepEqual([byId.status, byId.json.id], [200, messages[0]!.id]);
  assert.equal((await send("GET", `${path(partitionId, "x")}?id=${messages[0]!.id}`)).status, 404);
});

test("one message: a dead letter shows its error, also when the log has forgotten it", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { messages } = await system.client.pop(queue);
  await system.client.ackMessages(messages, "dlq", "broken «x»");
  const where = path(messages[0]!.partitionId, "t0");
  const stored = (await send("GET", where)).json;
  assert.deepEqual([stored.status, stored.errorMessage, stored.retryCount], ["dead_letter", "broken «x»", 0]);
  await system.database.query(
    `with lane as (update queen.partitions p set start_offset = next_offset from queen.queues q
                    where q.id = p.queue_id and q.name = $1 returning p.id)
     delete from queen.segments where partition_id in (select id from lane)`,
    [queue],
  );
  const kept = (await send("GET", where)).json;
  assert.deepEqual([kept.status, kept.payload, kept.errorMessage], ["dead_letter", 0, "broken «x»"]);
});

test("one message: what is not there is not found, and a partitionId must be one", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 1);
  for (const where of [
    path(partitionId, "nothing"),
    path("00000000-ffff-8002-8000-000000000000", "t0"),
    path("0af76519-16cd-43dd-8448-eb211c80319c", "t0"),
  ]) {
    const missing = await send("GET", where);
    assert.deepEqual([missing.status, missing.json.error], [404, "Message not found"]);
    const deleted = await send("DELETE", where);
    assert.deepEqual(
      [deleted.status, deleted.json.success, deleted.json.message],
      [200, false, "Message not found"],
    );
    for (const action of ["retry", "dlq"]) {
      const answer = await send("POST", `${where}/${action}`);
      assert.deepEqual([answer.status, answer.json.error], [404, "Message not found"]);
    }
  }
  for (const [method, where] of [
    ["GET", path("x", "t0")],
    ["DELETE", path("x", "t0")],
    ["POST", `${path("x", "t0")}/retry`],
    ["POST", `${path("x", "t0")}/dlq`],
    ["GET", `${path(partitionId, "t0")}?id=x`],
  ] as const) {
    const { status, json } = await send(method, where);
    assert.deepEqual([status, json.code], [400, "VALIDATION_FAILED"], `${method} ${where}`);
  }
});

// ------------------------------------------------------------------------------------------------------ delete

test("delete: the message is gone for everybody, its bytes included, and its neighbours are whole", async () => {
  const queue = newQueue();
  const secret = "bytes-that-must-go";
  await system.client.push([
    { queue, transactionId: "a", payload: 1 },
    { queue, transactionId: "b", payload: secret },
    { queue, transactionId: "c", payload: "ü" },
  ]);
  const { messages } = await system.client.pop(queue, { consumerGroup: "before", batch: 1 });
  const partitionId = messages[0]!.partitionId;
  const { status, json } = await send("DELETE", path(partitionId, "b"));
  assert.equal(status, 200);
  assert.deepEqual(json, {
    success: true,
    partitionId,
    transactionId: "b",
    message: "Message deleted successfully",
  });
  assert.equal((await send("GET", path(partitionId, "b"))).status, 404);
  assert.deepEqual(shown(await list(`queue=${queue}`)), ["c", "a"]);
  const [kept] = await system.database.query(
    `select count(*) from queen.segments where position($1::bytea in body) > 0
        or position(int8send(hashtextextended('b', 0)) in keys) > 0`,
    [Buffer.from(secret)],
  );
  assert.equal(kept!.count, 0);
  assert.equal(await countMessages(system.database, queue), 2);
  await system.client.ackMessages(messages);
  for (const consumerGroup of ["before", "after"]) {
    const popped = await system.client.pop(queue, { consumerGroup, batch: 5 });
    assert.deepEqual(idsOf(popped.messages), consumerGroup === "before" ? ["c"] : ["a", "c"]);
    const acks = await system.client.ackMessages(popped.messages);
    assert.ok(acks.at(-1)!.leaseReleased, "nobody waits for the message that is gone");
  }
  assert.deepEqual((await send("DELETE", path(partitionId, "b"))).json.success, false);
  const [again] = await system.client.push([{ queue, transactionId: "b", payload: 2 }]);
  assert.equal(again!.status, "queued", "its transactionId is free");
});

test("delete: a message out of a lease that is held; the rest of the lease ends it", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 4);
  const { client: other } = await system.another();
  const { messages } = await system.client.pop(queue, { batch: 3 });
  await send("DELETE", path(partitionId, "t1"));
  const acks = await other.ackMessages([messages[0]!, messages[2]!]);
  assert.ok(acks.every((ack) => ack.success));
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: "__QUEUE_MODE__", committed: 3, acked: null, leased: false },
  ]);
  const late = await system.client.ackMessages([messages[1]!]);
  assert.equal(late[0]!.success, true, "who has it still may ack it");
  const rest = await system.client.pop(queue, { batch: 5 });
  assert.deepEqual(idsOf(rest.messages), ["t3"]);
});

test("delete: the only unfinished message of a lease; the lane goes on at once", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 2);
  await system.client.pop(queue, { batch: 1 });
  const waiting = system.client.pop(queue, { batch: 1, wait: true, timeout: 20_000 });
  await until("it waits", async () => (await send("GET", "/metrics")).json.pops.parked >= 1);
  await send("DELETE", path(partitionId, "t0"));
  assert.deepEqual(idsOf((await waiting).messages), ["t1"]);
});

test("delete: a pop that gets only deleted messages finishes them and goes on", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 6, "p");
  await pushTogether(queue, 1, "q", 6);
  for (const id of ids(0, 4)) await send("DELETE", path(partitionId, id));
  const first = await system.client.pop(queue, { consumerGroup: "one", partition: "p", batch: 2 });
  assert.deepEqual(idsOf(first.messages), ["t4", "t5"]);
  const auto = await system.client.pop(queue, {
    consumerGroup: "auto",
    partition: "p",
    batch: 3,
    autoAck: true,
  });
  assert.deepEqual(idsOf(auto.messages), ["t4", "t5"]);
  const waited = await system.client.pop(queue, {
    consumerGroup: "wait",
    batch: 1,
    partitions: 2,
    wait: true,
    timeout: 20_000,
  });
  assert.equal(waited.messages.length, 1);

  for (const id of ids(4, 6)) await send("DELETE", path(partitionId, id));
  const none = await system.client.pop(queue, { consumerGroup: "late", partition: "p", batch: 2 });
  assert.deepEqual([none.status, none.text], [204, ""]);
  const [late] = (await readCursors(system.database, queue)).filter((cursor) => cursor.group === "late");
  assert.deepEqual([late!.committed, late!.leased], [6, false]);
  await pushTogether(queue, 1, "p", 7);
  const next = await system.client.pop(queue, { consumerGroup: "late", partition: "p", batch: 2 });
  assert.deepEqual(idsOf(next.messages), ["t7"]);
});

test("delete: what killed its consumers is not buried after it was deleted, and the lane moves on", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0, retryDelay: 0 });
  const partitionId = await pushTogether(queue, 2);
  await system.client.pop(queue, { batch: 2 });
  await expireLeases(system.database, queue);
  await system.client.pop(queue, { batch: 2 });
  await send("DELETE", path(partitionId, "t0"));
  await expireLeases(system.database, queue);
  const { messages } = await system.client.pop(queue, { batch: 2, wait: true, timeout: 20_000 });
  assert.deepEqual(idsOf(messages), ["t1"]);
});

test("delete: what a broker has in its memory is not delivered any more, on any broker", async () => {
  const { client: other } = await system.another();
  const { client: alone } = await system.another({ QUEEN_BUS: "off" });
  const brokers: HttpClient[] = [system.client, other, alone];
  const queue = newQueue();
  // Small pops make each broker keep the segment.
  const partitionId = await pushTogether(queue, 20);
  for (const [index, client] of brokers.entries()) {
    const { messages } = await client.pop(queue, {
      consumerGroup: `g${index}`,
      partition: "Default",
      batch: 2,
    });
    await client.ackMessages(messages);
    const figures = (await client.request("GET", "/metrics")).json.caches;
    assert.ok(figures.segmentBytes > 0, "it is in the broker's memory");
  }
  await send("DELETE", path(partitionId, "t5"));
  const own = await system.client.pop(queue, { consumerGroup: "g0", partition: "Default", batch: 10 });
  assert.ok(!idsOf(own.messages).includes("t5"), "at once where it was deleted");
  for (const [index, client] of brokers.entries()) {
    if (index === 0) continue;
    // A second later everybody knows; a fresh group reads the same memory.
    await until("the broker heard of it", async () => {
      const { messages } = await client.pop(queue, {
        consumerGroup: `fresh-${index}-${performance.now()}`,
        partition: "Default",
        batch: 10,
      });
      return !idsOf(messages).includes("t5") && messages.length === 9;
    });
    const { messages } = await client.pop(queue, {
      consumerGroup: `g${index}`,
      partition: "Default",
      batch: 10,
    });
    assert.deepEqual(
      idsOf(messages),
      ids(2, 12).filter((id) => id !== "t5"),
    );
  }
});

// ------------------------------------------------------------------------------------------------------- retry

const retry = async (partitionId: string, transactionId: string, body?: unknown) =>
  (await send("POST", `${path(partitionId, transactionId)}/retry`, body)).json;

test("retry: a dead letter is requeued", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 1);
  const { messages } = await system.client.pop(queue);
  await system.client.ackMessages(messages, "dlq");
  const answer = await retry(partitionId, "t0");
  const popped = await system.client.pop(queue);
  assert.deepEqual(answer, {
    success: true,
    partitionId,
    transactionId: "t0",
    consumerGroup: "__QUEUE_MODE__",
    action: "requeued",
    messageId: popped.messages[0]!.id,
  });
  assert.deepEqual(idsOf(popped.messages), ["t0"]);
  assert.equal((await send("GET", `/api/v1/dlq?queue=${queue}`)).json.total, 0);
});

test("retry: a message that the group has not passed is delivered again in its place", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryDelay: 3_600_000 });
  const partitionId = await pushTogether(queue, 3);
  assert.equal((await retry(partitionId, "t2")).action, "pending", "nobody has popped yet");
  const { messages } = await system.client.pop(queue, { batch: 3 });
  assert.equal((await retry(partitionId, "t0")).action, "leased");
  await system.client.ackMessages([messages[1]!]);
  await system.client.ackMessages([messages[0]!], "failed");
  assert.equal((await system.client.pop(queue)).emptyReason, "retry_delay");
  assert.equal((await retry(partitionId, "t1")).action, "redelivered");
  assert.equal((await retry(partitionId, "t0")).action, "pending");
  const again = await system.client.pop(queue, { batch: 3 });
  assert.deepEqual(idsOf(again.messages), ids(0, 3), "without the delay");
  assert.equal(await countMessages(system.database, queue), 3);
});

test("retry: a message that the group has passed is copied, for this group only, and once until it is finished", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 2);
  for (const consumerGroup of ["g", "h"]) {
    const { messages } = await system.client.pop(queue, { consumerGroup, batch: 2 });
    await system.client.ackMessages(messages);
  }
  const answer = await retry(partitionId, "t0", { consumerGroup: "g" });
  assert.deepEqual([answer.action, answer.consumerGroup], ["copied", "g"]);
  assert.equal((await retry(partitionId, "t0", { consumerGroup: "g" })).action, "pending");
  assert.equal(await countMessages(system.database, queue), 3);
  assert.equal((await system.client.pop(queue, { consumerGroup: "h" })).status, 204);
  const { messages } = await system.client.pop(queue, { consumerGroup: "g", batch: 5 });
  assert.deepEqual([idsOf(messages), messages[0]!.id], [["t0"], answer.messageId]);
  assert.ok((await system.client.ackMessages(messages))[0]!.leaseReleased);
});

test("retry and dlq: a group that does not exist is not found, and a name must be one", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 1);
  for (const action of ["retry", "dlq"]) {
    const where = `${path(partitionId, "t0")}/${action}`;
    for (const [query, body] of [
      ["", { consumerGroup: "nobody" }],
      ["?consumerGroup=nobody", undefined],
    ] as const) {
      const { status, json } = await send("POST", where + query, body);
      assert.deepEqual([status, json.error], [404, "Consumer group not found"]);
    }
    const wrong = await send("POST", where, { consumerGroup: 5 });
    assert.deepEqual([wrong.status, wrong.json.code], [400, "VALIDATION_FAILED"]);
    assert.equal((await send("POST", where, "{")).json.code, "INVALID_JSON");
  }
});

// --------------------------------------------------------------------------------------------------------- dlq

test("dlq: a message is finished for the group and stands among its dead letters, once", async () => {
  const queue = newQueue();
  const partitionId = await pushTogether(queue, 3);
  for (let time = 0; time < 2; time++) {
    const { status, json } = await send("POST", `${path(partitionId, "t1")}/dlq`, { error: "poison" });
    assert.equal(status, 200);
    assert.deepEqual(
      { ...json, messageId: typeof json.messageId },
      {
        success: true,
        partitionId,
        transactionId: "t1",
        consumerGroup: "__QUEUE_MODE__",
        messageId: "string",
      },
    );
  }
  const letters = (await send("GET", `/api/v1/dlq?queue=${queue}`)).json;
  assert.deepEqual(
    [letters.total, letters.messages[0].transactionId, letters.messages[0].errorMessage],
    [1, "t1", "poison"],
  );
  const { messages } = await system.client.pop(queue, { batch: 5 });
  assert.deepEqual(idsOf(messages), ["t0", "t2"]);
  assert.ok((await system.client.ackMessages(messages)).at(-1)!.leaseReleased);
  const other = await system.client.pop(queue, { consumerGroup: "g", batch: 5 });
  assert.deepEqual(idsOf(other.messages), ids(0, 3));
  const wrong = await send("POST", `${path(partitionId, "t1")}/dlq`, { error: 5 });
  assert.equal(wrong.status, 400);
});

test("a transactionId is found in a whole queue, or in all, with how far the search is and a way to go on", async () => {
  const queue = newQueue("found");
  for (const lane of ["a", "b", "c"]) await pushTogether(queue, 40, lane);
  const partition = await pushTogether(queue, 1, "b", 90);
  const { messages } = await system.client.pop(queue, { partition: "b", consumerGroup: "worker", batch: 41 });
  await system.client.ackMessages(messages);

  const [found] = (await list(`queue=${queue}&transactionId=t90`)).messages;
  assert.deepEqual(
    [found.partition, found.partitionId, found.status, found.busStatus],
    ["b", partition, "completed", { consumedBy: 1, totalGroups: 1 }],
  );
  const whole = await send("GET", path(partition, "t90"));
  assert.equal(whole.json.id, found.id);
  assert.deepEqual((await list("transactionId=t90&limit=1")).messages[0].transactionId, "t90");

  const lanes: string[] = [];
  let page: string | null = "";
  let before = -1;
  while (page !== null) {
    const step: Awaited<ReturnType<typeof list>> = await list(
      `queue=${queue}&transactionId=t3&limit=1&page=${page}`,
    );
    lanes.push(...step.messages.map((message: { partition: string }) => message.partition));
    assert.ok(step.search.searched >= before && step.search.searched <= step.search.total);
    before = step.search.searched;
    page = step.nextPage;
  }
  assert.deepEqual(lanes, ["a", "b", "c"]);
  assert.equal(before, 121);
  const nowhere = await list(`queue=${queue}&transactionId=nowhere`);
  assert.deepEqual(
    [nowhere.messages, nowhere.nextPage, nowhere.search],
    [[], null, { searched: 121, total: 121 }],
  );
  const inLane = await list(`queue=${queue}&partition=c&transactionId=t3`);
  assert.deepEqual([inLane.messages.length, inLane.search.total], [1, 40]);
  assert.deepEqual((await list("queue=no-such-queue&transactionId=t3")).search, { searched: 0, total: 0 });
});

test("a search refuses filters that it does not know, and pages of other lists", async () => {
  const queue = newQueue();
  await pushTogether(queue, 1);
  for (const more of [
    "status=pending",
    "from=2026-01-01T00:00:00Z",
    "page=1.2.3",
    "page=s9.0.0..0.0",
    "page=s1",
  ]) {
    const { status } = await send("GET", `/api/v1/messages?queue=${queue}&transactionId=t0&${more}`);
    assert.equal(status, 400, more);
  }
  const { status } = await send("GET", `/api/v1/messages?queue=${queue}&page=s1.0.0..0.0`);
  assert.equal(status, 400);
});
