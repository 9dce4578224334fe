/** Encryption at rest: nothing of a payload is stored in the clear, whoever needs it gets it, nobody else does. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { HttpAnswer, HttpClient, PoppedMessage } from "../support/http.ts";
import {
  countMessages,
  dataOf,
  ids,
  idsOf,
  newQueue,
  numbered,
  type System,
  startSystem,
  until,
} from "../support/system.ts";

const [OLD, NEW] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
const idOf = (key: string): string =>
  createHash("sha256").update(Buffer.from(key, "hex")).digest("hex").slice(0, 8);

// A broker that hears of nothing: no bus, and it looks for changes once a minute.
const DEAF = { QUEEN_BUS: "off", POP_WAIT_MAX_INTERVAL_MS: "60000" };

let system: System;
let client: HttpClient;
let withoutKey: HttpClient;

before(async () => {
  system = await startSystem({ QUEEN_ENCRYPTION_KEY: OLD });
  client = system.client;
  withoutKey = (await system.another({ QUEEN_ENCRYPTION_KEY: "" })).client;
});
after(() => system?.stop());

async function encryptedQueue(options: Record<string, unknown> = {}): Promise<string> {
  const queue = newQueue("secret");
  const { json } = await client.configure(queue, { encryptionEnabled: true, ...options });
  assert.equal(json.options.encryptionEnabled, true);
  return queue;
}

const markerOf = (what: string): string => `${what}-${randomBytes(16).toString("hex")}`;

/** What is stored of a queue's messages, oldest first. */
const stored = (queue: string) =>
  system.database.query(
    `select m.transaction_id as id, m.is_encrypted, m.payload::text as payload, p.name as partition
       from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by p.name, m.message_offset`,
    [queue],
  );

const isMissingKey = ({ status, json, headers }: HttpAnswer, sentence: RegExp): void => {
  assert.deepEqual([status, json?.code], [503, "ENCRYPTION_KEY_MISSING"], JSON.stringify(json));
  assert.match(json.error, sentence);
  assert.ok(headers["retry-after"]);
};

test("no table, no file of the database and no log holds a payload of an encrypted queue", async (t) => {
  const [secret, plain] = [markerOf("secret"), markerOf("plain")];
  const queue = await encryptedQueue({ retryLimit: 0 });
  const control = newQueue();
  await client.push([
    ...["a", "b"].map((partition) => ({ queue, partition, payload: { deep: [secret] } })),
    { queue: control, payload: plain },
  ]);
  await client.transaction([{ type: "push", items: [{ queue, partition: "a", payload: secret }] }]);
  const { messages } = await client.pop(queue, { batch: 10, partitions: 2 });
  assert.equal(messages.length, 3);
  assert.equal((await client.ackMessages(messages.slice(0, 1), "failed", "no"))[0]!.dlq, true);
  assert.equal((await client.ackMessages(messages.slice(1, 2), "dlq", "no"))[0]!.dlq, true);
  await client.request("POST", "/api/v1/dlq/requeue", { queue, limit: 1 });

  const tables = await system.database.query(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'queen'",
  );
  const holds = async (marker: string): Promise<string[]> => {
    const found: string[] = [];
    for (const { name } of tables) {
      // A bytea is shown as hexadecimal digits: the marker is looked for as text and so.
      const rows = await system.database.query(
        `select 1 from ${name} t where t::text like '%' || $1 || '%' or t::text like '%' || $2 || '%' limit 1`,
        [marker, Buffer.from(marker).toString("hex")],
      );
      if (rows.length > 0) found.push(name);
    }
    return found;
  };
  assert.deepEqual(await holds(plain), ["queen.segments"], "this way of looking finds plain text");
  assert.deepEqual(await holds(secret), []);
  assert.ok(!system.broker.output().includes(secret));
  assert.ok(!system.broker.output().includes(OLD), "nor does a log hold the key");
  assert.ok(system.broker.output().includes(idOf(OLD)), "it names the key by its id");

  await system.database.query("checkpoint");
  const [row] = await system.database.query(
    `select current_setting('data_directory') as folder, oid::text from pg_database
      where datname = current_database()`,
  );
  if (!existsSync(join(row!.folder, "PG_VERSION"))) {
    t.skip("the database's files are on another machine");
    return;
  }
  const folders = [join(row!.folder, "base", row!.oid), join(row!.folder, "pg_wal")];
  assert.ok(filesWith(folders, plain) > 0, "this way of looking finds plain text");
  assert.equal(filesWith(folders, secret), 0);
});

