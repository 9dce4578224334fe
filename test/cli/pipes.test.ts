/** The `queen` command by pipes, as scripts use it: what it reads, what it prints, and its exit codes. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type CommandOptions, type CommandResult, runCommand, startCommand } from "../support/command.ts";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/moments.ts";
import { newQueue, numbered, type System, startSystem } from "../support/system.ts";

let system: System;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "queen-cli-"));
  system = await startSystem();
});
after(async () => {
  await system?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const queen = (args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> =>
  runCommand(args, { ...options, env: { QUEEN_URL: system.broker.url, ...options.env } });

/** Runs it and expects it to succeed. */
async function ok(args: readonly string[], input?: string): Promise<CommandResult> {
  const result = await queen(args, input === undefined ? {} : { input });
  assert.equal(result.code, 0, `queen ${args.join(" ")}: ${result.stderr}`);
  return result;
}

test("lines are pushed in their order, numbers as they are written, and come back so", async () => {
  const queue = newQueue();
  const lines = Array.from(
    { length: 1_200 },
    (_, index) => `{"n":${index},"big":1234567890123456789${index % 10},"f":1.10}`,
  );
  const pushed = await ok(["push", queue, "-p", "a"], `${lines.join("\n")}\n\n`);
  assert.deepEqual(pushed.json(), {
    queue,
    messages: 1_200,
    queued: 1_200,
    duplicate: 0,
    buffered: 0,
    failed: 0,
  });
  assert.match(pushed.stderr, /push: 1,200 messages/);

  const popped = await ok(["pop", queue, "--batch", "2000", "-o", "ndjson"]);
  assert.deepEqual(
    popped.stdout
      .trimEnd()
      .split("\n")
      .map((line) => /"data":(\{[^}]*\})/.exec(line)![1]),
    lines,
  );
  const acked = await ok(["ack"], popped.stdout);
  assert.equal(acked.lines().filter(({ success }) => success === true).length, 1_200);
  const empty = await queen(["pop", queue]);
  assert.deepEqual([empty.code, empty.stdout], [4, ""]);
  assert.match(empty.stderr, /No message: no_available_partition/);
});

test("a file that is pushed twice by --id-from is stored once, in a lane for each customer", async () => {
  const queue = newQueue();
  const file = join(folder, "orders.ndjson");
  writeFileSync(
    file,
    [1, 2, 3, 4].map((id) => JSON.stringify({ id, customer: { name: `c${id % 2}` } })).join("\n"), // no newline at its end
  );
  const args = ["push", queue, "--file", file, "--partition-from", "customer.name", "--id-from", "id"];
  assert.equal(((await ok(args)).json() as { queued: number }).queued, 4);
  assert.equal(((await ok(args)).json() as { duplicate: number }).duplicate, 4);
  const c0 = await ok(["pop", queue, "-p", "c0", "-b", "10"]);
  assert.deepEqual(
    c0.lines().map(({ transactionId }) => transactionId),
    ["2", "4"],
  );
});

test("lines that come slowly are pushed as they come", async () => {
  const queue = newQueue();
  const env = { QUEEN_URL: system.broker.url };
  const { child, ended } = startCommand(["push", queue], { env, input: "1\n", isInputOpen: true });
  await until(
    "the first is there",
    async () => (await system.client.pop(queue, { autoAck: true })).messages.length === 1,
  );
  child.stdin!.end("2\n3");
  assert.equal(((await ended).json() as { queued: number }).queued, 3);
  const rest = await system.client.pop(queue, { batch: 10 });
  assert.deepEqual(
    rest.messages.map(({ data }) => data),
    [2, 3],
  );
});

test("a line that is no JSON, or has no such field, is named, and what was stored before it is said", async () => {
  const bad = await queen(["push", newQueue()], { input: '{"a":1}\n{"a":\n' });
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /Line 2 of standard input is not JSON/);
  assert.match(bad.stderr, /0 messages were stored before this/);
  const missing = await queen(["push", newQueue(), "--id-from", "id"], { input: '{"id":1}\n{"a":1}\n' });
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /line 2 of standard input has no id/);
});

