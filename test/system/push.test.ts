/** Push over HTTP (P1, P3, P7): what is stored, in which order, and what is refused before anything is. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import type { HttpAnswer, HttpClient, PushItem } from "../support/http.ts";
import {
  countMessages,
  dataOf,
  idsOf,
  newQueue,
  numbered,
  type System,
  startSystem,
} from "../support/system.ts";

const BODY_BYTES_MAX = 20_000_000;

let system: System;
let client: HttpClient;

before(async () => {
  system = await startSystem({ QUEEN_MAX_BODY_BYTES: String(BODY_BYTES_MAX) });
  client = system.client;
});
after(() => system?.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const push = (body: unknown): Promise<HttpAnswer> => client.request("POST", "/api/v1/push", body);

/** How many messages were ever stored, in all queues. */
async function countAppended(): Promise<number> {
  const [row] = await system.database.query(
    "select coalesce(sum(next_offset), 0)::int8 as n from queen.partitions",
  );
  return row!.n as number;
}

async function assertRefused(body: unknown, code: string, message: RegExp): Promise<void> {
  const before = await countAppended();
  const answer = await push(body);
  const status = code === "BODY_TOO_LARGE" ? 413 : 400;
  assert.deepEqual([answer.status, answer.json?.code], [status, code], `${String(message)}: ${answer.text}`);
  assert.match(answer.json.error, message);
  assert.equal(await countAppended(), before, "nothing was stored");
  assert.equal(await countMessages(system.database, "bad"), 0);
}

// -------------------------------------------------------------------------------------------------- answers

test("a push answers 201 with one result per item, in their order", async () => {
  const queue = newQueue();
  const traceId = "ABCDEF12-3456-4789-8ABC-DEF123456789";
  const answer = await push({
    items: [
      { queue, partition: "p", transactionId: "first", traceId, payload: 1 },
      { queue, payload: 2 },
      { queue, partition: "p", transactionId: "third" },
    ],
  });
  assert.equal(answer.status, 201);
  const [first, second, third] = answer.json;
  for (const result of answer.json) {
    assert.match(result.message_id, UUID);
    assert.match(result.partition_id, UUID);
  }
  assert.equal(new Set(answer.json.map((result: { message_id: string }) => result.message_id)).size, 3);
  assert.deepEqual(first, {
    index: 0,
    status: "queued",
    transaction_id: "first",
    message_id: first.message_id,
    partition_id: first.partition_id,
    trace_id: traceId.toLowerCase(),
    queueName: queue,
  });
  assert.deepEqual([second.index, second.status, second.trace_id], [1, "queued", null]);
  assert.match(second.transaction_id, UUID, "a transactionId of its own");
  assert.notEqual(second.partition_id, first.partition_id);
  assert.deepEqual([third.index, third.partition_id], [2, first.partition_id]);
  const rows = await system.database.query(
    "select transaction_id, payload::text from queen.messages where id = any ($1::uuid[]) order by 2",
    [answer.json.map((result: { message_id: string }) => result.message_id)],
  );
  assert.deepEqual(rows, [
    { transaction_id: "first", payload: "1" },
    { transaction_id: second.transaction_id, payload: "2" },
    { transaction_id: "third", payload: "null" },
  ]);
});

test("a repeated transactionId is a duplicate that names the stored message, and its body is dropped", async () => {
  const queue = newQueue();
  const [stored] = await client.push(numbered(queue, 1));
  const again = await push({
    items: [
      { queue, transactionId: "t0", payload: "other" },
      { queue, transactionId: "new", payload: 1 },
      { queue, transactionId: "new", payload: "repeated inside the call" },
      { queue, partition: "elsewhere", transactionId: "t0", payload: 2 },
    ],
  });
  assert.equal(again.status, 201);
  const [first, second, third, fourth] = again.json;
  assert.deepEqual(first, {
    index: 0,
    status: "duplicate",
    transaction_id: "t0",
    message_id: stored!.message_id,
    queueName: queue,
  });
  assert.equal(second.status, "queued");
  assert.deepEqual([third.index, third.status, third.message_id], [2, "duplicate", second.message_id]);
  assert.equal(fourth.status, "queued", "another partition is another message");
  const { messages } = await client.pop(queue, { partition: "Default", batch: 10 });
  assert.deepEqual(dataOf(messages), [0, 1]);
});

