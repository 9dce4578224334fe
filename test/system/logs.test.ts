/** The log of a running broker: what it says of requests, and what it never says. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startBrokerProcess } from "../support/broker.ts";
import { createDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

// biome-ignore lint/suspicious/noExplicitAny: fields of any event; a wrong one fails the assertion on it
type Line = Record<string, any>;

let system: System;
let client: HttpClient;

before(async () => {
  system = await startSystem({ LOG_LEVEL: "debug", NUM_WORKERS: "1" });
  client = system.client;
});
after(() => system?.stop());

const linesOf = (output: string): Line[] =>
  output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

/** The lines about one request, once there are any. */
const linesAbout = (requestId: string, output = system.broker.output): Promise<Line[]> =>
  until(`a line about request ${requestId}`, async () => {
    const lines = linesOf(output()).filter((line) => line.requestId === requestId);
    return lines.length > 0 && lines;
  });

const withId = (id: string) => ({ headers: { "x-request-id": id } });

test("every line of JSON names its process, and the worker where there is one", async () => {
  await client.push(numbered(newQueue(), 1));
  const lines = linesOf(system.broker.output());
  const [ready] = lines.filter(({ event }) => event === "broker.ready");
  assert.deepEqual([ready?.pid, ready?.worker], [system.broker.pid, undefined]);
  const [worker] = system.broker.workerPids();
  const requests = lines.filter(({ event }) => event === "http.request");
  assert.ok(requests.length > 0);
  for (const line of requests) assert.deepEqual([line.pid, line.worker], [worker, 1]);
});

test("at debug a request is one line, with its route and no name or value out of its path and query", async () => {
  const queue = newQueue("a-telling-name");
  const body = JSON.stringify({ items: numbered(queue, 3) });
  const pushed = await client.request("POST", "/api/v1/push", body, withId("push-1"));
  const [push, ...more] = await linesAbout("push-1");
  assert.equal(more.length, 0);
  const { durationMs, time, pid, ...line } = push!;
  assert.deepEqual(line, {
    level: "debug",
    event: "http.request",
    worker: 1,
    requestId: "push-1",
    method: "POST",
    route: "/api/v1/push",
    status: 201,
    bytesIn: body.length,
    bytesOut: pushed.text.length,
  });
  assert.ok(durationMs >= 0 && typeof time === "string" && pid > 0);

  await client.pop(queue, { subscriptionFrom: "a-telling-value" }, withId("pop-1"));
  const [pop] = await linesAbout("pop-1");
  assert.deepEqual([pop!.route, pop!.status], ["/api/v1/pop/queue/:queue", 200]);
  assert.doesNotMatch(JSON.stringify([push, pop]), /a-telling/);
});

test("an id is sent back if the client sent one, with errors, and by the control plane; else not", async () => {
  const queue = newQueue();
  const push = (headers: Record<string, string>) =>
    client.request("POST", "/api/v1/push", { items: numbered(queue, 1) }, { headers });
  assert.equal((await push({ "x-request-id": "mine" })).headers["x-request-id"], "mine");
  assert.equal((await push({})).headers["x-request-id"], undefined);
  assert.equal((await push({ "x-request-id": "a b" })).headers["x-request-id"], undefined, "not sane");
  assert.equal((await client.pop(queue, { autoAck: true })).headers["x-request-id"], undefined);

  const refused = await client.request("POST", "/api/v1/push", "{", withId("x".repeat(129)));
  assert.equal(refused.status, 400);
  const made = refused.headers["x-request-id"] as string;
  assert.match(made, /^[\w-]+-\d+$/);
  assert.equal((await linesAbout(made))[0]!.status, 400, "the id of the answer is that of the log");
  const unknown = await client.request("GET", "/nowhere");
  assert.deepEqual((await linesAbout(unknown.headers["x-request-id"] as string))[0]!.route, "none");
  const configured = await client.configure(queue);
  assert.ok(configured.headers["x-request-id"]);
});

test("a change of the control plane is a line at info, with who asked and what was changed", async () => {
  const { broker, client } = await system.another({ LOG_LEVEL: "info" });
  const queue = newQueue();
  await client.push(numbered(queue, 1));
  await client.request("POST", "/api/v1/configure", { queue }, withId("configure-1"));
  await client.request("DELETE", `/api/v1/resources/queues/${queue}`, undefined, withId("delete-1"));
  const [deleted] = await linesAbout("delete-1", broker.output);
  assert.equal(deleted!.level, "info");
  assert.equal(deleted!.event, "http.change");
  assert.equal(deleted!.route, "/api/v1/resources/queues/:queue");
  assert.equal(deleted!.queue, queue);
  assert.match(deleted!.remote, /127\.0\.0\.1/);
  assert.equal((await linesAbout("configure-1", broker.output))[0]!.queue, queue);
  const events = linesOf(broker.output()).map(({ event }) => event);
  assert.equal(events.filter((event) => event === "http.change").length, 2);
  assert.ok(!events.includes("http.request"), "what changes nothing is for debug");
});

