/**
 * The spool: pushes while PostgreSQL is away are on the broker's disk before they are answered, and reach the database
 * afterwards: all of them, once, in order, whatever else breaks.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { siblingsOf, startBrokerProcess } from "../support/broker.ts";
import { Load } from "../support/load.ts";
import { until } from "../support/moments.ts";
import {
  direct,
  drained,
  figures,
  files,
  ids,
  item,
  server,
  statusOf,
  withRig,
} from "../support/spool-rig.ts";

const SEED = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

// ------------------------------------------------------------------------------------------------- outages

test("with push maintenance pushes wait on the disk, in order, and are stored once when it is over", async () => {
  await withRig({}, async ({ client, queue, stored }) => {
    const push = (id: string) =>
      client.request("POST", "/api/v1/push", { items: [{ queue, transactionId: id, payload: id }] });
    const maintain = (enabled: boolean) => client.request("POST", "/api/v1/system/maintenance", { enabled });
    assert.equal((await push("a")).json[0].status, "queued");
    assert.match((await maintain(true)).json.message, /wait on the disks/);
    for (const id of ["b", "c", "b"]) assert.equal((await push(id)).json[0].status, "buffered");
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const traced = { queue, partition: "traced", transactionId: "t", traceparent, payload: 1 };
    await client.request("POST", "/api/v1/push", { items: [traced] });
    assert.deepEqual(await stored(queue), ["a"]);
    await until("four are counted", async () => {
      const { json } = await client.request("GET", "/api/v1/system/maintenance");
      return json.bufferedMessages === 4;
    });
    const figures = (await client.request("GET", "/metrics/prometheus")).text;
    assert.match(figures, /^queen_file_buffer_pending 4$/m);
    assert.match(figures, /^queen_file_buffer_db_healthy 1$/m);
    assert.match(figures, /^queen_maintenance_mode_enabled 1$/m);
    assert.match(figures, /^queen_pop_maintenance_mode_enabled 0$/m);
    await maintain(false);
    await until("they are stored", async () => (await stored(queue)).length === 4);
    await until(
      "pushes go to the database again",
      async () => (await push("d")).json[0].status !== "buffered",
    );
    assert.deepEqual(
      (await stored(queue)).filter((id) => id !== "t"),
      ["a", "b", "c", "d"],
    );
    const popped = await client.request("GET", `/api/v1/pop/queue/${queue}/partition/traced`);
    assert.equal(popped.json.messages[0].traceparent, traceparent);
  });
});

test("with keys, nothing of a payload is on the disk in plain text", async () => {
  await withRig({ QUEEN_ENCRYPTION_KEY: "ab".repeat(32) }, async ({ client, queue, spool, stored }) => {
    await client.request("POST", "/api/v1/system/maintenance", { enabled: true });
    const items = [{ queue, transactionId: "t", payload: "a secret in the spool" }];
    const { json } = await client.request("POST", "/api/v1/push", { items });
    assert.equal(json[0].status, "buffered");
    const files = readdirSync(spool, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    const bytes = files.map((each) => readFileSync(join(each.parentPath, each.name), "latin1")).join();
    assert.ok(bytes.includes(queue), "it is there");
    assert.ok(!bytes.includes("a secret in the spool"));
    await client.request("POST", "/api/v1/system/maintenance", { enabled: false });
    await until("it is stored", async () => (await stored(queue)).length === 1);
    assert.equal((await client.pop(queue)).messages[0]!.data, "a secret in the spool");
  });
});

test("a push while PostgreSQL is dead is buffered, and stored in order when it is back", () =>
  withRig({}, async ({ queue, client, spool, stored }) => {
    assert.equal(await statusOf(client, item(0, queue)), "queued");
    await server.kill();
    const answer = await client.push([item(1, queue), item(2, queue)]);
    assert.deepEqual(answer[1], {
      index: 1,
      status: "buffered",
      queue,
      partition: "p",
      transactionId: "t2",
      transaction_id: "t2",
      queueName: queue,
    });
    assert.equal(await statusOf(client, item(0, `${queue}-new`)), "buffered");
    assert.equal((await figures(client)).pending, 3);
    assert.equal(files(spool).length, 1);
    await server.restart();
    await drained(client);
    await direct(client, queue);
    assert.equal(await statusOf(client, item(3, queue)), "queued");
    assert.deepEqual(await stored(queue), ids(0, 4));
    assert.deepEqual(await stored(`${queue}-new`), ["t0"]);
    assert.deepEqual(files(spool), []);
  }));

test("a PostgreSQL that stands still hangs nobody: pushes are buffered, everything else is refused", () =>
  withRig({}, async ({ queue, client, stored }) => {
    await client.push([item(0, queue), item(1, queue, "other")]);
    const [message] = (await client.pop(queue, { partition: "p" })).messages;
    server.freeze();
    const startedMs = performance.now();
    const [pushed, ...refused] = await Promise.all([
      client.push([item(2, queue), item(3, queue)]),
      client.request("GET", `/api/v1/pop/queue/${queue}/partition/other`),
      client.request("POST", "/api/v1/ack", { ...message, status: "completed" }),
      client.transaction([{ type: "push", items: [item(9, queue)] }]),
      client.request("GET", "/health"),
    ]);
    assert.ok(performance.now() - startedMs < 10_000, "nobody hangs");
    assert.deepEqual(
      pushed.map((result) => result.status),
      ["buffered", "buffered"],
    );
    assert.deepEqual(
      refused.map((answer) => answer.status),
      [503, 503, 503, 503],
    );
    for (const { headers } of refused.slice(0, 3)) assert.match(String(headers["retry-after"]), /^\d+$/);
    assert.equal(await statusOf(client, item(4, queue)), "buffered");
    server.thaw();
    await drained(client);
    assert.deepEqual(
      (await stored(queue)).filter((id) => id !== "t1" && id !== "t9"),
      ["t0", "t2", "t3", "t4"],
    );
  }));

test("without a database a starting broker takes pushes, and stores them when there is one", () =>
  withRig({}, async ({ queue, client, kill, start, stored }) => {
    await kill();
    await server.kill();
    const starting = start(); // until it is ready
    await until(
      "it listens and buffers",
      async () => (await statusOf(client, item(0, queue))) === "buffered",
    );
    assert.equal((await client.request("GET", "/livez")).status, 200);
    assert.equal((await client.request("GET", "/readyz")).status, 503);
    assert.equal(await statusOf(client, item(1, queue)), "buffered");
    await server.restart();
    await starting;
    await drained(client);
    assert.deepEqual(await stored(queue), ["t0", "t1"]);
  }));

test("a broker says that it is ready when each of its workers can use the database", () =>
  withRig({ NUM_WORKERS: "2" }, async ({ queue, client, kill, start }) => {
    await kill();
    await server.kill();
    const starting = start();
    const buffers = async (): Promise<boolean> => (await statusOf(client, item(0, queue))) === "buffered";
    await until("a worker listens and buffers", buffers);
    const { json: health } = await client.request("GET", "/health");
    const pid = Number((health.shared_state.server_id as string).split("-").pop());
    await until("the other one runs", () => siblingsOf(pid).length === 1);
    const [other] = siblingsOf(pid);
    process.kill(other!, "SIGSTOP");
    await server.restart();
    await direct(client, queue);
    assert.equal((await client.request("GET", "/readyz")).status, 503);
    process.kill(other!, "SIGCONT");
    await starting;
    assert.equal((await client.request("GET", "/readyz")).status, 200);
  }));

test("a broker that was killed with one, two or three buffered messages has them all", async () => {
  for (const count of [1, 2, 3]) {
    await withRig({}, async ({ queue, client, spool, kill, start, stored }) => {
      await server.kill();
      for (let n = 0; n < count; n++) assert.equal(await statusOf(client, item(n, queue)), "buffered");
      await kill();
      await server.restart();
      await start();
      await drained(client);
      assert.deepEqual(await stored(queue), ids(0, count));
      assert.deepEqual(files(spool), []);
    });
  }
});

test("SIGTERM during an outage ends the broker in order, and its messages are there afterwards", () =>
  withRig({}, async ({ queue, client, broker, start, stored }) => {
    await server.kill();
    assert.equal(await statusOf(client, item(0, queue)), "buffered");
    assert.equal(await broker().stop(), 0);
    await server.restart();
    await start();
    await drained(client);
    assert.deepEqual(await stored(queue), ["t0"]);
  }));

test("a disk of PostgreSQL that is full is an outage of pushes", () =>
  withRig({}, async ({ queue, client, stored, query }) => {
    await client.push([item(0, queue)]);
    await query(
      `create function no_room() returns trigger language plpgsql as
         $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
       create trigger no_room before insert on queen.segments execute function no_room()`,
    );
    assert.equal(await statusOf(client, item(1, queue)), "buffered");
    assert.equal(await statusOf(client, item(2, queue)), "buffered");
    assert.equal((await client.request("GET", "/health")).status, 503);
    await query("drop trigger no_room on queen.segments; drop function no_room");
    await drained(client);
    assert.deepEqual(await stored(queue), ids(0, 3));
  }));

// --------------------------------------------------------------------------------------------------- order

test("while a lane's messages wait, later pushes and transactions go behind them, other lanes go on", () =>
  withRig({}, async ({ queue, client, stored, url }) => {
    await client.push([item(0, queue), item(0, queue, "free")]);
    const holder = new pg.Client({ connectionString: url });
    await server.kill();
    assert.equal(await statusOf(client, item(1, queue)), "buffered");
    await server.restart();
    await holder.connect();
    await holder.query(
      `begin; select 1 from queen.partitions p join queen.queues q on q.id = p.queue_id
        where q.name = '${queue}' and p.name = 'p' for update of p`,
    );
    await direct(client, queue);
    assert.equal(await statusOf(client, item(2, queue)), "buffered");
    assert.equal(await statusOf(client, item(1, queue, "free")), "queued");
    const transaction = await client.transaction([{ type: "push", items: [item(9, queue)] }]);
    assert.equal(transaction.status, 503);
    assert.match(transaction.json.error, /on the broker's disk/);
    const free = await client.transaction([{ type: "push", items: [item(2, queue, "free")] }]);
    assert.equal(free.status, 200);
    await holder.query("rollback");
    await holder.end();
    await drained(client);
    assert.equal(await statusOf(client, item(3, queue)), "queued");
    assert.deepEqual(await stored(queue), [...ids(0, 3), ...ids(0, 4)]);
  }));

for (const workers of [1, 2]) {
  test(`through outages of every kind producers on ${workers} workers keep their order, and nothing is lost`, () =>
    withRig({ NUM_WORKERS: String(workers) }, async ({ queue, client, broker, query }) => {
      const load = new Load({
        database: { query },
        urls: () => [broker().url],
        queue,
        partitions: 6,
        groups: ["a"],
        producers: 6,
        itemsPerPush: 5,
        consumersPerGroup: 2,
        leaseSeconds: 5,
        seed: SEED,
        freshConnections: true, // so that a producer meets all workers
      });
      await load.start();
      let buffered = 0;
      for (let time = 0; time < 3; time++) {
        await load.progress(200);
        if (time % 2 === 0) await server.kill();
        else server.freeze();
        await until("much is buffered", async () => (await figures(client)).pending > 100);
        buffered += (await figures(client)).pending;
        if (time % 2 === 0) await server.restart();
        else server.thaw();
      }
      await load.progress(200);
      const violations = await load.finish();
      assert.deepEqual(
        violations.slice(0, 10),
        [],
        `seed ${SEED}, ${load.stored} messages, ${buffered} buffered`,
      );
      assert.deepEqual(load.surprises.slice(0, 5), []);
    }));
}

// ------------------------------------------------------------------------------------ limits and refusals

test("a full spool answers 503, never buffered, and what it has is drained", () =>
  withRig({ QUEEN_SPOOL_MAX_BYTES: "2000" }, async ({ queue, client, stored }) => {
    await client.push([item(0, queue)]);
    await server.kill();
    let taken = 1;
    const full = await until("it is full", async () => {
      const answer = await client.request("POST", "/api/v1/push", { items: [item(taken, queue)] });
      if (answer.status === 201) taken++;
      return answer.status !== 201 ? answer : undefined;
    });
    assert.deepEqual([full.status, full.json.code], [503, "SPOOL_UNAVAILABLE"]);
    assert.match(String(full.headers["retry-after"]), /^\d+$/);
    assert.ok(taken > 3);
    assert.equal((await figures(client)).pending, taken - 1);
    await server.restart();
    await drained(client);
    assert.deepEqual(await stored(queue), ids(0, taken));
  }));

test("a broker whose folder cannot be used serves, and refuses pushes during an outage", () =>
  withRig({ QUEEN_SPOOL_DIR: "/dev/null/spool" }, async ({ queue, client, broker }) => {
    assert.match(broker().output(), /spool\.unusable/);
    assert.equal(await statusOf(client, item(0, queue)), "queued");
    assert.equal((await figures(client)).enabled, false);
    await server.kill();
    const refused = await client.request("POST", "/api/v1/push", { items: [item(1, queue)] });
    assert.deepEqual([refused.status, refused.json.code], [503, "DATABASE_UNAVAILABLE"]);
  }));

test("two brokers cannot share a folder", () =>
  withRig({}, async ({ spool, url }) => {
    const second = startBrokerProcess({ databaseUrl: url, env: { QUEEN_SPOOL_DIR: spool } });
    await assert.rejects(second, /code 1 [\s\S]*is using the spool folder .*QUEEN_SPOOL_DIR/);
  }));

test("messages that cannot be stored are set aside with a reason, block nothing, and can be tried again", () =>
  withRig({}, async ({ queue, client, spool, kill, start, stored, query }) => {
    await kill();
    // A name that no push could bring, first in the file.
    const { encodeRecord } = (await import(RECORD_MODULE)) as RecordModule;
    const content = Buffer.from('"transactionId":"long","traceId":null,"producerSub":null,"data":1');
    const record = {
      queue,
      partition: "x".repeat(300),
      doubt: undefined,
      content,
      sequence: 1,
      spooledAtMs: Date.now(),
    };
    writeFileSync(join(spool, "spool-000000000001.log"), encodeRecord(record));
    await query(
      "alter table queen.segments add constraint no_poison check (position('\\x706f69736f6e'::bytea in body) = 0)",
    );
    await server.kill();
    const starting = start();
    await until("it buffers", async () => (await statusOf(client, item(0, queue))) === "buffered");
    assert.equal(await statusOf(client, item("poison", queue), item(1, queue)), "buffered");
    await server.restart();
    await starting;
    await drained(client);
    assert.deepEqual(await stored(queue), ["t0", "t1"]);
    const { rejected, rejectedCount } = await figures(client);
    assert.equal(rejectedCount, 2);
    assert.match(rejected[0].reason, /at most 255 characters/);
    assert.match(rejected[1].reason, /no_poison/);
    assert.deepEqual([rejected[1].transactionId, rejected[1].data], ["tpoison", { n: "poison" }]);
    assert.equal((await figures(client)).pagination.limit, 100);

    await query("alter table queen.segments drop constraint no_poison");
    const select = async (what: string, body: object) =>
      (await client.request("POST", `/api/v1/system/spool/${what}`, body)).json;
    assert.equal((await client.request("POST", "/api/v1/system/spool/retry", {})).status, 400);
    assert.deepEqual(await select("retry", { ids: [rejected[1].id] }), {
      success: true,
      retried: 1,
      remaining: 1,
    });
    await drained(client);
    assert.deepEqual(await stored(queue), ["t0", "t1", "tpoison"]);
    assert.deepEqual(await select("discard", { all: true }), { success: true, discarded: 1, remaining: 0 });
    assert.deepEqual(files(spool, "rejected"), []);
  }));

interface RecordModule {
  encodeRecord(record: object): Buffer;
}
// The broker keeps its spool to itself, so that its index does not have it.
const RECORD_MODULE = new URL("../../../packages/broker/dist/src/spooling/record.js", import.meta.url).href;

test("bad requests are refused during an outage as at any time", () =>
  withRig({}, async ({ queue, client }) => {
    await server.kill();
    assert.equal(await statusOf(client, item(0, queue)), "buffered");
    for (const items of [
      [{ queue: 5 }],
      [{ queue, traceId: "no uuid" }],
      [{ queue, partition: "x".repeat(256) }],
    ]) {
      assert.equal((await client.request("POST", "/api/v1/push", { items })).status, 400);
    }
    assert.equal((await figures(client)).pending, 1);
  }));