test("the same transactionId pushed at once many times, on two brokers, is stored once (P7)", async () => {
  const other = await system.another();
  const queue = newQueue();
  for (let round = 0; round < 10; round++) {
    const items = [{ queue, partition: `p${round % 3}`, transactionId: `race-${round}`, payload: round }];
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 ? client : other.client).push(items)),
    );
    const statuses = results.map(([result]) => result!.status).sort();
    assert.deepEqual(statuses, [...Array(9).fill("duplicate"), "queued"]);
    assert.equal(new Set(results.map(([result]) => result!.message_id)).size, 1, "all name the same message");
  }
  assert.equal(await countMessages(system.database, queue), 10);
});

test("an empty list of items is answered 201 []", async () => {
  const answer = await push({ items: [] });
  assert.deepEqual([answer.status, answer.text], [201, "[]"]);
});

test("the first push makes the queue, with namespace and task from its name, and the partition", async () => {
  const queues = ["plain", "shop.orders", "shop.orders.more", "ends."].map(
    (name) => `${newQueue("q")}${name}`,
  );
  await client.push(queues.map((queue) => ({ queue, partition: "customer 1" })));
  const rows = await system.database.query(
    `select q.namespace, q.task, p.name as partition, q.lease_time, q.retry_limit
       from queen.queues q join queen.partitions p on p.queue_id = q.id
      where q.name = any ($1) order by array_position($1, q.name)`,
    [queues],
  );
  const expected = queues.map((queue) => {
    const [namespace, task = ""] = queue.split(".");
    return { namespace, task, partition: "customer 1", lease_time: 300, retry_limit: 3 };
  });
  assert.deepEqual(rows, expected);
});

test("without a partition a message goes to Default", async () => {
  const queue = newQueue();
  await client.push([{ queue, payload: 1 }]);
  assert.equal((await client.pop(queue)).messages[0]!.partition, "Default");
});

test("a queue may be named by the empty string", async () => {
  const [result] = await client.push([{ queue: "", payload: 1 }]);
  assert.deepEqual([result!.status, result!.queueName], ["queued", ""]);
  const answer = await client.request("GET", "/api/v1/pop/queue/?batch=1");
  assert.deepEqual([answer.status, answer.json?.queue], [200, ""]);
});

// ---------------------------------------------------------------------------------------------------- order

test("the items of one request keep their order, also in partitions that it makes", async () => {
  const queue = newQueue();
  const partitions = ["a", "b", "c", "d", "e"];
  const items = Array.from({ length: 1_000 }, (_, index) => ({
    queue,
    partition: partitions[(index * 7) % 5]!,
    payload: index,
  }));
  await client.push(items);
  for (const partition of partitions) {
    const { messages } = await client.pop(queue, { partition, batch: 1_000 });
    assert.deepEqual(
      dataOf(messages),
      items.filter((item) => item.partition === partition).map((item) => item.payload),
    );
  }
});

test("requests sent one after the other keep their order, for brand-new partitions too, on two brokers", async () => {
  const other = await system.another();
  const queue = newQueue();
  await Promise.all(
    Array.from({ length: 10 }, async (_, lane) => {
      for (let index = 0; index < 20; index++) {
        const each = index % 2 ? client : other.client;
        await each.push([{ queue, partition: `p${lane}`, payload: index }]);
      }
    }),
  );
  for (let lane = 0; lane < 10; lane++) {
    const { messages } = await client.pop(queue, { partition: `p${lane}`, batch: 100 });
    assert.deepEqual(
      dataOf(messages),
      Array.from({ length: 20 }, (_, index) => index),
      `partition p${lane}`,
    );
  }
});