function filesWith(folders: readonly string[], marker: string): number {
  const names = folders.flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(folder, entry.name)] : [],
    ),
  );
  return names.filter((name) => {
    try {
      return readFileSync(name).includes(marker);
    } catch {
      return false; // removed meanwhile
    }
  }).length;
}

test("every way to pop gives the payload", async () => {
  const namespace = newQueue("namespace");
  const queue = await encryptedQueue();
  await client.request("POST", "/api/v1/configure", { queue, namespace, task: "t", mode: "merge" });
  const payload = { total: 99.9 };
  const push = (partition = "p") => client.push([{ queue, partition, payload }]);
  const pops: [string, () => Promise<HttpAnswer>][] = [
    ["any partition", () => client.pop(queue)],
    ["a partition", () => client.pop(queue, { partition: "p" })],
    ["a group", () => client.pop(queue, { consumerGroup: "g", batch: 2 })],
    ["auto-ack", () => client.pop(queue, { autoAck: true })],
    [
      "queue and partition in the query",
      () => client.request("GET", `/api/v1/pop?queue=${queue}&partition=p`),
    ],
    ["a namespace", () => client.request("GET", `/api/v1/pop?namespace=${namespace}`)],
  ];
  for (const [what, pop] of pops) {
    await push();
    const { json } = await pop();
    assert.deepEqual(json?.messages[0]?.data, payload, what);
    assert.deepEqual(Object.keys(json.messages[0]).includes("isEncrypted"), false, what);
    if (json.leaseId) await client.ackMessages(json.messages);
  }
  const parked = client.pop(queue, { wait: true, timeout: 20_000 });
  await push();
  const { messages } = await parked;
  assert.deepEqual(dataOf(messages), [payload]);
  await client.ackMessages(messages);

  await push("q");
  await push("r");
  const both = await client.pop(queue, { partitions: 2, batch: 2 });
  assert.deepEqual(dataOf(both.messages), [payload, payload]);
  for (const row of await stored(queue))
    assert.deepEqual([row.is_encrypted, /total/.test(row.payload)], [true, false]);
});

test("lists, one message, dead letters, requeue and retry: shown and moved, never stored in the clear", async () => {
  const queue = await encryptedQueue();
  const [pushed] = await client.push(numbered(queue, 3));
  const at = `/api/v1/messages/${pushed!.partition_id}`;
  const one = async (id: string) => (await client.request("GET", `${at}/${id}`)).json;
  const { json: list } = await client.request("GET", `/api/v1/messages?queue=${queue}`);
  assert.deepEqual(
    list.messages.map((each: Record<string, unknown>) => [each.transactionId, each.isEncrypted, each.keyId]),
    ["t2", "t1", "t0"].map((id) => [id, true, undefined]),
  );
  const { json: brief } = await client.request("GET", `/api/v1/status/queues/${queue}/messages`);
  assert.equal(brief.length, 3);
  const shown = await one("t1");
  assert.deepEqual([shown.payload, shown.isEncrypted, shown.payloadError], [1, true, null]);
  const { transactionId, partitionId } = shown;
  await client.request("POST", "/api/v1/traces", { transactionId, partitionId, data: 1, traceNames: queue });
  const { json: traced } = await client.request("GET", `/api/v1/traces/by-name/${queue}`);
  assert.equal(traced.traces[0].message_payload, 1);

  const { messages } = await client.pop(queue, { batch: 3 });
  await client.ackMessages(messages.slice(0, 1), "dlq", "bad");
  await client.ackMessages(messages.slice(1));
  const { json: letters } = await client.request("GET", `/api/v1/dlq?queue=${queue}`);
  const [letter] = letters.messages;
  assert.deepEqual(
    [letter.transactionId, letter.data, letter.isEncrypted, letter.payloadError, letter.keyId],
    ["t0", 0, true, null, undefined],
  );
  const { json: requeued } = await client.request("POST", "/api/v1/dlq/requeue", {
    ids: [letter.deadLetterId],
  });
  assert.equal(requeued.requeued, 1);
  const { json: retried } = await client.request("POST", `${at}/t2/retry`);
  assert.equal(retried.action, "copied");
  const again = await client.pop(queue, { batch: 9, autoAck: true });
  assert.deepEqual(dataOf(again.messages), [0, 2]);
  assert.deepEqual(new Set((await stored(queue)).map((row) => row.is_encrypted)), new Set([true]));
});

