/** Configure, watermarks, metrics and health over HTTP: what operators set and see. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import { NOT_POOLED } from "../support/pooled.ts";
import { newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const configure = (body: unknown): Promise<HttpAnswer> =>
  system.client.request("POST", "/api/v1/configure", body);

const DEFAULTS = {
  priority: 0,
  leaseTime: 300,
  retryLimit: 3,
  retryDelay: 1_000,
  maxSize: 0,
  ttl: 3_600,
  deadLetterQueue: false,
  dlqAfterMaxRetries: false,
  delayedProcessing: 0,
  windowBuffer: 0,
  retentionSeconds: 0,
  completedRetentionSeconds: 0,
  retentionEnabled: false,
  encryptionEnabled: false,
  maxWaitTimeSeconds: 0,
  dedupWindowSeconds: 3_600,
  dedupMessagesMin: 1_000,
  dedupMessagesMax: 100_000,
};

const OTHERS = {
  priority: 7,
  leaseTime: 17,
  retryLimit: 5,
  retryDelay: 250,
  maxSize: 1_000_000,
  ttl: 60,
  deadLetterQueue: true,
  dlqAfterMaxRetries: true,
  delayedProcessing: 2,
  windowBuffer: 3,
  retentionSeconds: 4,
  completedRetentionSeconds: 5,
  retentionEnabled: true,
  encryptionEnabled: false,
  maxWaitTimeSeconds: 6,
  dedupWindowSeconds: 7,
  dedupMessagesMin: 8,
  dedupMessagesMax: 9,
};

test("configure: makes the queue and its Default partition, and echoes every option with its type", async () => {
  const queue = newQueue();
  const { status, json } = await configure({ queue, namespace: "n", task: "t", options: OTHERS });
  assert.equal(status, 200);
  const { queueId, partitionId, ...rest } = json;
  assert.match(queueId, UUID);
  assert.match(partitionId, UUID);
  assert.deepEqual(rest, { configured: true, queue, namespace: "n", task: "t", options: OTHERS });
  const [pushed] = await system.client.push([{ queue }]);
  assert.equal(pushed!.partition_id, partitionId);
});

test("configure: no options at all, null ones and empty ones give the defaults", async () => {
  for (const more of [
    {},
    { options: {} },
    { options: null },
    { namespace: null, task: null },
    { namespace: 5 },
  ]) {
    const { status, json } = await configure({ queue: newQueue(), ...more });
    assert.equal(status, 200);
    assert.deepEqual([json.configured, json.namespace, json.task, json.options], [true, "", "", DEFAULTS]);
  }
});

test("configure: replaces all options, unless mode is merge", async () => {
  const queue = newQueue();
  const first = await configure({ queue, namespace: "n", task: "t", options: OTHERS });
  const merged = await configure({ queue, mode: "merge", options: { retryLimit: 1, priority: null } });
  assert.equal(merged.json.queueId, first.json.queueId);
  assert.deepEqual(merged.json.options, { ...OTHERS, retryLimit: 1 });
  assert.deepEqual([merged.json.namespace, merged.json.task], ["n", "t"]);
  const renamed = await configure({ queue, mode: "merge", task: "u" });
  assert.deepEqual([renamed.json.namespace, renamed.json.task], ["n", "u"]);
  const replaced = await configure({ queue, mode: "replace", options: { leaseTime: 9 } });
  assert.deepEqual(replaced.json.options, { ...DEFAULTS, leaseTime: 9 });
  assert.deepEqual([replaced.json.namespace, replaced.json.task], ["", ""]);
});

test("configure: does not touch messages, and counts at once for pops", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  await configure({ queue, options: { leaseTime: 1 } });
  const { messages } = await system.client.pop(queue, { batch: 2 });
  assert.equal(messages.length, 2);
  const again = await system.client.pop(queue, { batch: 2, wait: true, timeout: 10_000 });
  assert.equal(again.messages.length, 2, "the lease ended after a second");
});

test("configure: names the options that do not exist, and does the rest", async () => {
  const { status, json } = await configure({
    queue: newQueue(),
    options: { leaseTime: 5, leasetime: 6, constructor: 1, __proto__: 1, "": 2 },
  });
  assert.equal(status, 200);
  assert.deepEqual(json.unknownOptions.toSorted(), ["", "constructor", "leasetime"]);
  assert.deepEqual(json.options, { ...DEFAULTS, leaseTime: 5 });
});

test("configure: wrong types and values are refused by name, and nothing is made or changed", async () => {
  const queue = newQueue();
  const cases: [string, unknown][] = [
    ...[
      "leaseTime",
      "retryLimit",
      "retryDelay",
      "priority",
      "maxSize",
      "ttl",
      "windowBuffer",
      "dedupMessagesMax",
    ].flatMap((name) => ["x", -1, 1.5, true, {}, [], 1e12].map((value): [string, unknown] => [name, value])),
    ...["deadLetterQueue", "dlqAfterMaxRetries", "retentionEnabled", "encryptionEnabled"].flatMap((name) =>
      ["true", 1, 0, {}].map((value): [string, unknown] => [name, value]),
    ),
  ];
  for (const [name, value] of cases) {
    const answer = await configure({ queue, options: { [name]: value } });
    const what = `${name}: ${JSON.stringify(value)}`;
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"], what);
    assert.match(answer.json.error, new RegExp(`options\\.${name}\\b`), what);
  }
  for (const options of ["x", 5, [], true]) {
    const answer = await configure({ queue, options });
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"]);
  }
  assert.equal((await configure({ queue, mode: "update" })).status, 400);
  assert.equal(
    (await system.database.query("select 1 from queen.queues where name = $1", [queue])).length,
    0,
  );
});

test("configure: encryption that the broker cannot do is refused, not forgotten", async () => {
  const queue = newQueue();
  const answer = await configure({ queue, options: { encryptionEnabled: true } });
  assert.deepEqual([answer.status, answer.json.code], [400, "VALIDATION_FAILED"]);
  assert.match(answer.json.error, /encryptionEnabled/);
  assert.equal(
    (await system.database.query("select 1 from queen.queues where name = $1", [queue])).length,
    0,
  );
});

test("configure: the queue is required, and may be the empty string", async () => {
  for (const body of [{}, { queue: null }, { queue: 5 }, [], "null"]) {
    const answer = await configure(body);
    assert.deepEqual([answer.status, answer.json?.error], [400, "queue is required"]);
  }
  assert.equal((await configure({ queue: "x".repeat(256) })).status, 400);
  assert.deepEqual((await configure("")).json.error, "Empty request body");
  assert.equal((await configure("{")).json.code, "INVALID_JSON");
  const { status, json } = await configure({ queue: "" });
  assert.deepEqual([status, json.configured, json.queue], [200, true, ""]);
});

test("configure: what one broker configures, another one does at once", NOT_POOLED, async () => {
  const { client } = await system.another();
  for (const each of [client, system.client]) {
    await until("they hear each other", async () => {
      const { state, peers } = (await each.request("GET", "/metrics")).json.bus;
      return state === "listening" && peers > 0;
    });
  }
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  assert.equal((await client.pop(queue, { consumerGroup: "before" })).status, 200);
  await configure({ queue, options: { delayedProcessing: 600 } });
  await system.client.push(numbered(queue, 1, "p"));
  assert.equal((await client.pop(queue, { partition: "p" })).emptyReason, "delayed");
});

// ------------------------------------------------------------------------------------------------- watermarks

test("an empty pop of any lane leaves a row in queen.consumer_watermarks", async () => {
  const queue = newQueue();
  await configure({ queue });
  assert.equal((await system.client.pop(queue, { consumerGroup: "g" })).status, 204);
  const row = await until("a watermark", async () => {
    const rows = await system.database.query(
      `select queue_name, consumer_group, last_empty_scan_at is not null as scanned, updated_at is not null as updated
         from queen.consumer_watermarks where queue_name = $1`,
      [queue],
    );
    return rows[0];
  });
  assert.deepEqual(row, { queue_name: queue, consumer_group: "g", scanned: true, updated: true });
});

test("a watermark hides nothing: neither set far ahead, nor deleted", async () => {
  const queue = newQueue();
  await configure({ queue });
  await system.client.pop(queue);
  await until("a watermark", async () => {
    const rows = await system.database.query(
      `update queen.consumer_watermarks set last_empty_scan_at = now() + interval '1 day', updated_at = now()
        where queue_name = $1 returning *`,
      [queue],
    );
    return rows.length === 1;
  });
  await system.client.push(numbered(queue, 1));
  assert.equal((await system.client.pop(queue)).status, 200);
  await system.database.query("delete from queen.consumer_watermarks where queue_name = $1", [queue]);
  await system.client.push(numbered(queue, 1, "p"));
  assert.equal((await system.client.pop(queue)).status, 200);
});

// ----------------------------------------------------------------------------------------- metrics and health

test("metrics: sidecar shows connections, queue and operations, and they count", async () => {
  const metrics = async () => (await system.client.request("GET", "/metrics")).json;
  const before = (await metrics()).sidecar;
  const queue = newQueue();
  await system.client.push(numbered(queue, 5));
  const { messages, json } = await system.client.pop(queue, { batch: 3 });
  await system.client.extend(json.leaseId);
  await system.client.ackMessages(messages);
  await system.client.transaction([{ type: "push", items: [{ queue }, { queue }] }]);
  const { sidecar } = await metrics();
  assert.deepEqual(Object.keys(sidecar.operations).sort(), [
    "ack",
    "pop",
    "push",
    "renew_lease",
    "transaction",
  ]);
  for (const [kind, items] of [
    ["push", 5],
    ["pop", 3],
    ["ack", 3],
    ["transaction", 2],
    ["renew_lease", 1],
  ] as const) {
    const { count, avg_ms, items: itemsNow } = sidecar.operations[kind];
    assert.equal(count - before.operations[kind].count, 1, kind);
    assert.equal(itemsNow - before.operations[kind].items, items, kind);
    assert.ok(typeof avg_ms === "number" && avg_ms > 0, kind);
  }
  assert.equal(typeof sidecar.queue.pending, "number");
  assert.ok(sidecar.queue.completed >= before.queue.completed + 5);
  assert.ok(sidecar.connections.total >= 4);
  assert.ok(sidecar.connections.busy >= 0 && sidecar.connections.busy <= sidecar.connections.total);
});

test("health, livez and readyz answer while everything is well", async () => {
  const health = await system.client.request("GET", "/health");
  assert.equal(health.status, 200);
  assert.deepEqual([health.json.status, health.json.database], ["healthy", "connected"]);
  assert.equal(typeof health.json.version, "string");
  assert.equal((await system.client.request("GET", "/livez")).status, 200);
  assert.equal((await system.client.request("GET", "/readyz")).status, 200);
});
