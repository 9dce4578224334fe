/**
 * Crashes under load: whatever dies, nothing that was answered is lost, stored twice, out of order or
 * delivered again after its ack, and everything goes on by itself. Also: how a broker stops, and how it
 * starts without its database.
 *
 * Loads are random by a seed, which a failure names; QUEEN_TEST_SEED=<seed> repeats it.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEmbeddedServer } from "@queen/broker";
import pg from "pg";
import { type BrokerProcess, freePort, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import { HttpClient, type PoppedMessage } from "../support/http.ts";
import { Load, type LoadOptions, randomFrom } from "../support/load.ts";
import { until } from "../support/moments.ts";
import { startProxy } from "../support/proxy.ts";

const SEED = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const QUEUE = "load";
const GROUPS = ["a", "b"];
// What must be pushed and acked between two faults.
const PROGRESS = 100;

const LOAD: Omit<LoadOptions, "database" | "urls"> = {
  queue: QUEUE,
  partitions: 6,
  groups: GROUPS,
  producers: 4,
  itemsPerPush: 10,
  consumersPerGroup: 3,
  leaseSeconds: 2,
  seed: SEED,
};

/** Runs a load while `faults` does its worst, and shows that every promise was kept. */
async function underLoad(
  options: Pick<LoadOptions, "database" | "urls"> & Partial<LoadOptions>,
  faults: (load: Load) => Promise<void>,
): Promise<void> {
  const load = new Load({ ...LOAD, ...options });
  await load.start();
  try {
    await load.progress(PROGRESS);
    await faults(load);
    await load.progress(PROGRESS);
  } finally {
    const violations = await load.finish();
    assert.deepEqual(violations.slice(0, 20), [], `seed ${SEED}, ${load.stored} messages`);
    assert.deepEqual(load.surprises.slice(0, 20), [], `seed ${SEED}`);
  }
  const { database } = options;
  const leases = await database.query(
    "select 1 from queen.partition_consumers where lease_token is not null",
  );
  assert.deepEqual(leases, [], "no lease is left");
}

/** A worker that ends by a mistake of its own is replaced, and nobody might notice. */
async function stopAll(brokers: readonly BrokerProcess[]): Promise<void> {
  await Promise.all(brokers.map((broker) => broker.stop()));
  for (const broker of brokers) assert.doesNotMatch(broker.output(), /uncaught|http\.failed/);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

test("without faults nothing is delivered twice", async () => {
  const database = await createDatabase();
  const broker = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const load = new Load({ ...LOAD, database, urls: () => [broker.url], leaseSeconds: 60 });
  await load.start();
  await load.progress(1_000);
  const violations = await load.finish();
  const seen = new Map<string, number>();
  for (const event of load.history) {
    if (event.type !== "popped") continue;
    for (const { partition, value } of event.messages) {
      const key = `${event.group} ${partition} ${value}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
    }
  }
  await stopAll([broker]);
  await database.drop();
  assert.deepEqual(violations, [], `seed ${SEED}`);
  assert.deepEqual(load.surprises, []);
  assert.deepEqual(
    [...seen].filter(([, times]) => times > 1),
    [],
  );
});

for (const workers of [1, 2]) {
  test(`a worker of ${workers} that is killed is replaced, and nothing is lost`, async () => {
    const database = await createDatabase();
    const broker = await startBrokerProcess({
      databaseUrl: database.url,
      env: { NUM_WORKERS: String(workers) },
    });
    try {
      await underLoad({ database, urls: () => [broker.url] }, async (load) => {
        for (let time = 0; time < 4; time++) {
          const pids = broker.workerPids();
          kill(pids[time % pids.length]!);
          await load.progress(PROGRESS);
          await until("all workers are there", () => broker.workerPids().length === workers);
        }
      });
    } finally {
      await broker.stop();
      await database.drop();
    }
  });
}

test("a broker that is killed with all its processes, and started again, lost nothing", async () => {
  const database = await createDatabase();
  const env = { NUM_WORKERS: "2", PORT: String(await freePort()) };
  let broker = await startBrokerProcess({ databaseUrl: database.url, env });
  try {
    await underLoad({ database, urls: () => [broker.url] }, async (load) => {
      for (let time = 0; time < 3; time++) {
        const workers = broker.workerPids();
        const killed = broker.kill("SIGKILL");
        for (const pid of workers) kill(pid);
        await killed;
        broker = await startBrokerProcess({ databaseUrl: database.url, env });
        await load.progress(PROGRESS);
      }
    });
  } finally {
    await stopAll([broker]);
    await database.drop();
  }
});

test("one of two brokers may be killed at any time", async () => {
  const database = await createDatabase();
  const start = (): Promise<BrokerProcess> =>
    startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const brokers = await Promise.all([start(), start()]);
  try {
    await underLoad({ database, urls: () => brokers.map((broker) => broker.url) }, async (load) => {
      for (let time = 0; time < 4; time++) {
        const victim = time % 2;
        const workers = brokers[victim]!.workerPids();
        const killed = brokers[victim]!.kill("SIGKILL");
        for (const pid of workers) kill(pid);
        await killed;
        await load.progress(PROGRESS);
        brokers[victim] = await start();
        await load.progress(PROGRESS);
      }
    });
  } finally {
    await stopAll(brokers);
    await database.drop();
  }
});

test("connections to PostgreSQL that are cut again and again cost nobody a message", async () => {
  const database = await createDatabase();
  const broker = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  try {
    await underLoad({ database, urls: () => [broker.url] }, async (load) => {
      for (let time = 0; time < 10; time++) {
        await until("connections were cut", async () => {
          const cut = await database.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
              where datname = current_database() and application_name like 'queen %'`,
          );
          return cut.length > 0;
        });
        await load.progress(time % 2 === 0 ? 10 : PROGRESS);
      }
    });
    assert.doesNotMatch(broker.output(), /worker\.died/, "no worker died of it");
  } finally {
    await stopAll([broker]);
    await database.drop();
  }
});