test("a payload that looks like an encrypted one is the producer's own, and comes back as it was", async () => {
  const [queue, plain] = [await encryptedQueue(), newQueue()];
  await client.push([{ queue, payload: "x" }]);
  const [{ payload: text }] = (await stored(queue)) as [{ payload: string }];
  const payload = JSON.parse(text);
  for (const to of [queue, plain]) {
    await client.push([{ queue: to, payload }]);
    const popped = await client.pop(to, { batch: 2, autoAck: true });
    assert.deepEqual(popped.messages.at(-1)!.data, payload);
    const { json } = await client.request(
      "GET",
      `/api/v1/messages/${popped.messages.at(-1)!.partitionId}/${popped.messages.at(-1)!.transactionId}`,
    );
    assert.deepEqual([json.payload, json.isEncrypted], [payload, to === queue]);
  }
});

test("switched on and off, a lane holds messages of both kinds, and gives them all", async () => {
  const queue = newQueue();
  for (const [index, encryptionEnabled] of [false, true, false, true].entries()) {
    await client.configure(queue, { encryptionEnabled });
    await client.push(numbered(queue, 2, "p", index * 2));
  }
  assert.deepEqual(
    (await stored(queue)).map((row) => row.is_encrypted),
    [false, false, true, true, false, false, true, true],
  );
  const { messages } = await client.pop(queue, { batch: 10 });
  assert.deepEqual(dataOf(messages), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.ok((await client.ackMessages(messages)).every((result) => result.success));
});

test("duplicates are found by transactionId, which is not encrypted", async () => {
  const queue = await encryptedQueue();
  const [first] = await client.push([{ queue, transactionId: "t", payload: 1 }]);
  const { client: other } = await system.another();
  const [second] = await other.push([{ queue, transactionId: "t", payload: 2 }]);
  assert.deepEqual([second!.status, second!.message_id], ["duplicate", first!.message_id]);
});

test("a broker without a key cannot switch it on, and other options leave it on", async () => {
  const queue = newQueue();
  const refused = await withoutKey.request("POST", "/api/v1/configure", {
    queue,
    options: { encryptionEnabled: true },
  });
  assert.deepEqual([refused.status, refused.json.code], [400, "VALIDATION_FAILED"]);
  assert.match(refused.json.error, /QUEEN_ENCRYPTION_KEY/);
  assert.deepEqual(await system.database.query("select 1 from queen.queues where name = $1", [queue]), []);

  const encrypted = await encryptedQueue();
  const body = { queue: encrypted, mode: "merge", options: { leaseTime: 7 } };
  const { json } = await withoutKey.request("POST", "/api/v1/configure", body);
  assert.deepEqual([json.options.leaseTime, json.options.encryptionEnabled], [7, true]);
});

test("a broker without a key stores nothing in an encrypted queue, and others' pushes go on", async () => {
  const [queue, plain] = [await encryptedQueue(), newQueue()];
  const sentence = new RegExp(`^Queue ${queue} is encrypted .* nothing was stored\\. .*QUEEN_ENCRYPTION_KEY`);
  const items = (to: string) => ({ items: numbered(to, 5) });
  const [secret, other, both] = await Promise.all([
    withoutKey.request("POST", "/api/v1/push", items(queue)),
    withoutKey.request("POST", "/api/v1/push", items(plain)),
    withoutKey.request("POST", "/api/v1/push", {
      items: [...numbered(queue, 1), ...numbered(plain, 1, "both")],
    }),
  ]);
  isMissingKey(secret, sentence);
  isMissingKey(both, sentence);
  assert.equal(other.status, 201);
  isMissingKey(
    await withoutKey.transaction([
      { type: "push", items: numbered(plain, 1, "transaction") },
      { type: "push", items: numbered(queue, 1) },
    ]),
    sentence,
  );
  assert.equal(await countMessages(system.database, queue), 0);
  assert.deepEqual(
    [...new Set((await stored(plain)).map((row) => row.partition))],
    ["Default", "both"],
    "the transaction left nothing",
  );
});

test("a pop without the key says which one is missing, counts nothing, and leaves the message", async () => {
  const queue = await encryptedQueue({ retryLimit: 1 });
  const [pushed] = await client.push(numbered(queue, 3, "p"));
  const sentence = new RegExp(
    `^Message ${pushed!.message_id} of queue ${queue}, partition p, cannot be delivered and stays where it is\\. ` +
      `.*key ${idOf(OLD)}, which this broker does not have\\. .*QUEEN_ENCRYPTION_KEY`,
  );
  for (const query of [
    {},
    { partition: "p" },
    { autoAck: true },
    { batch: 3 },
    { autoAck: true, batch: 2 },
  ]) {
    for (let attempt = 0; attempt < 2; attempt++) {
      isMissingKey(await withoutKey.pop(queue, query), sentence);
    }
  }
  const parked = withoutKey.pop(queue, { consumerGroup: "late", wait: true, timeout: 20_000 });
  isMissingKey(await parked, sentence);
  assert.equal((await client.request("GET", `/api/v1/dlq?queue=${queue}`)).json.total, 0);

  const { messages } = await until("the lane is free", async () => {
    const popped = await client.pop(queue, { batch: 3 });
    return popped.messages.length > 0 && popped;
  });
  assert.deepEqual([idsOf(messages), dataOf(messages)], [ids(0, 3), [0, 1, 2]]);
  const [failures] = await system.database.query(
    `select count(*)::int4 as count from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 and c.failures is not null`,
    [queue],
  );
  assert.equal(failures!.count, 0);
});

test("lanes that can be read are delivered beside one that cannot", async () => {
  const queue = await encryptedQueue();
  await client.push(numbered(queue, 1, "sealed"));
  await client.configure(queue, { encryptionEnabled: false });
  await client.push([...numbered(queue, 1, "a"), ...numbered(queue, 1, "b")]);
  const seen: PoppedMessage[] = [];
  await until("both plain lanes were delivered", async () => {
    const { messages } = await withoutKey.pop(queue, { partitions: 3, batch: 3, autoAck: true });
    seen.push(...messages);
    return seen.length === 2;
  });
  assert.deepEqual(seen.map((message) => message.partition).sort(), ["a", "b"]);
  const left = await until("the sealed one is there again", async () => {
    const popped = await client.pop(queue, { autoAck: true });
    return popped.messages.length > 0 && popped;
  });
  assert.deepEqual(
    left.messages.map((message) => message.partition),
    ["sealed"],
  );
});

test("what cannot be decrypted is shown as it is stored, with the reason; and can be put away", async () => {
  const queue = await encryptedQueue();
  const [pushed] = await client.push(numbered(queue, 2));
  const path = `/api/v1/messages/${pushed!.partition_id}/t0`;
  const { json } = await withoutKey.request("GET", path);
  assert.deepEqual(Object.keys(json.payload), ["encrypted", "iv", "authTag"]);
  assert.equal(json.isEncrypted, true);
  assert.match(json.payloadError, new RegExp(`key ${idOf(OLD)}`));
  assert.equal((await withoutKey.request("POST", `${path}/dlq`)).status, 200);
  const { json: letters } = await withoutKey.request("GET", `/api/v1/dlq?queue=${queue}`);
  assert.deepEqual(Object.keys(letters.messages[0].data), ["encrypted", "iv", "authTag"]);
  assert.match(letters.messages[0].payloadError, new RegExp(`key ${idOf(OLD)}`));
  assert.deepEqual(dataOf((await client.pop(queue, { batch: 2 })).messages), [1]);
});

test("keys rotate: the new one encrypts, both decrypt", async () => {
  const queue = await encryptedQueue();
  await client.push(numbered(queue, 1, "p"));
  const { client: rotated } = await system.another({ QUEEN_ENCRYPTION_KEY: `${NEW},${OLD}` });
  await rotated.push(numbered(queue, 1, "p", 1));
  isMissingKey(await client.pop(queue, { batch: 2 }), new RegExp(`key ${idOf(NEW)},`));
  const { messages } = await until("the lane is free", async () => {
    const popped = await rotated.pop(queue, { batch: 2 });
    return popped.messages.length > 0 && popped;
  });
  assert.deepEqual(dataOf(messages), [0, 1]);
});

test("a message whose bytes were changed is not delivered; put away, it lets its lane go on", async () => {
  const queue = await encryptedQueue();
  const [pushed] = await client.push(numbered(queue, 2));
  const changed = await system.database.query(
    `update queen.segments s set body = overlay(body placing '\\x4141' from position('encrypted":"'::bytea in body) + 12)
       from queen.partitions p join queen.queues q on q.id = p.queue_id
      where s.partition_id = p.id and q.name = $1 returning 1`,
    [queue],
  );
  assert.equal(changed.length, 1);
  const { client: fresh } = await system.another();
  const { status, json } = await fresh.pop(queue, { batch: 2 });
  assert.deepEqual([status, json.code], [500, "MESSAGE_DAMAGED"]);
  assert.ok(json.error.includes(pushed!.message_id));
  await fresh.request("POST", `/api/v1/messages/${pushed!.partition_id}/t0/dlq`);
  const { messages } = await until("the lane goes on", async () => {
    const popped = await fresh.pop(queue, { batch: 2 });
    return popped.messages.length > 0 && popped;
  });
  assert.deepEqual(dataOf(messages), [1]);
});

test("brokers that have not heard of the switch store no plain text after it was answered", async () => {
  const queue = newQueue();
  const [{ client: deaf }, { client: deafWithoutKey }] = await Promise.all([
    system.another(DEAF),
    system.another({ ...DEAF, QUEEN_ENCRYPTION_KEY: "" }),
  ]);
  for (const [index, each] of [deaf, deafWithoutKey].entries()) {
    await each.push([...numbered(queue, 1, `push ${index}`), ...numbered(queue, 1, `transaction ${index}`)]);
  }
  await client.configure(queue, { encryptionEnabled: true });
  const transaction = (index: number) => [
    { type: "push", items: numbered(queue, 1, `transaction ${index}`, 1) },
  ];
  await deaf.push(numbered(queue, 1, "push 0", 1));
  assert.equal((await deaf.transaction(transaction(0))).status, 200);
  isMissingKey(await deafWithoutKey.transaction(transaction(1)), /nothing was stored/);
  isMissingKey(
    await deafWithoutKey.request("POST", "/api/v1/push", { items: numbered(queue, 1, "push 1", 1) }),
    /nothing was stored/,
  );
  assert.deepEqual(
    (await stored(queue)).map((row) => [row.partition, row.id, row.is_encrypted]),
    [
      ["push 0", "t0", false],
      ["push 0", "t1", true],
      ["push 1", "t0", false],
      ["transaction 0", "t0", false],
      ["transaction 0", "t1", true],
      ["transaction 1", "t0", false],
    ],
  );
});

test("switched on under load, nothing that was sent after the answer is in the clear, and nothing is lost", async () => {
  const queue = newQueue();
  const { client: deaf } = await system.another(DEAF);
  await client.push(numbered(queue, 1));
  let isOn = false;
  let isOver = false;
  const answered: string[] = [];
  let count = 0;
  const producer = async (by: HttpClient, partition: string, asTransaction: boolean): Promise<void> => {
    while (!isOver) {
      const transactionId = `${isOn ? "after" : "before"}-${count++}`;
      const items = [{ queue, partition, transactionId, payload: transactionId }];
      const { status, text } = asTransaction
        ? await by.transaction([{ type: "push", items }])
        : await by.request("POST", "/api/v1/push", { items });
      assert.ok(status === 200 || status === 201, text);
      answered.push(transactionId);
    }
  };
  const producers = [client, deaf].flatMap((by) =>
    ["a", "b", "c"].flatMap((partition) => [producer(by, partition, false), producer(by, partition, true)]),
  );
  await until("producers are under way", async () => answered.length > 100);
  await client.configure(queue, { encryptionEnabled: true });
  isOn = true;
  const before = answered.length;
  await until("producers went on", async () => answered.length > before + 100);
  isOver = true;
  await Promise.all(producers);

  const rows = (await stored(queue)).filter((row) => row.id !== "t0");
  assert.deepEqual(rows.map((row) => row.id).sort(), answered.toSorted(), "each once");
  assert.deepEqual(
    rows.filter((row) => row.id.startsWith("after") && !row.is_encrypted),
    [],
  );
  for (const partition of ["a", "b", "c"]) {
    const kinds = rows.filter((row) => row.partition === partition).map((row) => row.is_encrypted);
    assert.ok(kinds.includes(false) && kinds.includes(true), "the switch came in the middle");
    assert.ok(kinds.slice(kinds.indexOf(true)).every(Boolean), "once on, it stays on");
  }
});