test("many pushes to one lane at once: offsets without gaps, and each request's items together", async () => {
  const queue = newQueue();
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, request) => client.push(numbered(queue, 5, "p", request * 5))),
  );
  const rows = await system.database.query(
    `select m.message_offset, m.transaction_id, m.id from queen.messages m
       join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id
      where q.name = $1 order by 1`,
    [queue],
  );
  assert.deepEqual(
    rows.map((row) => row.message_offset),
    Array.from({ length: 500 }, (_, index) => index),
  );
  const offsetOf = new Map(rows.map((row) => [row.id, row.message_offset as number]));
  for (const results of answers) {
    const offsets = results.map((result) => offsetOf.get(result.message_id)!);
    assert.deepEqual(
      offsets,
      offsets.toSorted((a, b) => a - b),
    );
  }
});

test("a pop sent after the answer finds the message, also where nobody ever popped", async () => {
  for (let time = 0; time < 20; time++) {
    const queue = newQueue();
    await client.push(numbered(queue, 1, `p${time}`));
    assert.deepEqual(idsOf((await client.pop(queue)).messages), ["t0"]);
    await client.push(numbered(queue, 1, "another"));
    assert.deepEqual((await client.pop(queue)).json?.partition, "another");
  }
});

// --------------------------------------------------------------------------------------------------- fields

test("payload: missing and null are null, anything else comes back as it is", async () => {
  const queue = newQueue();
  await client.push([
    { queue },
    { queue, payload: null },
    { queue, payload: false },
    { queue, payload: 0 },
    { queue, payload: "" },
    { queue, payload: [] },
  ]);
  const { messages } = await client.pop(queue, { batch: 10 });
  assert.deepEqual(dataOf(messages), [null, null, false, 0, "", []]);
});

test("neighbours in a push have answers of their own, whatever they share", async () => {
  const queue = newQueue();
  const one = "00000000-0000-4000-8000-000000000001";
  const other = "00000000-0000-4000-8000-000000000002";
  const [known] = await client.push([{ queue, partition: "b", transactionId: "known" }]);
  const shapes: [partition: string, traceId?: string][] = [
    ["a", one],
    ["a", one],
    ["a", other],
    ["a"],
    ["b"],
    ["b", other],
    ["a", other],
    ["a", one],
  ];
  const items: PushItem[] = shapes.map(([partition, traceId], n) => ({
    queue,
    partition,
    transactionId: `t${n}`,
    ...(traceId === undefined ? {} : { traceId }),
  }));
  items.splice(5, 0, { queue, partition: "b", transactionId: "known", traceId: one });
  const results = await client.push(items);

  const { message_id: id, transaction_id, status } = results.splice(5, 1)[0]!;
  assert.deepEqual([id, transaction_id, status], [known!.message_id, "known", "duplicate"]);
  const stored = await system.database.query(
    `select m.id, m.transaction_id, m.trace_id, p.name as partition
       from queen.messages m join queen.partitions p on p.id = m.partition_id
      where m.id = any ($1::uuid[]) order by m.transaction_id`,
    [results.map((result) => result.message_id)],
  );
  assert.deepEqual(
    stored.map((row) => [row.id, row.transaction_id, row.trace_id, row.partition]),
    shapes.map(([partition, traceId], n) => [results[n]!.message_id, `t${n}`, traceId ?? null, partition]),
  );
  assert.deepEqual(
    results.map((result) => [result.transaction_id, result.trace_id, result.status, result.queueName]),
    shapes.map(([, traceId], n) => [`t${n}`, traceId ?? null, "queued", queue]),
  );
});

test("an empty transactionId or traceId is an absent one", async () => {
  const queue = newQueue();
  const results = await client.push([
    { queue, transactionId: "", traceId: "" },
    { queue, transactionId: "", traceId: "" },
  ]);
  assert.deepEqual(
    results.map((result) => [result.status, result.trace_id]),
    [
      ["queued", null],
      ["queued", null],
    ],
  );
  for (const result of results) assert.match(result.transaction_id, UUID);
});