test("tail shows without taking: no group appears, no place moves, and leases stay", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 5, "a"));
  await system.client.pop(queue, { consumerGroup: "g", batch: 2 });
  const groups = async () =>
    (await system.client.request("GET", `/api/v1/consumer-groups?queue=${queue}`)).text;
  const before = JSON.parse(await groups());
  const shown = await ok(["tail", queue, "-n", "3"]);
  assert.deepEqual(
    shown.lines().map(({ transactionId, data }) => [transactionId, data]),
    [
      ["t2", 2],
      ["t3", 3],
      ["t4", 4],
    ],
  );
  const next = await ok(["tail", queue, "--group", "g", "-n", "2"]);
  assert.deepEqual(
    next.lines().map(({ transactionId }) => transactionId),
    ["t0", "t1"],
  );
  const after = JSON.parse(await groups());
  assert.deepEqual(
    after.map(({ name, totalLag, members }: Record<string, unknown>) => [name, totalLag, members]),
    before.map(({ name, totalLag, members }: Record<string, unknown>) => [name, totalLag, members]),
  );
  assert.equal((await queen(["tail", newQueue()])).code, 4);
});

test("tail -f shows what comes, in the lanes' order and once, and its output can be pushed elsewhere", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2, "a"));
  const following = startCommand(["tail", queue, "-f", "-o", "ndjson"], {
    env: { QUEEN_URL: system.broker.url },
  });
  const seen = (): { partition: string; transactionId: string }[] =>
    following
      .stdout()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  await until("it shows what was there", () => seen().length === 2);
  for (const [lane, from] of [
    ["a", 2],
    ["b", 0],
    ["a", 4],
    ["b", 2],
  ] as const) {
    await system.client.push(numbered(queue, 2, lane, from));
  }
  await until("it shows what came", () => seen().length >= 10);
  following.child.kill("SIGINT");
  await following.ended;
  for (const [lane, count] of [
    ["a", 6],
    ["b", 4],
  ] as const) {
    assert.deepEqual(
      seen()
        .filter(({ partition }) => partition === lane)
        .map(({ transactionId }) => transactionId),
      Array.from({ length: count }, (_, index) => `t${index}`),
    );
  }
  const copy = newQueue("copy");
  await ok(["push", copy, "--items"], following.stdout());
  const copied = await ok(["pop", copy, "-p", "b", "-b", "100"]);
  assert.deepEqual(
    copied.lines().map(({ transactionId, data }) => [transactionId, data]),
    [0, 1, 2, 3].map((index) => [`t${index}`, index]),
  );
});

test("exit codes: 1 usage, 2 server, 3 not allowed, 4 empty", async () => {
  const typo = await queen(["qeues"]);
  assert.equal(typo.code, 1);
  assert.match(typo.stderr, /Did you mean queues\?/);
  const typoInFamily = await queen(["dlq", "requeu"]);
  assert.equal(typoInFamily.code, 1);
  assert.match(typoInFamily.stderr, /Did you mean requeue\?/);
  const option = await queen(["pop", "q", "--bacth", "2"]);
  assert.equal(option.code, 1);
  assert.match(option.stderr, /Did you mean --batch\?/);
  assert.equal((await queen(["pop"])).code, 1);
  assert.equal((await queen(["push", "q", "1", "--trace-id", "no UUID"])).code, 1);
  const missing = await queen(["queue", "show", "no-such-queue"]);
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /NOT_FOUND/);
  const away = await queen(["queues"], { env: { QUEEN_URL: "http://127.0.0.1:9" } });
  assert.equal(away.code, 2);
  assert.match(away.stderr, /Is a broker running there\?/);
});

test("keys: a key may do what its role says, and a revoked one nothing", async () => {
  const adminKey = "an admin key that is long enough for the broker";
  const { broker } = await system.another({ QUEEN_ADMIN_KEY: adminKey });
  const env = { QUEEN_URL: broker.url };
  const without = await queen(["queues"], { env });
  assert.equal(without.code, 3);
  assert.match(without.stderr, /QUEEN_TOKEN/);
  const admin = { env: { ...env, QUEEN_TOKEN: adminKey } };
  const made = (
    await queen(["keys", "create", "shop", "--role", "produce", "--queue", "orders*"], admin)
  ).json() as {
    id: string;
    key: string;
  };
  const shop = { env: { ...env, QUEEN_TOKEN: made.key } };
  assert.equal((await queen(["push", "orders-1", "1"], shop)).code, 0);
  assert.equal((await queen(["push", "invoices", "1"], shop)).code, 3);
  assert.equal((await queen(["pop", "orders-1"], shop)).code, 3);
  const listed = (await queen(["keys", "list"], admin)).lines();
  assert.deepEqual(
    listed.map(({ name, role, queues }) => [name, role, queues]),
    [["shop", "produce", ["orders*"]]],
  );
  assert.equal((await queen(["keys", "revoke", made.id, "--yes"], admin)).code, 0);
  await until("the key is revoked", async () => (await queen(["push", "orders-1", "1"], shop)).code === 3);
});