test("an answer of PostgreSQL that is lost leaves nothing undone and nothing done twice", async () => {
  const database = await createDatabase();
  const proxy = await startProxy(database.url);
  const broker = await startBrokerProcess({
    databaseUrl: proxy.urlOf(database.url),
    env: { NUM_WORKERS: "1" },
  });
  try {
    await underLoad({ database, urls: () => [broker.url] }, async (load) => {
      for (let time = 0; time < 3; time++) {
        for (const statement of ["queen_append", "queen_take", "queen_settle"]) {
          const lost = proxy.lost;
          proxy.loseAnswers(statement, 2);
          await until("two answers were lost", () => proxy.lost >= lost + 2);
          await load.progress(PROGRESS);
        }
      }
    });
    assert.doesNotMatch(broker.output(), /worker\.died/, "no worker died of it");
  } finally {
    await stopAll([broker]);
    await proxy.close();
    await database.drop();
  }
});

test("ack and push in one transaction bring each message to the next queue exactly once", async () => {
  const database = await createDatabase();
  const proxy = await startProxy(database.url);
  const broker = await startBrokerProcess({
    databaseUrl: proxy.urlOf(database.url),
    env: { NUM_WORKERS: "1" },
  });
  const total = 300;
  let moved = 0;
  let isOver = false;
  const pipe = async (): Promise<void> => {
    const client = new HttpClient(broker.url);
    while (!isOver) {
      const popped = await client.pop("source", { batch: 5, wait: true, timeout: 200 });
      if (popped.messages.length === 0) continue;
      const operations = popped.messages.flatMap(({ transactionId, partitionId, leaseId, data }) => [
        { type: "ack", transactionId, partitionId, leaseId },
        { type: "push", items: [{ queue: "sink", transactionId: `moved ${data}`, payload: data }] },
      ]);
      // An answer that was lost: the same again. A refusal: the lease is over, somebody else gets the messages.
      await until("the transaction is decided", async () => {
        const { status } = await client.transaction(operations);
        if (status === 200) moved += popped.messages.length;
        return status === 200 || status === 409;
      });
    }
    client.close();
  };
  const client = new HttpClient(broker.url);
  try {
    await client.configure("source", { leaseTime: 1, retryLimit: 1_000 });
    const items = Array.from({ length: total }, (_, n) => ({
      queue: "source",
      partition: `p${n % 4}`,
      transactionId: `t${n}`,
      payload: n,
    }));
    await client.push(items);
    const pipes = Promise.all([pipe(), pipe(), pipe()]);
    for (let time = 0; time < 5; time++) {
      const [lost, before] = [proxy.lost, moved];
      proxy.loseAnswers(time % 2 === 0 ? "queen_transact_many" : "queen_take", 2);
      await until("two answers were lost", () => proxy.lost >= lost + 2 || moved >= total);
      await until("more was moved", () => moved > before || moved >= total);
    }
    await until("everything was moved", async () => {
      const [row] = await database.query(
        `select count(*)::int4 as left from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
           join queen.queues q on q.id = p.queue_id where q.name = 'source' and p.next_offset > c.committed`,
      );
      return row!.left === 0;
    });
    isOver = true;
    await pipes;
    const sink = await database.query(
      `select m.payload::text as value from queen.messages m join queen.partitions p on p.id = m.partition_id
         join queen.queues q on q.id = p.queue_id where q.name = 'sink'`,
    );
    assert.deepEqual(
      sink.map((row) => Number(row.value)).sort((a, b) => a - b),
      items.map((item) => item.payload),
    );
  } finally {
    isOver = true;
    client.close();
    await stopAll([broker]);
    await proxy.close();
    await database.drop();
  }
});

