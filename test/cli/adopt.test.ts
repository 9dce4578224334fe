/**
 * `queen adopt` brings the database of another Queen over: order, times, transactionIds, places of groups and dead letters
 * are kept; whoever is cut off goes on; the source is only read.
 */
import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { after, afterEach, test } from "node:test";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { type CommandResult, runCommand, startCommand } from "../support/command.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient, type PoppedMessage } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { type OtherMessage, OtherQueen } from "../support/other-queen.ts";

const databases: TestDatabase[] = [];
const brokers: BrokerProcess[] = [];
const clients: HttpClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  for (const broker of brokers.splice(0)) await broker.kill("SIGKILL");
});
after(async () => {
  for (const database of databases) await database.drop();
});

async function source(): Promise<OtherQueen> {
  const other = await OtherQueen.create();
  databases.push(other.database);
  return other;
}

async function target(options?: { empty: boolean }): Promise<TestDatabase> {
  const database = await createDatabase(options);
  databases.push(database);
  return database;
}

/** Another Queen with a queue, and where it is to come to. */
async function orders(options?: { empty: boolean }): Promise<{ from: OtherQueen; to: TestDatabase }> {
  const from = await source();
  const to = await target(options);
  await from.queue("orders");
  return { from, to };
}

async function broker(database: TestDatabase, env: Record<string, string> = {}): Promise<HttpClient> {
  const started = await startBrokerProcess({ databaseUrl: database.url, env });
  brokers.push(started);
  const client = new HttpClient(started.url);
  clients.push(client);
  return client;
}

const adopt = (
  from: OtherQueen,
  to: TestDatabase,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<CommandResult> =>
  runCommand(["adopt", "--from", from.database.url, "--to", to.url, ...args], { env });

const numbered = (from: number, to: number, age: (index: number) => number): OtherMessage[] =>
  Array.from({ length: to - from }, (_, index) => ({
    transactionId: `t${from + index}`,
    payload: { number: from + index },
    age: age(from + index),
  }));

const pushNumbered = (
  other: OtherQueen,
  partition: string,
  from: number,
  to: number,
  age: (index: number) => number,
): Promise<void> => other.push("orders", partition, numbered(from, to, age));

const idsOf = (messages: readonly PoppedMessage[]): string[] =>
  messages.map(({ transactionId }) => transactionId);

const pauseOver = (client: HttpClient): Promise<boolean> =>
  until(
    "the pause is over",
    async () => (await client.pop("orders", { consumerGroup: "probe" })).status === 200,
  );

async function popAll(
  client: HttpClient,
  queue: string,
  partition: string,
  group?: string,
): Promise<PoppedMessage[]> {
  const answer = await client.pop(queue, {
    partition,
    batch: 1_000,
    ...(group === undefined ? {} : { consumerGroup: group }),
  });
  return [...answer.messages];
}

test("messages keep their order, time, id and trace, and every group goes on with its next one", async () => {
  const from = await source();
  const to = await target();
  await from.queue("orders", {
    namespace: "shop",
    lease_time: 77,
    retry_limit: 9,
    retry_delay: 5,
    max_wait_time_seconds: 86_400,
    retention_enabled: true,
    retention_seconds: 90_000,
    ttl: 60,
  });
  // Pushes of one, and of several at the same time.
  await from.push("orders", "a", [
    ...numbered(0, 3, () => 500),
    ...numbered(3, 6, (index) => 400 - index),
    {
      transactionId: 'quote " and ü',
      payload: { big: 1, nested: [{ a: null }] },
      age: 100,
      traceId: "0190a5b0-0000-7000-8000-000000000001",
      producerSub: "shop\\1",
    },
  ]);
  await pushNumbered(from, "b", 0, 300, () => 50);
  await pushNumbered(from, "c", 0, 4, (index) => 40 - index * 10);
  await from.push("orders", "empty", []);
  await from.consumed("orders", "a", "__QUEUE_MODE__", "t1");
  await from.consumed("orders", "a", "billing", "t4");
  await from.consumed("orders", "a", "finished", 'quote " and ü');
  await from.consumed("orders", "b", "billing", "t149");
  await from.consumed("orders", "c", "billing");
  // Starts at a time: at the cursor's start in c, and in lanes that it never met.
  await from.subscribed("late", "orders", "new", 25);
  await from.consumed("orders", "c", "late");
  const before = await from.contents();

  const result = await adopt(from, to);
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(
    result.lines().map(({ partition, messages, same }) => [partition, messages.source, messages.here, same]),
    [
      ["a", 7, 7, true],
      ["b", 300, 300, true],
      ["c", 4, 4, true],
      ["empty", 0, 0, true],
    ],
  );
  assert.match(result.stderr, /ttl=60 had no effect there/);
  assert.equal(await from.contents(), before, "the source is only read");

  const client = await broker(to);
  const a = await popAll(client, "orders", "a");
  assert.deepEqual(idsOf(a), ["t2", "t3", "t4", "t5", 'quote " and ü']);
  const { data, traceId, producerSub } = a.at(-1)!;
  assert.deepEqual(
    { data, traceId, producerSub },
    {
      data: { big: 1, nested: [{ a: null }] },
      traceId: "0190a5b0-0000-7000-8000-000000000001",
      producerSub: "shop\\1",
    },
  );
  const times = await from.database.query(
    `select m.transaction_id, to_char(m.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
       from queen.messages m join queen.partitions p on p.id = m.partition_id where p.name = 'a'`,
  );
  const timeOf = new Map(times.map((row) => [row.transaction_id, row.at]));
  for (const { transactionId, createdAt } of a) assert.equal(createdAt, timeOf.get(transactionId));
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "billing")), ["t5", 'quote " and ü']);
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "finished")), []);
  assert.deepEqual(
    idsOf(await popAll(client, "orders", "b", "billing")),
    Array.from({ length: 150 }, (_, index) => `t${150 + index}`),
  );
  assert.deepEqual(idsOf(await popAll(client, "orders", "c", "billing")), ["t0", "t1", "t2", "t3"]);
  assert.deepEqual(idsOf(await popAll(client, "orders", "c", "late")), ["t2", "t3"]);
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "late")), [], "older than its start");

  const [queue] = await to.query("select * from queen.queues where name = 'orders'");
  assert.deepEqual(
    [
      queue!.namespace,
      queue!.lease_time,
      queue!.retry_limit,
      queue!.retry_delay,
      queue!.max_wait_time_seconds,
    ],
    ["shop", 77, 9, 5, 86_400],
  );
  assert.deepEqual([queue!.retention_enabled, queue!.retention_seconds, queue!.ttl], [true, 90_000, null]);

  // It is a lane like any other: pushes go behind, and what is there is known.
  const pushed = await client.push([
    { queue: "orders", partition: "a", transactionId: "new", payload: 1 },
    { queue: "orders", partition: "b", transactionId: "t299", payload: 1 },
  ]);
  assert.deepEqual(
    pushed.map(({ status }) => status),
    ["queued", "duplicate"],
  );
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "finished")), ["new"]);
});