test("fields that the broker does not know, and producerSub, are ignored", async () => {
  const queue = newQueue();
  const answer = await push({
    bufferMs: 5,
    items: [{ queue, payload: 1, producerSub: "me", messageId: "x", is_encrypted: true, later: { a: [1] } }],
    more: null,
  });
  assert.equal(answer.status, 201);
  const [message] = (await client.pop(queue)).messages;
  assert.deepEqual([message!.data, message!.producerSub], [1, null]);
});

test("names and transactionIds of 255 characters of any kind are kept; 256 are refused", async () => {
  for (const character of ["x", "ä", "😀", " ", "/"]) {
    const name = character.repeat(255);
    const queue = `${newQueue()}${name}`
      .slice(0, character.length * 255 - 20)
      .replace(/[\ud800-\udbff]$/, "");
    await client.push([{ queue, partition: name, transactionId: name, payload: 1 }]);
    const { messages } = await client.pop(queue, { partition: name });
    assert.deepEqual([messages[0]!.partition, messages[0]!.transactionId], [name, name]);
    assert.ok((await client.ackMessages(messages))[0]!.success);
  }
  const [result] = await client.push([{ queue: "😀".repeat(255) }]);
  assert.equal(result!.queueName, "😀".repeat(255));
  const long = "😀".repeat(256);
  await assertRefused({ items: [{ queue: long }] }, "VALIDATION_FAILED", /items\[0\]\.queue.*255 characters/);
  const path = await client.pop("q".repeat(256));
  assert.deepEqual([path.status, path.json.code], [400, "VALIDATION_FAILED"]);
});

test("names with emoji, spaces, slashes and percent signs round-trip in paths and queries", async () => {
  const names = ["😀 party", "a b", "a/b", "a%2Fb", "100%", "ü?&=#;+", "'; drop table x; --", '"\\'];
  for (const name of names) {
    const queue = `${newQueue()} ${name}`;
    await client.push([
      { queue, partition: name, payload: 1 },
      { queue, partition: `${name}2`, payload: 2 },
    ]);
    const byPath = await client.pop(queue, { partition: name, consumerGroup: name });
    assert.deepEqual([byPath.json?.queue, byPath.json?.partition], [queue, name]);
    assert.equal(byPath.json.consumerGroup, name);
    assert.ok((await client.ackMessages(byPath.messages))[0]!.success);
    const query = new URLSearchParams({ queue, partition: name });
    assert.equal((await client.request("GET", `/api/v1/pop?${query}`)).json?.partition, name);
    const gone = await client.request("DELETE", `/api/v1/resources/queues/${encodeURIComponent(queue)}`);
    assert.deepEqual(gone.json, { deleted: true, queue, existed: true });
  }
  const bad = await client.request("GET", "/api/v1/pop/queue/%ff");
  assert.deepEqual([bad.status, bad.json?.code], [400, "VALIDATION_FAILED"]);
});

// ------------------------------------------------------------------------------------------------ bad input

const bad = (item: unknown): { items: unknown[] } => ({ items: [{ queue: "bad", payload: "good" }, item] });