test("users: the password comes by a pipe, and a user can be removed again", async () => {
  const adminKey = "an admin key that is long enough for the broker";
  const { broker } = await system.another({ QUEEN_ADMIN_KEY: adminKey });
  const admin = { env: { QUEEN_URL: broker.url, QUEEN_TOKEN: adminKey } };
  const input = "a password of tests\nand more\n";
  const made = await queen(["users", "add", "ada", "--queue", "orders*"], { ...admin, input });
  assert.equal(made.code, 0, made.stderr);
  const { name, role, queues } = made.json() as Record<string, unknown>;
  assert.deepEqual([name, role, queues], ["ada", "read-only", ["orders*"]]);
  const signIn = async (password: string): Promise<number> => {
    const response = await fetch(`${broker.url}/api/v1/session`, {
      method: "POST",
      headers: { "Queen-Page": "1" },
      body: JSON.stringify({ user: "ada", password }),
    });
    return response.status;
  };
  assert.equal(await signIn("a password of tests"), 200);
  const none = await queen(["users", "password", "ada"], admin);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /A password is needed/);
  assert.equal((await queen(["users", "password", "ada"], { ...admin, input: "another password" })).code, 0);
  assert.deepEqual([await signIn("a password of tests"), await signIn("another password")], [401, 200]);
  const [listed] = (await queen(["users", "list"], admin)).lines();
  assert.deepEqual([listed.name, listed.sessions], ["ada", 1]);
  assert.equal((await queen(["users", "remove", "ada"], admin)).code, 1, "nobody can be asked");
  assert.equal((await queen(["users", "remove", "ada", "--yes"], admin)).code, 0);
  assert.equal(await signIn("another password"), 401);
});

test("one list in four formats says the same", async () => {
  const queue = newQueue("formats");
  await system.client.push(numbered(queue, 3));
  const args = ["queues", "--search", queue];
  const json = (await ok([...args, "-o", "json"])).json() as { name: string; messages: { total: number } }[];
  assert.deepEqual([json.length, json[0]!.name, json[0]!.messages.total], [1, queue, 3]);
  assert.deepEqual((await ok(args)).lines(), json, "without a terminal it is a line of JSON for each");
  const yaml = (await ok([...args, "-o", "yaml"])).stdout;
  assert.match(yaml, new RegExp(`- id: .*\\n  name: ${queue}\\n[^]*total: 3\\n`));
  const table = (await ok([...args, "-o", "table"])).stdout.split("\n");
  assert.match(table[0]!, /^QUEUE +PARTITIONS +PENDING/);
  assert.match(table[1]!, new RegExp(`^${queue} +1 +3 +0 +3 `));
});

test("what cannot be taken back needs --yes where nobody can be asked", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  const commands = [
    ["queue", "delete", queue],
    ["queue", "clear", queue],
    ["groups", "delete", "g"],
    ["seek", "g", queue, "--to-end"],
    ["keys", "revoke", "1"],
  ];
  for (const command of commands) {
    const result = await queen(command);
    assert.equal(result.code, 1, command.join(" "));
    assert.match(result.stderr, /say --yes/);
  }
  assert.deepEqual((await ok(["queue", "clear", queue, "--yes"])).json(), {
    cleared: true,
    queue,
    messages: 2,
    partitions: 1,
    deadLetters: 0,
  });
  await ok(["queue", "delete", queue, "--yes"]);
  assert.equal((await queen(["queue", "show", queue])).code, 2);
});

test("dead letters are listed, requeued request by request, and purged", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0 });
  await system.client.push(numbered(queue, 1_100));
  const popped = await system.client.pop(queue, { batch: 1_100 });
  await system.client.ackMessages(popped.messages, "dlq", "boom");
  const listed = (await ok(["dlq", "list", "--queue", queue, "-n", "5"])).lines();
  assert.deepEqual(
    listed.map(({ errorMessage }) => errorMessage),
    Array(5).fill("boom"),
  );
  assert.equal((await queen(["dlq", "requeue", "--queue", queue])).code, 1);
  const requeued = await ok(["dlq", "requeue", "--queue", queue, "--yes"]);
  assert.deepEqual(requeued.json(), { requeued: 1_100, chosen: 1_100 });
  assert.match(requeued.stderr, /requeue: 1,100 of 1,100 dead letters \(100 %\)/);
  const again = await system.client.pop(queue, { batch: 2_000 });
  assert.equal(again.messages.length, 1_100);
  await system.client.ackMessages(again.messages.slice(0, 3), "dlq", "boom");
  const [first] = (await ok(["dlq", "list", "--queue", queue])).lines();
  assert.deepEqual((await ok(["dlq", "purge", first.deadLetterId, "--yes"])).json(), {
    purged: 1,
    chosen: 1,
  });
  assert.deepEqual((await ok(["dlq", "purge", "--queue", queue, "--yes"])).json(), { purged: 2, chosen: 2 });
  assert.equal((await queen(["dlq", "purge", "--yes"])).code, 1, "nothing said is not everything");
});