test("PostgreSQL that is killed and comes back has everything that was answered", async () => {
  const folder = mkdtempSync(join(tmpdir(), "queen-crash-"));
  chmodSync(folder, 0o711); // as root, the server runs as another user, who must get in
  const start = (port?: number): ReturnType<typeof startEmbeddedServer> =>
    startEmbeddedServer({
      dataDir: join(folder, "data"),
      log: () => undefined,
      ...(port === undefined ? {} : { port }),
    });
  let server = await start();
  const { user, password, hosts } = server.settings;
  const { port } = hosts[0]!;
  const url = `postgres://${user}:${encodeURIComponent(password!)}@127.0.0.1:${port}/postgres`;
  const query = async (text: string, values?: unknown[]): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const broker = await startBrokerProcess({ databaseUrl: url, env: { NUM_WORKERS: "1" } });
  try {
    await underLoad({ database: { query }, urls: () => [broker.url] }, async (load) => {
      for (let time = 0; time < 3; time++) {
        kill(server.pid);
        await server.exited;
        await server.stop();
        server = await start(port);
        await load.progress(PROGRESS);
      }
    });
  } finally {
    await stopAll([broker]);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a broker starts its own PostgreSQL again when that is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "queen-crash-"));
  chmodSync(folder, 0o711);
  const broker = await startBrokerProcess({
    databaseUrl: "",
    env: { NUM_WORKERS: "1", QUEEN_DATA_DIR: join(folder, "data") },
  });
  const client = new HttpClient(broker.url);
  try {
    await client.push([{ queue: "q", transactionId: "before", payload: 1 }]);
    const [postmaster] = readFileSync(join(folder, "data", "postgres", "postmaster.pid"), "utf8").split("\n");
    kill(Number(postmaster));
    const [after] = await client.push([{ queue: "q", transactionId: "after", payload: 2 }]);
    assert.match(after!.status, /queued|buffered/);
    const popped = await until("both are there", async () => {
      const stored = await client.request("GET", "/api/v1/messages?queue=q");
      if (stored.json.messages?.length !== 2) return undefined;
      const answer = await client.pop("q", { batch: 10 });
      return answer.messages.length > 0 ? answer : undefined;
    });
    assert.deepEqual(
      popped.messages.map((message) => message.transactionId),
      ["before", "after"],
    );
  } finally {
    client.close();
    assert.equal(await broker.stop(), 0);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a broker whose database is not there yet lives, says so, and works when it is", async () => {
  const url = new URL(process.env.QUEEN_TEST_DATABASE_URL!);
  const name = `queen_test_${process.pid}_late`;
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  url.pathname = `/${name}`;
  const port = await freePort();
  const starting = startBrokerProcess({
    databaseUrl: url.href,
    env: { NUM_WORKERS: "1", PORT: String(port) },
  });
  const client = new HttpClient(`http://127.0.0.1:${port}`);
  try {
    const items = [{ queue: "q", payload: 1 }];
    const early = await until("the broker answers", () => client.pop("q"));
    assert.equal(early.status, 503);
    assert.equal(early.json.code, "DATABASE_UNAVAILABLE");
    assert.match(String(early.headers["retry-after"]), /^\d+$/);
    assert.equal((await client.push([{ queue: "early", payload: 1 }]))[0]!.status, "buffered");
    for (const [path, status] of [
      ["/livez", 200],
      ["/readyz", 503],
      ["/health", 503],
      ["/api/v1/pop/queue/q?wait=true&timeout=30000", 503],
    ] as const) {
      assert.equal((await client.request("GET", path)).status, status, path);
    }
    await admin.query(`create database ${name}`);
    const broker = await starting;
    assert.equal((await client.push(items))[0]!.status, "queued");
    assert.equal((await client.pop("q")).messages.length, 1);
    assert.equal((await client.pop("early", { wait: true, timeout: 20_000 })).messages.length, 1);
    client.close();
    assert.equal(await broker.stop(), 0);
  } finally {
    client.close();
    await starting.then(
      (broker) => broker.kill("SIGKILL"),
      () => undefined,
    );
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
  }
});