test("dead letters come over with error, retries and payload, and can be requeued", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "a", 0, 200, (index) => 1_000 - index);
  await from.consumed("orders", "a", "billing", "t150");
  await from.buried("orders", "a", "billing", "t7", "no such customer");
  await from.buried("orders", "a", "billing", "t120", "boom");
  const result = await adopt(from, to);
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(result.lines()[0].deadLetters, { source: 2, here: 2 });

  const client = await broker(to);
  const letters = await client.request("GET", "/api/v1/dlq?queue=orders");
  assert.deepEqual(
    letters.json.messages.map((letter: Record<string, unknown>) => [
      letter.transactionId,
      letter.errorMessage,
      letter.retryCount,
      letter.consumerGroup,
      letter.data,
    ]),
    [
      ["t120", "boom", 3, "billing", { number: 120 }],
      ["t7", "no such customer", 3, "billing", { number: 7 }],
    ],
  );
  await client.request("POST", "/api/v1/dlq/requeue", { all: true });

  // Once more, with one letter that is new there: the requeued ones do not come back.
  await from.buried("orders", "a", "billing", "t130", "late");
  const again = await adopt(from, to);
  assert.equal(again.code, 0, again.stderr + again.stdout);
  const after = await client.request("GET", "/api/v1/dlq?queue=orders");
  assert.deepEqual(
    after.json.messages.map((letter: Record<string, unknown>) => letter.transactionId),
    ["t130"],
  );
});