test("operators' commands: configure, groups, seek, lag, pause, resume, explain, maintenance, doctor", async () => {
  const queue = newQueue();
  await ok(["queue", "configure", queue, "leaseTime=7", "retryLimit=1"]);
  await ok(["queue", "configure", queue, "retryLimit=2"]);
  const { config } = (await ok(["queue", "show", queue, "-o", "json"])).json() as {
    config: Record<string, number>;
  };
  assert.deepEqual([config.leaseTime, config.retryLimit], [7, 2]);
  assert.equal((await queen(["queue", "configure", queue, "leasTime=7"])).code, 1);

  await system.client.push(numbered(queue, 4, "a"));
  await ok(["pop", queue, "-g", "g", "-b", "1", "--ack"]);
  assert.equal((await ok(["groups", "list", queue])).lines()[0].totalLag, 3);
  const places = (await ok(["groups", "show", "g", "--queue", queue])).lines();
  assert.equal(places.find(({ partition }) => partition === "a").offsetLag, 3);
  assert.ok((await ok(["lag"])).lines().some(({ queue_name }) => queue_name === queue));
  assert.equal((await ok(["partitions", queue, "--sort", "depth"])).lines()[0].name, "a");

  await ok(["pause", queue, "--group", "g", "--reason", "so"]);
  assert.equal((await ok(["pause", queue, "--list"])).lines()[0].reason, "so");
  assert.equal((await queen(["pop", queue, "-g", "g"])).code, 4);
  assert.equal((await ok(["explain", queue, "a", "-g", "g"])).lines()[0].code, "paused");
  await ok(["resume", queue, "--group", "g"]);
  await ok(["seek", "g", queue, "--to-end", "--yes"]);
  assert.equal((await ok(["explain", queue, "a", "-g", "g"])).lines()[0].pending, 0);
  await ok(["groups", "delete", "g", "--queue", queue, "--yes"]);

  await ok(["maintenance", "on", "--pop"]);
  assert.equal((await ok(["maintenance", "status"])).lines()[0].popMaintenanceMode, true);
  await ok(["maintenance", "off", "--pop"]);
  const { code } = await queen(["doctor", "--all"]);
  assert.ok(code === 0 || code === 2);
});

test("messages are shown, retried, buried and deleted; traces are found by name", async () => {
  const queue = newQueue();
  const [pushed] = await system.client.push(numbered(queue, 1, "a"));
  const where = [pushed!.partition_id!, "t0"];
  const shown = (await ok(["messages", "show", ...where])).lines()[0];
  assert.deepEqual([shown.payload, shown.status], [0, "pending"]);
  assert.equal((await ok(["messages", "list", queue, "--status", "pending"])).lines().length, 1);
  await ok(["messages", "dlq", ...where, "--error", "no"]);
  assert.equal((await ok(["dlq", "list", "--queue", queue])).lines()[0].errorMessage, "no");
  assert.equal((await ok(["messages", "retry", ...where])).lines()[0].action, "requeued");
  const trace = { partitionId: where[0], transactionId: "t0", data: { step: 1 }, traceNames: [queue] };
  await system.client.request("POST", "/api/v1/traces", trace);
  assert.deepEqual((await ok(["traces", "named", queue])).lines()[0].data, { step: 1 });
  assert.deepEqual((await ok(["traces", "show", ...where])).lines()[0].data, { step: 1 });
  assert.ok((await ok(["traces", "names"])).lines().some(({ trace_name }) => trace_name === queue));
  await ok(["messages", "delete", ...where, "--yes"]);
});