// ------------------------------------------------------------------------------------------------ stopping

interface Stopping {
  readonly database: TestDatabase;
  readonly broker: BrokerProcess;
  readonly client: HttpClient;
}

async function withBroker(work: (stopping: Stopping) => Promise<void>): Promise<void> {
  const database = await createDatabase();
  const broker = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const client = new HttpClient(broker.url);
  try {
    await work({ database, broker, client });
  } finally {
    client.close();
    await broker.kill("SIGKILL");
    await database.drop();
  }
}

const waitsForLock = (database: TestDatabase): Promise<unknown> =>
  until("a call waits for the lock", async () => {
    const rows = await database.query(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query ~ 'queen.(take|open_cursors)'`,
    );
    return rows.length > 0;
  });

test("SIGTERM answers parked pops, finishes what is in flight, and ends with code 0", () =>
  withBroker(async ({ database, broker, client }) => {
    await client.push([{ queue: "held", payload: 0 }]);
    const parked = [client.pop("none", { wait: true, timeout: 60_000 })];
    parked.push(client.pop("held", { partition: "other", wait: true, timeout: 60_000 }));
    await until("both pops are parked", async () => {
      return (await client.request("GET", "/metrics")).json.pops.parked === 2;
    });

    // A push that waits for its lane, which somebody else holds.
    const blocker = await database.client();
    await blocker.query("begin; select 1 from queen.partitions for update");
    const pushed = client.push([{ queue: "held", payload: 1 }]);
    await until("the push is under way", async () => {
      return (await client.request("GET", "/metrics")).json.sidecar.operations.push.batches > 1;
    });

    const stopped = broker.stop();
    const answers = await Promise.all(parked);
    assert.deepEqual(
      answers.map((answer) => [answer.status, answer.headers.connection]),
      [
        [204, "close"],
        [204, "close"],
      ],
    );
    await blocker.query("rollback");
    assert.equal((await pushed)[0]!.status, "queued");
    assert.equal(await stopped, 0);
    const messages = await database.query("select 1 from queen.messages");
    assert.equal(messages.length, 2);
    await assert.rejects(client.request("GET", "/livez"), "nobody listens any more");
  }));

test("SIGTERM leaves no lease that nobody received", () =>
  withBroker(async ({ database, broker, client }) => {
    await client.push(["kept", "gone"].map((queue) => ({ queue, payload: queue })));
    for (const queue of ["kept", "gone"]) {
      await client.ackMessages((await client.pop(queue)).messages); // the cursors are there
      await client.push([{ queue, payload: `${queue} 2` }]);
    }
    const blocker = await database.client();
    await blocker.query("begin; lock table queen.partition_consumers in access exclusive mode");
    const abort = new AbortController();
    const kept = client.pop("kept");
    client.pop("gone", {}, { signal: abort.signal }).catch(() => undefined);
    await waitsForLock(database);
    await until("both pops are leasing", async () => {
      return (await client.request("GET", "/metrics")).json.requests.active === 3;
    });
    abort.abort();
    await until("the broker saw one client go", async () => {
      return (await client.request("GET", "/metrics")).json.requests.active === 2;
    });
    const stopped = broker.stop();
    await until("the broker is stopping", () => broker.output().includes("broker.stopping"));
    await blocker.query("rollback");
    const answer = await kept;
    assert.equal(await stopped, 0);
    const leased = await database.query(
      `select q.name from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
         join queen.queues q on q.id = p.queue_id where c.lease_token is not null`,
    );
    const received = answer.messages.length > 0 ? [{ name: "kept" }] : [];
    assert.deepEqual(leased, received);
  }));

test("a second signal ends the broker at once", () =>
  withBroker(async ({ database, broker, client }) => {
    await client.push([{ queue: "q", payload: 1 }]);
    const blocker = await database.client();
    await blocker.query("begin; select 1 from queen.partitions for update");
    client.push([{ queue: "q", payload: 2 }]).catch(() => undefined);
    await until("the push is under way", async () => {
      return (await client.request("GET", "/metrics")).json.sidecar.operations.push.batches > 1;
    });
    const workers = broker.workerPids();
    const stopped = broker.stop();
    await until("the broker is stopping", () => broker.output().includes("broker.stopping"));
    await sleep(400); // a terminal sends the same signal twice: a second one counts a moment later
    await broker.kill("SIGTERM");
    assert.equal(await stopped, 143);
    await until("its workers are gone", () => workers.every((pid) => !isAlive(pid)));
    await blocker.query("rollback");
    assert.equal((await database.query("select 1 from queen.messages")).length, 1);
  }));

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}

// ------------------------------------------------------------------------------------------------- races

test("pushes of the same transactionIds that race on two brokers are stored once, and both learn where", async () => {
  const database = await createDatabase();
  const start = (): Promise<BrokerProcess> =>
    startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const brokers = await Promise.all([start(), start()]);
  const clients = brokers.map((broker) => new HttpClient(broker.url));
  try {
    const random = randomFrom(SEED);
    for (const order of ["the same order", "any order"]) {
      const ids = Array.from({ length: 400 }, (_, n) => `${order} ${n}`);
      const answers = await Promise.all(
        clients.map(async (client, index) => {
          const own = order === "any order" && index === 1 ? ids.toSorted(() => random() - 0.5) : ids;
          const requests = Array.from({ length: 40 }, (_, n) => own.slice(n * 10, n * 10 + 10));
          const results = await Promise.all(
            requests.map((part) =>
              client.push(
                part.map((transactionId) => ({
                  queue: "race",
                  partition: `p${transactionId.length % 3}`,
                  transactionId,
                  payload: transactionId,
                })),
              ),
            ),
          );
          return new Map(results.flat().map((result) => [result.transaction_id, result]));
        }),
      );
      for (const id of ids) {
        const [one, other] = answers.map((answer) => answer.get(id)!);
        assert.equal(
          one!.message_id,
          other!.message_id,
          `${id}: both answers name one message (seed ${SEED})`,
        );
        assert.deepEqual(
          [one!.status, other!.status].sort(),
          ["duplicate", "queued"],
          `${id} (seed ${SEED})`,
        );
      }
      const stored = await database.query(
        "select id::text, transaction_id from queen.messages where transaction_id like $1",
        [`${order} %`],
      );
      assert.deepEqual(
        new Map(stored.map((row) => [row.transaction_id, row.id])),
        new Map(ids.map((id) => [id, answers[0]!.get(id)!.message_id])),
      );
      assert.equal(stored.length, ids.length);
    }
  } finally {
    for (const client of clients) client.close();
    await stopAll(brokers);
    await database.drop();
  }
});

test("many pops on the same lanes of two brokers never hold one lane twice", async () => {
  const database = await createDatabase();
  const start = (): Promise<BrokerProcess> =>
    startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const brokers = await Promise.all([start(), start()]);
  const clients = brokers.map((broker) => new HttpClient(broker.url));
  try {
    const total = 600;
    const items = Array.from({ length: total }, (_, n) => ({
      queue: "q",
      partition: `p${n % 4}`,
      payload: n,
    }));
    await clients[0]!.push(items);
    const holders = new Map<string, string>();
    const overlaps: string[] = [];
    const got: number[] = [];
    let pops = 0;
    const consume = async (client: HttpClient, index: number): Promise<void> => {
      while (got.length < total) {
        pops++;
        const query =
          index % 2 === 0 ? { partition: `p${pops % 4}` } : { partitions: 2, wait: true, timeout: 200 };
        const { messages } = await client.pop("q", { batch: 5, ...query });
        const lanes = new Set(messages.map((message: PoppedMessage) => message.partition));
        for (const lane of lanes) {
          if (holders.has(lane)) overlaps.push(`${lane}: ${holders.get(lane)} and ${messages[0]!.leaseId}`);
          holders.set(lane, messages[0]!.leaseId);
        }
        await sleep(1); // time for somebody else to come in between
        for (const lane of lanes) holders.delete(lane);
        if (messages.length === 0) continue;
        const results = await client.ackMessages(messages);
        assert.ok(results.every((result) => result.success));
        got.push(...messages.map((message) => message.data as number));
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, n) => consume(clients[n % 2]!, n >> 1)));
    assert.deepEqual(overlaps, []);
    assert.deepEqual(
      got.toSorted((a, b) => a - b),
      items.map((_, n) => n),
      "each message was delivered once",
    );
  } finally {
    for (const client of clients) client.close();
    await stopAll(brokers);
    await database.drop();
  }
});
