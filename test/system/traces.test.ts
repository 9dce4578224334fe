/** Traces: what consumers note about messages, by message and by name; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import { newQueue, numbered, type System, startSystem } from "../support/system.ts";

let system: System;
before(async () => {
  system = await startSystem();
});
after(() => system.stop());

const get = async (path: string) => {
  const answer = await system.client.request("GET", `/api/v1/traces/${path}`);
  assert.equal(answer.status, 200, answer.text);
  return answer;
};
const trace = (body: unknown): Promise<HttpAnswer> => system.client.request("POST", "/api/v1/traces", body);

async function noted(body: unknown): Promise<string> {
  const answer = await trace(body);
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(Object.keys(answer.json), ["success", "traceId"]);
  assert.match(answer.json.traceId, /^[0-9a-f]{8}-[0-9a-f]{4}-8005-8000-0{12}$/);
  return answer.json.traceId;
}

/** A queue with messages t0, t1, … in partition p; returns the partition's id. */
async function pushed(queue: string, count: number): Promise<string> {
  const [first] = await system.client.push(numbered(queue, count, "p"));
  return first!.partition_id!;
}

test("nothing is noted yet: empty lists", async () => {
  const pagination = { limit: 50, offset: 0 };
  assert.deepEqual((await get("names")).json, { trace_names: [], total: 0, pagination });
  assert.deepEqual((await get("by-name/x")).json, {
    traces: [],
    total: 0,
    pagination: { limit: 100, offset: 0 },
  });
  assert.deepEqual((await get("00000000-0001-8002-8000-000000000000/x")).json, { traces: [] });
  assert.deepEqual((await get("0af76519-16cd-43dd-8448-eb211c80319c/x")).json, { traces: [] });
});

test("a message's traces come the oldest first, with their data byte for byte", async () => {
  const partitionId = await pushed(newQueue(), 2);
  const first = await noted({ partitionId, transactionId: "t1", data: { step: 1 }, eventType: "start" });
  const data = '{"big":12345678901234567890.10,"b":1,"a":"\\u0000\\ud800 é"}';
  const second = await noted(
    `{"data":${data},"partitionId":"${partitionId}","transactionId":"t1","consumerGroup":"g","traceNames":["n2","n1","n2"]}`,
  );
  await noted({ partitionId, transactionId: "t0", data: null });
  const { json, text } = await get(`${partitionId}/t1`);
  assert.ok(text.includes(`"data":${data},`), text);
  const [one, two] = json.traces;
  assert.equal(json.traces.length, 2);
  assert.deepEqual(one, {
    id: first,
    event_type: "start",
    data: { step: 1 },
    consumer_group: "__QUEUE_MODE__",
    worker_id: "0",
    created_at: one.created_at,
    trace_names: [],
  });
  assert.deepEqual(
    [two.id, two.event_type, two.consumer_group, two.trace_names],
    [second, "info", "g", ["n1", "n2"]],
  );
  assert.ok(Math.abs(Date.parse(two.created_at) - Date.now()) < 60_000);
  assert.equal((await get(`${partitionId}/t1?limit=1&offset=1`)).json.traces[0].id, second);
});

test("traces with a name come from all messages, with payloads, page by page and with the total", async () => {
  const [queue, other] = [newQueue("trace ü"), newQueue()];
  const partitionId = await pushed(queue, 3);
  const [elsewhere] = await system.client.push([
    { queue: other, transactionId: "x ü/1", payload: { n: 1, ü: "é" } },
  ]);
  const name = "order/1 ü";
  const made: string[] = [];
  for (const transactionId of ["t0", "t2"]) {
    made.push(await noted({ partitionId, transactionId, data: 1, traceNames: name }));
  }
  made.push(
    await noted({
      partitionId: elsewhere!.partition_id,
      transactionId: "x ü/1",
      data: 2,
      traceNames: [name, "more"],
    }),
  );
  const path = `by-name/${encodeURIComponent(name)}`;
  const { json } = await get(path);
  const last = json.traces[2];
  assert.deepEqual(
    json.traces.map((each: { id: string }) => each.id),
    made,
  );
  assert.deepEqual(last, {
    id: made[2],
    transaction_id: "x ü/1",
    partition_id: elsewhere!.partition_id,
    event_type: "info",
    data: 2,
    consumer_group: "__QUEUE_MODE__",
    worker_id: "0",
    created_at: last.created_at,
    queue_name: other,
    partition_name: "Default",
    message_payload: { n: 1, ü: "é" },
    trace_names: ["more", name],
  });
  assert.deepEqual([json.traces[0].queue_name, json.traces[1].message_payload], [queue, 2]);
  assert.deepEqual([json.total, json.pagination], [3, { limit: 100, offset: 0 }]);
  const page = (await get(`${path}?limit=1&offset=1`)).json;
  assert.deepEqual(
    [page.traces.map((each: { id: string }) => each.id), page.total, page.pagination],
    [[made[1]], 3, { limit: 1, offset: 1 }],
  );
  const beyond = (await get(`${path}?offset=3`)).json;
  assert.deepEqual([beyond.traces, beyond.total], [[], 3]);
});