test("killed in the middle and run again: nothing comes twice, nothing is lost, and nobody reads meanwhile", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "a", 0, 700, (index) => 5_000 - index);
  await pushNumbered(from, "b", 0, 2_500, (index) => 5_000 - Math.floor(index / 10));
  await pushNumbered(from, "c", 0, 50, () => 10);
  for (const lane of ["a", "b", "c"]) await from.consumed("orders", lane, "billing", "t20");

  // The second chunk of lane b waits inside its transaction, and there the command is killed.
  await to.query(`
    create function wait_here() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(7); return new; end';
    create trigger wait_here before update on queen.adoptions
      for each row when (new.messages > 2000 and new.last_at > old.last_at) execute function wait_here()`);
  const holder = await to.client();
  await holder.query("select pg_advisory_lock(7)");
  const first = startCommand(["adopt", "--from", from.database.url, "--to", to.url]);
  await until("the second chunk of lane b is being written", async () => {
    const waiting = await to.query("select 1 from pg_locks where locktype = 'advisory' and not granted");
    return waiting.length > 0;
  });
  const here = await to.query(
    `select p.name, a.messages from queen.adoptions a join queen.partitions p on p.id = a.partition_id order by p.name`,
  );
  first.child.kill("SIGKILL");
  assert.equal((await first.ended).code, "SIGKILL");
  await holder.query("select pg_advisory_unlock(7)"); // what the server does with the dead client's last call is its own
  assert.deepEqual(
    here.map(({ name, messages }) => [name, messages]),
    [
      ["a", 700],
      ["b", 2_000],
      ["c", 0],
    ],
  );

  const client = await broker(to);
  const paused = await client.pop("orders", { consumerGroup: "billing" });
  assert.deepEqual([paused.status, paused.emptyReason], [204, "paused"]);

  const second = await adopt(from, to);
  assert.equal(second.code, 0, second.stderr);
  assert.ok(second.lines().every(({ same }) => same === true));
  await pauseOver(client);
  for (const [lane, count] of [
    ["a", 700],
    ["b", 2_500],
    ["c", 50],
  ] as const) {
    const seen: string[] = [];
    for (;;) {
      const { messages } = await client.pop("orders", {
        partition: lane,
        consumerGroup: "billing",
        batch: 1_000,
        autoAck: true,
      });
      if (messages.length === 0) break;
      seen.push(...idsOf(messages));
    }
    assert.deepEqual(
      seen,
      Array.from({ length: count - 21 }, (_, index) => `t${21 + index}`),
    );
  }
});

test("run again it brings what is new, moves places forward, and leaves what consumers did here", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "a", 0, 10, (index) => 100 - index);
  await from.consumed("orders", "a", "there", "t2");
  await from.consumed("orders", "a", "here", "t2");
  assert.equal((await adopt(from, to)).code, 0);

  const client = await broker(to);
  const popped = await client.pop("orders", { partition: "a", consumerGroup: "here", batch: 4 });
  await client.ackMessages(popped.messages);
  await pushNumbered(from, "a", 10, 14, (index) => 50 - index);
  await pushNumbered(from, "new", 0, 2, () => 1);
  await from.consumed("orders", "a", "there", "t11");

  const again = await adopt(from, to);
  assert.equal(again.code, 2, "billing went on here, so that its place differs");
  const [a, fresh] = again.lines();
  assert.deepEqual(a.messages, { source: 14, here: 14 });
  assert.deepEqual(fresh.messages, { source: 2, here: 2 });
  assert.deepEqual(a.groups, [
    { group: "here", source: 11, here: 7 },
    { group: "there", source: 2, here: 2 },
  ]);
  await pauseOver(client);
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "there")), ["t12", "t13"]);
  assert.deepEqual(
    idsOf(await popAll(client, "orders", "a", "here")),
    Array.from({ length: 7 }, (_, index) => `t${7 + index}`),
  );
});

test("what the source has removed meanwhile hides nothing that is new, and places stay where they are", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "a", 0, 10, (index) => 100 - index);
  await from.consumed("orders", "a", "g", "t5");
  assert.equal((await adopt(from, to)).code, 0);
  await from.database.query("delete from queen.messages where transaction_id in ('t0', 't1', 't2', 't3')");
  await pushNumbered(from, "a", 10, 12, (index) => 50 - index);
  await from.consumed("orders", "a", "g", "t7");
  const again = await adopt(from, to);
  assert.equal(again.code, 2);
  assert.match(again.lines()[0].problem, /has removed messages/);
  assert.deepEqual(again.lines()[0].messages, { source: 8, here: 12 });
  const client = await broker(to);
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "g")), ["t8", "t9", "t10", "t11"]);

  // A message that was stored late, behind the back of the first run, is not passed over in silence.
  await from.push("orders", "a", [{ transactionId: "late", age: 99.5 }]);
  await pushNumbered(from, "a", 12, 16, () => 10);
  await from.database.query("delete from queen.messages where transaction_id = 't4'");
  await pushNumbered(from, "late", 0, 2, () => 10);
  assert.equal((await adopt(from, to, ["--queue", "orders"])).code, 2);
  await from.push("orders", "late", [{ transactionId: "late", age: 20 }]);
  const late = (await adopt(from, to)).lines()[1];
  assert.deepEqual(late.messages, { source: 3, here: 2 });
  assert.match(late.problem, /stored late/);
});

test("a push that comes in between is noticed: the lane is named, and nothing of it is mixed", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "a", 0, 3, () => 100);
  assert.equal((await adopt(from, to)).code, 0);
  const client = await broker(to);
  await client.push([{ queue: "orders", partition: "a", transactionId: "here", payload: 1 }]);
  await pushNumbered(from, "a", 3, 5, () => 10);
  const again = await adopt(from, to);
  assert.equal(again.code, 2);
  assert.match(again.lines()[0].problem, /has messages of its own from offset 3 on/);
  await pauseOver(client);
  assert.deepEqual(idsOf(await popAll(client, "orders", "a", "g")), ["t0", "t1", "t2", "here"]);
});