test("a transaction is read as a document or as lines, and is all or nothing", async () => {
  const queue = newQueue();
  const push = (id: string) => ({
    type: "push",
    items: [{ queue, transactionId: id, payload: 12345678901234567890n.toString() }],
  });
  await ok(["transaction"], JSON.stringify({ operations: [push("a")] }));
  await ok(["transaction"], `${JSON.stringify(push("b"))}\n${JSON.stringify(push("c"))}\n`);
  assert.equal((await ok(["pop", queue, "-b", "10"])).lines().length, 3);
  const ack = { type: "ack", transactionId: "a", partitionId: "00000000-0001-8002-8000-000000000000" };
  const lost = await queen(["transaction", "--lease", "00000000-0001-8004-8000-000000000001"], {
    input: JSON.stringify({ operations: [push("d"), ack] }),
  });
  assert.equal(lost.code, 2);
  assert.equal((await queen(["tail", queue, "-p", "Default", "-n", "10"])).lines().length, 3);
});

test("contexts are kept in a file for their owner only; a token goes to its own broker only", async () => {
  const home = { XDG_CONFIG_HOME: join(folder, "config"), QUEEN_URL: undefined };
  const as = (args: readonly string[], env: Record<string, string> = {}, input = "") =>
    runCommand(args, { env: { ...home, ...env }, input });
  assert.equal((await as(["context", "set", "local", "--url", system.broker.url])).code, 0);
  assert.equal(
    (await as(["context", "set", "prod", "--url", "http://127.0.0.1:9", "--token-stdin"], {}, "secret\n"))
      .code,
    0,
  );
  const file = join(folder, "config/queen/contexts.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), {
    current: "prod",
    contexts: { local: { url: system.broker.url }, prod: { url: "http://127.0.0.1:9", token: "secret" } },
  });
  assert.doesNotMatch((await as(["context", "list"])).stdout, /secret/);
  assert.equal((await as(["queues"])).code, 2, "prod is not there");
  assert.equal((await as(["queues", "--context", "local"])).code, 0);
  assert.equal((await as(["queues"], { QUEEN_URL: system.broker.url })).code, 0, "QUEEN_URL overrides");
  assert.equal((await as(["context", "use", "local"])).code, 0);
  assert.equal((await as(["queues"])).code, 0);
  assert.equal((await as(["queues", "--context", "nobody"])).code, 1);
  assert.equal((await as(["context", "delete", "prod", "--yes"])).code, 0);
  assert.deepEqual(
    (await as(["context", "list"])).lines().map(({ name, current }) => [name, current]),
    [["local", true]],
  );
});

test("bench counts every message and removes its queue", async () => {
  const result = (await ok(["bench", "--seconds", "1", "--partitions", "3", "--batch", "10"])).lines()[0];
  assert.ok(result.pushed > 0);
  assert.equal(result.popped, result.pushed);
  assert.deepEqual((await ok(["queues", "--search", "bench-"])).lines(), []);
});

test("migrate makes the schema and then finds nothing to do; config hides secrets", async () => {
  const database = await createDatabase({ empty: true });
  try {
    const first = await ok(["migrate", "--to", database.url]);
    assert.ok((first.json() as { filesApplied: number }).filesApplied > 100);
    assert.match(first.stderr, /migrate: (\d+) of \1 files \(100 %\)/);
    const second = await ok(["migrate", "--to", database.url]);
    assert.equal((second.json() as { filesApplied: number }).filesApplied, 0);
  } finally {
    await database.drop();
  }
  const away = await queen(["migrate", "--to", "postgres://127.0.0.1:9/nothing"]);
  assert.equal(away.code, 2);
  const config = await queen(["config"], {
    env: { PORT: "7777", JWT_SECRET: "a secret that is long enough for it" },
  });
  assert.equal((config.json() as Record<string, string>).PORT, "7777");
  assert.doesNotMatch(config.stdout, /long enough/);
  const wrong = await queen(["config"], { env: { PORT: "none" } });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /PORT must be an integer/);
});

test("queen alone starts a broker and ends with its signal", async () => {
  const database = await createDatabase();
  const broker = startCommand(["--port", "0"], {
    env: { DATABASE_URL: database.url, HOST: "127.0.0.1", QUEEN_SPOOL_DIR: join(folder, "spool") },
  });
  try {
    const url = await until("it is ready", () => /ready at (http:\S+)/.exec(broker.stdout())?.[1]);
    assert.equal((await queen(["queues"], { env: { QUEEN_URL: url } })).code, 0);
  } finally {
    broker.child.kill("SIGTERM");
    assert.equal((await broker.ended).code, 0);
    await database.drop();
  }
});