for (const [what, item, message] of [
  ["no queue", { payload: 1 }, /items\[1\]\.queue: Queue must be a string/],
  ["a queue that is null", { queue: null }, /items\[1\]\.queue: Queue must be a string/],
  ["a queue that is a number", { queue: 5 }, /items\[1\]\.queue: Queue must be a string/],
  [
    "a partition that is null",
    { queue: "bad", partition: null },
    /items\[1\]\.partition: Partition must be a string/,
  ],
  [
    "a partition that is a number",
    { queue: "bad", partition: 5 },
    /items\[1\]\.partition: Partition must be a string/,
  ],
  ["an empty partition", { queue: "bad", partition: "" }, /items\[1\]\.partition/],
  [
    "a transactionId that is a number",
    { queue: "bad", transactionId: 5 },
    /items\[1\]\.transactionId: TransactionId must be a string/,
  ],
  [
    "a transactionId that is an object",
    { queue: "bad", transactionId: {} },
    /items\[1\]\.transactionId: TransactionId must be a string/,
  ],
  [
    "a long transactionId",
    { queue: "bad", transactionId: "x".repeat(256) },
    /items\[1\]\.transactionId.*255/,
  ],
  [
    "a traceId that is a number",
    { queue: "bad", traceId: 5 },
    /items\[1\]\.traceId: TraceId must be a string/,
  ],
  ["a traceId that is no UUID", { queue: "bad", traceId: "x" }, /items\[1\]\.traceId.*UUID/],
  [
    "a traceId with an injection",
    { queue: "bad", traceId: '12345678-1234-4234-8234-123456789abc","data":1,"x":"' },
    /items\[1\]\.traceId.*UUID/,
  ],
  ["a long queue", { queue: "x".repeat(256) }, /items\[1\]\.queue.*255 characters/],
  ["a long partition", { queue: "bad", partition: "ä".repeat(256) }, /items\[1\]\.partition.*255 characters/],
  ["a NUL in a name", { queue: "b\0d" }, /items\[1\]\.queue.*control/],
  ["a NUL in a transactionId", { queue: "bad", transactionId: "\0" }, /items\[1\]\.transactionId.*control/],
  [
    "half a surrogate pair in a name",
    { queue: "bad", partition: "\ud800" },
    /items\[1\]\.partition.*surrogate/,
  ],
  [
    "half a surrogate pair in a transactionId",
    { queue: "bad", transactionId: "\udc00" },
    /items\[1\]\.transactionId.*surrogate/,
  ],
  ["an item that is null", null, /items\[1\]/],
  ["an item that is a string", "x", /items\[1\]/],
  ["an item that is an array", [], /items\[1\]/],
] as const) {
  test(`${what} is refused by item and field, and nothing of the request is stored`, async () => {
    await assertRefused(bad(item), "VALIDATION_FAILED", message);
    const rows = await system.database.query("select 1 from queen.queues where name = 'bad'");
    assert.equal(rows.length, 0, "no queue was made");
  });
}

test("a body without items, or with something else there, is refused", async () => {
  for (const body of [{}, { items: null }, { items: {} }, { items: "x" }, [], 5, null, '"x"']) {
    await assertRefused(body === null ? "null" : body, "VALIDATION_FAILED", /^items array is required$/);
  }
  const many: PushItem[] = Array.from({ length: 10_001 }, () => ({ queue: "bad" }));
  await assertRefused({ items: many }, "VALIDATION_FAILED", /10000/);
});

test("an empty body says so", async () => {
  await assertRefused("", "INVALID_JSON", /^Empty request body$/);
});

test("malformed JSON is refused with the position, whatever it starts with", async () => {
  for (const [body, position] of [
    ["{", 1],
    ['{"items":[}', 10],
    ['{"items":[{"queue":"bad","payload":01}]}', 36],
    ['{"items":[{"queue":"bad","payload":tru}]}', undefined],
    ['{"items":[{"queue":"bad"}]} x', 28],
    ['{"items":[{"queue":"bad"},]}', undefined],
    ['{"items":[{"queue":"bad",}]}', undefined],
    ['{"items":[{"queue":"bad","payload":"\n"}]}', undefined],
    ['{"items":[{"queue":"bad","payload":"\\x"}]}', undefined],
    ["{'items':[]}", undefined],
    ['{"items":[{"queue":"bad","payload":NaN}]}', undefined],
  ] as const) {
    const where =
      position === undefined ? /^Invalid JSON at byte \d+/ : new RegExp(`^Invalid JSON at byte ${position}:`);
    await assertRefused(body, "INVALID_JSON", where);
  }
  const notUtf8 = Buffer.from('{"items":[{"queue":"bad","payload":"\xff"}]}', "latin1");
  await assertRefused(notUtf8, "INVALID_JSON", /UTF-8/i);
});

test("a payload nested deeper than 512 levels is refused; 512 levels are kept", async () => {
  const queue = newQueue();
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const body = (levels: number): string => `{"items":[{"queue":"${queue}","payload":${nested(levels)}}]}`;
  await assertRefused(body(513), "INVALID_JSON", /512 levels/);
  await assertRefused(body(100_000), "INVALID_JSON", /512 levels/);
  assert.equal((await push(body(512))).status, 201);
});