test("a request that takes too long is worth a warning, once in a while; a long poll is none", async () => {
  const { broker, client } = await system.another({ LOG_LEVEL: "info", QUEEN_SLOW_REQUEST_MS: "150" });
  const queue = newQueue();
  await client.push(numbered(queue, 1));
  await client.pop(newQueue(), { wait: true, timeout: 400 });
  // A push waits as long as somebody else's transaction holds its partition.
  const other = await system.database.client();
  await other.query("begin");
  await other.query("select 1 from queen.partitions for update");
  const ids = Array.from({ length: 30 }, (_, index) => `slow-${index}`);
  const answers = ids.map((id) =>
    client.request("POST", "/api/v1/push", { items: numbered(queue, 1, undefined, 7) }, withId(id)),
  );
  await new Promise((resolve) => setTimeout(resolve, 400));
  await other.query("rollback");
  for (const answer of await Promise.all(answers)) assert.equal(answer.status, 201);
  const warnings = await until("a warning", async () => {
    const found = linesOf(broker.output()).filter(({ event }) => event === "http.slow");
    return found.some(({ route }) => route === "/api/v1/push") && found;
  });
  const { level, message, requestId, durationMs } = warnings.find(({ route }) => route === "/api/v1/push")!;
  assert.deepEqual([level, message], ["warn", "POST /api/v1/push took more than 150 ms"]);
  assert.ok(requestId && durationMs > 150);
  assert.ok(warnings.length < 10, `${warnings.length} lines for 30 requests`);
  assert.ok(!warnings.some(({ route }) => route.includes("/pop/")), "a long poll");
});

test("a request that fails for want of the database is a warning with its id, and the storm is held back", async () => {
  const database = await createDatabase();
  const role = `queen_log_${process.pid}`;
  await database.query(`create role ${role} superuser login password 'first'`);
  const url = new URL(database.url);
  url.username = role;
  url.password = "first";
  const broker = await startBrokerProcess({
    databaseUrl: url.href,
    env: { NUM_WORKERS: "1", QUEEN_SPOOL_MAX_BYTES: "0" },
  });
  const client = new HttpClient(broker.url);
  try {
    await client.push(numbered("q", 1));
    await database.query(`alter role ${role} nologin`);
    await database.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [role]);
    const answer = await until("a push is refused", async () => {
      const answer = await client.request("POST", "/api/v1/push", { items: numbered("q", 1) });
      return answer.status === 503 && answer;
    });
    assert.ok(answer.headers["x-request-id"]);
    for (let n = 0; n < 50; n++) await client.request("POST", "/api/v1/push", { items: numbered("q", 1) });
    const failed = linesOf(broker.output()).filter(({ event }) => event === "http.unavailable");
    assert.equal(failed[0]!.message, "POST /api/v1/push was answered 503 DATABASE_UNAVAILABLE");
    assert.ok(failed[0]!.requestId && failed[0]!.reason);
    assert.ok(failed.length < 10, `${failed.length} lines for 50 requests`);
  } finally {
    client.close();
    await broker.kill("SIGKILL");
    await database.query(`drop role ${role}`);
    await database.drop();
  }
});

test("no line at any level holds a payload, a transactionId, a header or a password", async () => {
  const marker = "dontlogme";
  const database = await createDatabase();
  const role = `queen_secret_${process.pid}`;
  await database.query(`create role ${role} superuser login password '${marker}-password'`);
  const url = new URL(database.url);
  url.username = role;
  url.password = `${marker}-password`;
  const broker = await startBrokerProcess({
    databaseUrl: url.href,
    env: {
      LOG_LEVEL: "trace",
      NUM_WORKERS: "1",
      // Nobody listens there: exporting fails, and the failure is logged.
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:9`,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=${marker}-header`,
      OTEL_EXPORTER_OTLP_TIMEOUT: "500",
      OTEL_BSP_SCHEDULE_DELAY: "50",
    },
  });
  const client = new HttpClient(broker.url);
  const headers = {
    authorization: `Bearer ${marker}`,
    cookie: marker,
    "x-request-id": `${"x".repeat(129)}${marker}`,
  };
  const send = (method: string, path: string, body?: unknown) =>
    client.request(method, path, body, { headers });
  const items = Array.from({ length: 20 }, (_, index) => ({
    queue: "q",
    partition: `p${index % 3}`,
    transactionId: `${marker}-${index}`,
    payload: { secret: `${marker} ${index}` },
  }));
  try {
    await client.configure("q", { retryLimit: 0 });
    for (let round = 0; round < 5; round++) {
      await send("POST", "/api/v1/push", { items });
      const { messages } = await client.pop("q", { batch: 5, partitions: 3 });
      await client.ackMessages(messages.slice(0, 2));
      await client.ackMessages(messages.slice(2), "failed", `${marker} error`);
    }
    await send("POST", "/api/v1/push", `{"items":[{"queue":"q","payload":"${marker}`);
    await send("POST", "/api/v1/push", {
      items: [{ queue: "q", transactionId: `${marker}\n`, payload: marker }],
    });
    await send("POST", "/api/v1/ack", { transactionId: marker, partitionId: marker });
    await send("GET", `/api/v1/pop/queue/q?subscriptionFrom=${marker}&consumerGroup=g&token=${marker}`);
    await send("GET", `/${marker}?token=${marker}`);
    const [letter] = (await send("GET", "/api/v1/dlq?limit=1")).json.messages;
    const path = `/api/v1/messages/${letter.partitionId}/${letter.transactionId}`;
    await send("GET", path);
    await send("POST", `${path}/retry`, {});
    await send("DELETE", path);
    await client.transaction([
      { type: "push", items: [{ queue: "q", transactionId: marker, payload: marker }] },
    ]);
    // The database goes away and no longer takes the password.
    await database.query(`alter role ${role} nologin`);
    await database.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [role]);
    await until("a push is buffered", async () =>
      (await send("POST", "/api/v1/push", { items })).text.includes('"buffered"'),
    );
    await until("an export has failed", async () => /traces\.failed/.test(broker.output()));
    await broker.stop();
    const output = broker.output();
    assert.ok(linesOf(output).length > 30, "it did log");
    const telling = output.split("\n").filter((line) => line.includes(marker));
    assert.deepEqual(telling, []);
  } finally {
    client.close();
    await broker.kill("SIGKILL");
    await database.query(`drop role ${role}`);
    await database.drop();
  }
});