test("a lane with messages of its own is named and left alone; the others come over", async () => {
  const { from, to } = await orders();
  await pushNumbered(from, "mine", 0, 5, () => 10);
  await pushNumbered(from, "yours", 0, 5, () => 10);
  const client = await broker(to);
  await client.push([{ queue: "orders", partition: "mine", transactionId: "own", payload: 1 }]);

  const result = await adopt(from, to);
  assert.equal(result.code, 2);
  const [mine, yours] = result.lines();
  assert.match(mine.problem, /has 1 messages of its own/);
  assert.equal(yours.same, true);
  await pauseOver(client);
  assert.deepEqual(idsOf(await popAll(client, "orders", "mine", "g")), ["own"]);
  assert.deepEqual(idsOf(await popAll(client, "orders", "yours", "g")), ["t0", "t1", "t2", "t3", "t4"]);
});

test("a role that may only read is enough for the source, and a dry run writes nothing", async () => {
  const { from, to } = await orders({ empty: true });
  await pushNumbered(from, "a", 0, 5, () => 10);
  await from.consumed("orders", "a", "g", "t1");
  const role = `queen_reader_${randomBytes(4).toString("hex")}`;
  await from.database.query(`create role ${role} login password 'secret'`);
  await from.database.query(`grant usage on schema queen to ${role}`);
  await from.database.query(`grant select on all tables in schema queen to ${role}`);
  try {
    const url = new URL(from.database.url);
    url.username = role;
    url.password = "secret";
    const args = ["adopt", "--from", url.href, "--to", to.url];
    const dry = await runCommand([...args, "--dry-run"]);
    assert.equal(dry.code, 0, dry.stderr);
    assert.deepEqual(dry.lines(), [
      {
        queue: "orders",
        partition: "a",
        messages: { source: 5, here: 0 },
        deadLetters: { source: 0, here: 0 },
        groups: [{ group: "g", source: 3, here: null }],
        same: false,
      },
    ]);
    assert.deepEqual(await to.query("select 1 from pg_namespace where nspname = 'queen'"), []);

    const real = await runCommand(args);
    assert.equal(real.code, 0, real.stderr);
    assert.deepEqual(await to.query("select messages from queen.adoptions"), [{ messages: 5 }]);
  } finally {
    await from.database.query(`drop owned by ${role}`);
    await from.database.query(`drop role ${role}`);
  }
});

test("encrypted messages stay encrypted and are opened with the key of the source", async () => {
  const from = await source();
  const to = await target();
  const key = randomBytes(32);
  const iv = randomBytes(16);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const encrypted = Buffer.concat([cipher.update('{"card":"4711"}', "utf8"), cipher.final()]).toString(
    "base64",
  );
  const payload = { encrypted, iv: iv.toString("base64"), authTag: cipher.getAuthTag().toString("base64") };
  await from.queue("cards", { encryption_enabled: true });
  await from.push("cards", "a", [
    { transactionId: "sealed", payload, age: 10, isEncrypted: true },
    { transactionId: "plain", payload: { was: "stored before" }, age: 5 },
  ]);

  const without = await adopt(from, to);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /QUEEN_ENCRYPTION_KEY/);

  const env = { QUEEN_ENCRYPTION_KEY: key.toString("hex") };
  const result = await adopt(from, to, [], env);
  assert.equal(result.code, 0, result.stderr);
  const [stored] = await to.query("select payload::text from queen.messages where transaction_id = 'sealed'");
  assert.doesNotMatch(stored!.payload, /4711/);
  const client = await broker(to, env);
  const messages = await popAll(client, "cards", "a");
  assert.deepEqual(
    messages.map(({ transactionId, data }) => [transactionId, data]),
    [
      ["sealed", { card: "4711" }],
      ["plain", { was: "stored before" }],
    ],
  );
});

test("what is no other Queen is refused before anything is written", async () => {
  const to = await target({ empty: true });
  const nothing = await target({ empty: true });
  const ours = await target();
  const refused = async (from: TestDatabase, why: RegExp): Promise<void> => {
    const result = await runCommand(["adopt", "--from", from.url, "--to", to.url]);
    assert.equal(result.code, 1, result.stderr);
    assert.match(result.stderr, why);
  };
  await refused(nothing, /has no schema queen/);
  await refused(ours, /has the tables of this Queen already/);
  assert.deepEqual(await to.query("select 1 from pg_namespace where nspname = 'queen'"), []);
});