test("names come the one used last first, with counts of traces and messages", async () => {
  const partitionId = await pushed(newQueue(), 2);
  for (const [transactionId, traceNames] of [
    ["t0", ["names-a"]],
    ["t0", ["names-a", "names-b"]],
    ["t1", ["names-c"]],
    ["t1", ["names-a"]],
  ] as const) {
    await noted({ partitionId, transactionId, data: {}, traceNames });
  }
  const { trace_names: names, total } = (await get("names?limit=3")).json;
  assert.deepEqual(
    names.map((each: Record<string, unknown>) => [each.trace_name, each.trace_count, each.message_count]),
    [
      ["names-a", 3, 2],
      ["names-c", 1, 1],
      ["names-b", 1, 1],
    ],
  );
  assert.ok(Math.abs(Date.parse(names[0].last_seen) - Date.now()) < 60_000);
  assert.equal((await get("names?limit=1&offset=1")).json.trace_names[0].trace_name, "names-c");
  assert.deepEqual((await get(`names?offset=${total}`)).json.trace_names, []);
});

test("a consumer notes something about what it holds, also where it is not the newest of its id", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { dedupWindowSeconds: 0, dedupMessagesMin: 0, dedupMessagesMax: 0 });
  const [first] = await system.client.push([{ queue, transactionId: "same", payload: "first" }]);
  const { messages } = await system.client.pop(queue);
  await system.database.query(
    `insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
     select s.partition_id, 1, 1, s.created_at, s.keys, s.ends, convert_to(replace(convert_from(s.body, 'UTF8'), '"first"', '"later"'), 'UTF8')
       from queen.segments s join queen.partitions p on p.id = s.partition_id join queen.queues q on q.id = p.queue_id
      where q.name = $1`,
    [queue],
  );
  await system.database.query(
    "update queen.partitions p set next_offset = 2 from queen.queues q where q.id = p.queue_id and q.name = $1",
    [queue],
  );
  assert.equal(messages.length, 1);
  await noted({ partitionId: first!.partition_id, transactionId: "same", data: 1, traceNames: "held" });
  await noted({
    partitionId: first!.partition_id,
    transactionId: "same",
    data: 2,
    traceNames: "held",
    consumerGroup: "idle",
  });
  const { traces } = (await get("by-name/held")).json;
  assert.deepEqual(
    traces.map((each: { message_payload: string }) => each.message_payload),
    ["first", "later"],
  );
});

test("a dead letter can be noted about, and its payload outlives the log", async () => {
  const queue = newQueue();
  const partitionId = await pushed(queue, 1);
  const { messages } = await system.client.pop(queue);
  await system.client.ackMessages(messages, "dlq");
  await noted({ partitionId, transactionId: "t0", data: 1, traceNames: "dead" });
  assert.equal((await get("by-name/dead")).json.traces[0].message_payload, 0);
  await system.client.request("DELETE", `/api/v1/queues/${queue}/clear`);
  assert.equal((await get("by-name/dead")).json.total, 0, "a cleared message's traces go with it");
  await noted({ partitionId, transactionId: "t0", data: 2, traceNames: "dead" });
  assert.equal((await get("by-name/dead")).json.traces[0].message_payload, 0);
});

test("traces go with their message and with their queue", async () => {
  const queue = newQueue();
  const partitionId = await pushed(queue, 2);
  for (const transactionId of ["t0", "t1"]) {
    await noted({ partitionId, transactionId, data: 1, traceNames: "gone" });
  }
  await system.client.request("DELETE", `/api/v1/messages/${partitionId}/t0`);
  assert.equal((await get("by-name/gone")).json.total, 1);
  await system.client.request("DELETE", `/api/v1/resources/queues/${queue}`);
  assert.equal((await get("by-name/gone")).json.total, 0);
  assert.deepEqual((await get(`${partitionId}/t1`)).json, { traces: [] });
});

test("what cannot be noted is said so", async () => {
  const partitionId = await pushed(newQueue(), 1);
  for (const [body, status, error] of [
    [undefined, 400, "Empty request body"],
    ["{", 400, /^Invalid JSON/],
    [{}, 400, "transactionId and partitionId are required"],
    [{ partitionId, transactionId: "t0" }, 400, "data is required"],
    [{ partitionId: "5", transactionId: "t0", data: 1 }, 400, /^partitionId must be a UUID/],
    [{ partitionId, transactionId: "t0", data: 1, traceNames: [7] }, 400, /^traceNames\[0\]/],
    [{ partitionId, transactionId: "none", data: 1 }, 404, "Message not found"],
    [
      { partitionId: "0af76519-16cd-43dd-8448-eb211c80319c", transactionId: "t0", data: 1 },
      404,
      "Message not found",
    ],
    [
      { partitionId: "0000ffff-ffff-8002-8000-000000000000", transactionId: "t0", data: 1 },
      404,
      "Message not found",
    ],
  ] as const) {
    const answer = await trace(body);
    assert.equal(answer.status, status, answer.text);
    if (typeof error === "string") assert.equal(answer.json.error, error);
    else assert.match(answer.json.error, error);
  }
  assert.equal((await system.client.request("GET", "/api/v1/traces/nonsense/t0")).status, 400);
});