test("a body over the limit is refused with 413, with and without a length in the header", async () => {
  const large = `{"items":[{"queue":"bad","payload":"${"x".repeat(BODY_BYTES_MAX)}"}]}`;
  await assertRefused(large, "BODY_TOO_LARGE", /QUEEN_MAX_BODY_BYTES/);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sending = request(new URL("/api/v1/push", system.broker.url), { method: "POST", agent: false });
    sending.once("error", reject);
    sending.once("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    for (let sent = 0; sent <= BODY_BYTES_MAX; sent += 1_000_000) sending.write("x".repeat(1_000_000));
    sending.end();
  });
  assert.equal(status, 413);
  assert.equal(await countMessages(system.database, "bad"), 0);
  const queue = newQueue();
  const under = `{"items":[{"queue":"${queue}","payload":"${"x".repeat(BODY_BYTES_MAX - 100)}"}]}`;
  assert.equal((await push(under)).status, 201);
});

// ---------------------------------------------------------------------------------------------------- HTTP

test("a wrong method is a 405 that says what is allowed, and an unknown route a 404, both in JSON", async () => {
  const get = await client.request("GET", "/api/v1/push");
  assert.deepEqual([get.status, get.json.code, get.headers.allow], [405, "METHOD_NOT_ALLOWED", "POST"]);
  const post = await client.request("POST", "/api/v1/pop/queue/q", {});
  assert.deepEqual([post.status, post.headers.allow], [405, "GET"]);
  for (const path of [
    "/nothing",
    "/api/v1/nothing",
    "/api/v1/push/",
    "/api/v2/push",
    "/api/v1/pop/queue/a/b",
  ]) {
    const answer = await client.request("GET", path);
    assert.deepEqual([answer.status, answer.json?.code], [404, "NOT_FOUND"], path);
    assert.equal(typeof answer.json.error, "string");
  }
});

test("a CORS preflight is answered 204 for any path, and every answer has the CORS headers", async () => {
  const expected = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS",
    "access-control-allow-headers": "Content-Type, Authorization",
  };
  const corsOf = (answer: HttpAnswer) =>
    Object.fromEntries(Object.keys(expected).map((name) => [name, answer.headers[name]]));
  for (const path of ["/api/v1/push", "/nowhere"]) {
    const preflight = await client.request("OPTIONS", path);
    assert.deepEqual([preflight.status, preflight.text], [204, ""]);
    assert.deepEqual(corsOf(preflight), expected);
    assert.equal(preflight.headers["access-control-max-age"], "86400");
  }
  for (const answer of [
    await push({ items: [] }),
    await push("{"),
    await client.pop("nothing here"),
    await client.request("GET", "/nowhere"),
  ]) {
    assert.deepEqual(corsOf(answer), expected);
  }
});

test("the content type of a body does not matter", async () => {
  const queue = newQueue();
  for (const type of ["text/plain", "application/json; charset=utf-8", "application/x-www-form-urlencoded"]) {
    const answer = await client.request(
      "POST",
      "/api/v1/push",
      { items: numbered(queue, 1, type) },
      {
        headers: { "content-type": type },
      },
    );
    assert.equal(answer.status, 201);
  }
  assert.equal(await countMessages(system.database, queue), 3);
});

test("requests that a client sends without waiting for answers are each answered whole, in their order", async () => {
  const queue = newQueue();
  const { hostname, port } = new URL(system.broker.url);
  const bodies = [0, 1, 2].map((n) => JSON.stringify({ items: numbered(queue, 1, `p${n}`, n) }));
  const requests = bodies.map(
    (body, n) =>
      `POST /api/v1/push HTTP/1.1\r\nHost: queen\r\nContent-Length: ${body.length}\r\n` +
      `${n === 2 ? "Connection: close\r\n" : ""}\r\n${body}`,
  );
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  let answers = "";
  for await (const text of socket.once("connect", () => socket.write(requests.join("")))) answers += text;
  const ids = [...answers.matchAll(/"status":"queued","transaction_id":"(t\d)"/g)].map(([, id]) => id);
  assert.deepEqual(ids, ["t0", "t1", "t2"]);
});
