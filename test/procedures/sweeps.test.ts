/** Sweeps are done by whoever asks, one at a time; leases that ran out, idle partitions and old figures. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  APPEND,
  append,
  expire,
  newLane,
  newToken,
  nextOffset,
  numbered,
  openCursor,
  openGroup,
  openLane,
  processId,
  push,
  readCursor,
  settle,
  takeOne,
  waitsForLock,
} from "../support/procedures.ts";
import { call } from "../support/sql-api.ts";
import { configure, deadLetters, storedIds, sweep, sweepAll } from "../support/sweeps.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
  other = await database.client();
});
after(() => database.drop());

// ------------------------------------------------------------------------------------------------- claims

test("of two workers that ask at once one gets the round, and the other is told to come later", async () => {
  await client.query("begin");
  assert.equal((await sweep(client, "metrics", { worker: "one" })).state, "finished");
  const refused = await sweep(other, "metrics", { worker: "two", intervalMs: 60_000 });
  assert.deepEqual([refused.state, refused.wait_ms], ["elsewhere", 10_000]);
  await client.query("commit");
  const early = await sweep(other, "metrics", { worker: "two", intervalMs: 60_000 });
  assert.equal(early.state, "not due");
  assert.ok(early.wait_ms > 0 && early.wait_ms <= 60_000);
});

test("a pass that a worker has begun is its own, until it has been silent for ten seconds", async () => {
  const lane = await newLane(client, 9);
  await configure(client, lane.queue, { retention_enabled: true, retention_seconds: 60 });
  await client.query(
    "update queen.segments set created_at = created_at - interval '1 hour' where partition_id = $1",
    [lane.partition],
  );
  assert.equal((await sweep(client, "retention", { worker: "one", batch: 1 })).state, "under way");
  assert.equal((await sweep(other, "retention", { worker: "two", batch: 1 })).state, "elsewhere");
  await client.query(
    "update queen.sweeps set round_at = round_at - interval '10 seconds' where name = 'retention'",
  );
  const { state, done } = await sweep(other, "retention", { worker: "two" });
  assert.deepEqual(
    [state, done.retentionMessages],
    ["finished", 9],
    "it goes on where the first one stopped",
  );
  const [row] = await database.query("select * from queen.sweeps where name = 'retention'");
  assert.deepEqual([row!.worker, row!.position, row!.rounds], ["two", null, 2]);
});

// ------------------------------------------------------------------------------------------------- leases

test("a lease that ran out ends and counts as an attempt, though nobody pops", async () => {
  const lane = await newLane(client, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token, budget: 2 });
  await sweepAll(client, "leases");
  assert.equal((await readCursor(client, lane)).token, token, "it runs");

  await expire(client, lane);
  await sweepAll(client, "leases", { keepSeconds: 3600 });
  assert.equal((await readCursor(client, lane)).token, token, "it is left to its late consumer for a while");

  const before = await hintCount(lane.partition);
  assert.deepEqual(await sweepAll(client, "leases"), { leases: 1, deadLetters: 0 });
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.token, cursor.until, cursor.failures["0"].n], [null, null, 1]);
  assert.equal(await hintCount(lane.partition), before + 1, "brokers are told");
  const [late] = await settle(client, [{ ...lane, token, from: 0, to: 1 }]);
  assert.equal(late!.status, 2, "its token is over");
  await takeOne(client, lane);
  assert.equal((await readCursor(client, lane)).failures["0"].n, 1, "counted once");
});

test("a message that every lease runs out on goes to the dead letters without a further pop", async () => {
  const lane = await newLane(client, 2);
  await configure(client, lane.queue, { retry_limit: 1 });
  for (const [attempt, delivered] of [
    [1, 2],
    [2, 2],
    [3, 1],
  ]) {
    const taken = await takeOne(client, { ...lane, retryLimit: 1 });
    assert.equal(taken.delivered.length, delivered, `attempt ${attempt}`);
    await expire(client, lane);
    await sweepAll(client, "leases");
  }
  assert.deepEqual(
    (await deadLetters(client, lane.partition)).map(({ id, error }) => [id, error]),
    [["m0", "lease expired"]],
  );
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m1"]);
});

test("where a queue has no dead letters, leases that run out only count", async () => {
  const lane = await newLane(client, 1);
  await configure(client, lane.queue, { retry_limit: 0, dead_letter_queue: false });
  for (let attempt = 1; attempt <= 4; attempt++) {
    await takeOne(client, { ...lane, retryLimit: -1 });
    await expire(client, lane);
    await sweepAll(client, "leases");
  }
  assert.deepEqual(await deadLetters(client, lane.partition), []);
  assert.equal((await readCursor(client, lane)).failures["0"].n, 4);
});

test("a cursor that another transaction holds keeps its lease", async () => {
  const lane = await newLane(client, 1);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await expire(client, lane);
  await other.query("begin");
  await settle(other, [{ ...lane, token, from: 0, to: 1 }]);
  assert.deepEqual(await sweepAll(client, "leases"), { leases: 0, deadLetters: 0 });
  await other.query("commit");
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.committed, cursor.failures], [1, null]);
});

test("a round looks at so many cursors, and the next one goes on behind them", async () => {
  const lane = await newLane(client, 1);
  await client.query(
    `insert into queen.partition_consumers (partition_id, group_id, committed)
     select $1, 1000000 + n, 0 from generate_series(1, 5000) as n`,
    [lane.partition],
  );
  const last = await newLane(client, 1);
  await takeOne(client, last);
  await expire(client, last);
  assert.deepEqual(await sweepAll(client, "leases"), { leases: 1, deadLetters: 0 });
  await client.query("delete from queen.partition_consumers where group_id > 1000000");
});

async function hintCount(partition: number): Promise<number> {
  const [row] = await database.query("select count(*) from queen.hints where $1 = any (partition_ids)", [
    partition,
  ]);
  return Number(row!.count);
}

// --------------------------------------------------------------------------------------------- partitions

const DAY = { keepSeconds: 86_400 };

/** A partition without messages in which nothing happened for two days. */
async function idleLane(queue: string, name: string): Promise<number> {
  const { partition } = await openLane(client, queue, name);
  await client.query(
    `update queen.partitions set created_at = now() - interval '2 days', last_at = now() - interval '2 days',
            next_offset = 5, start_offset = 5 where id = $1`,
    [partition],
  );
  await openCursor(client, partition, await openGroup(client, queue, "workers"));
  await client.query("update queen.partition_consumers set committed = 5 where partition_id = $1", [
    partition,
  ]);
  return partition;
}

const exists = async (table: string, column: string, id: number): Promise<boolean> =>
  (await database.query(`select 1 from queen.${table} where ${column} = $1`, [id])).length > 0;

test("idle partitions go with their cursors; Default, busy ones and those with dead letters stay", async () => {
  const idle = await idleLane("idle", "gone");
  const kept = await idleLane("idle", "Default");
  const pushed = await idleLane("idle", "pushed");
  await client.query("update queen.partitions set last_at = now() where id = $1", [pushed]);
  const consumed = await idleLane("idle", "consumed");
  await client.query(
    "update queen.partition_consumers set last_consumed_at = now() where partition_id = $1",
    [consumed],
  );
  const full = await idleLane("idle", "full");
  await client.query("update queen.partitions set start_offset = 4 where id = $1", [full]);
  const lettered = await idleLane("idle", "lettered");
  await client.query(
    `insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                     transaction_id, fragment, error_message, retry_count, created_at)
     select queue_id, id, name, 1, 'workers', 3, 't', '', 'failed', 0, now() from queen.partitions where id = $1`,
    [lettered],
  );
  assert.deepEqual(await sweepAll(client, "partitions", DAY), { partitions: 1 });
  for (const partition of [kept, pushed, consumed, full, lettered])
    assert.ok(await exists("partitions", "id", partition));
  assert.equal(await exists("partitions", "id", idle), false);
  assert.equal(await exists("partition_consumers", "partition_id", idle), false);
});

test("a push that holds an idle partition keeps it", async () => {
  const partition = await idleLane("idle-push", "lane");
  await other.query("begin");
  await push(other, partition, numbered(1));
  assert.deepEqual(await sweepAll(client, "partitions", DAY), { partitions: 0 });
  await other.query("commit");
  assert.deepEqual(await sweepAll(client, "partitions", DAY), { partitions: 0 });
  assert.deepEqual(await storedIds(client, partition), ["m0"]);
});

test("a push that comes while its partition goes is told so, or makes it anew: nothing is lost", async () => {
  const partition = await idleLane("idle-race", "lane");
  const known = await nextOffset(client, partition);
  const pushed = { partition, known, messages: numbered(1) };
  const application = await database.client();
  const pid = await processId(application);
  await other.query("begin");
  await sweepAll(other, "partitions", DAY);
  assert.equal((await append(client, [pushed]))[0]!.status, APPEND.busy);
  const waiting = call(application, "push_messages_v2", [
    { queue: "idle-race", partition: "lane", payload: 1 },
  ]);
  await waitsForLock(database, pid);
  await other.query("commit");
  assert.equal((await append(client, [pushed]))[0]!.status, APPEND.gone);
  assert.equal((await waiting)[0].status, "queued");
  const anew = await openLane(client, "idle-race", "lane");
  assert.notEqual(anew.partition, partition);
  assert.equal((await storedIds(client, anew.partition)).length, 1);
});

test("a round deletes so many partitions at most", async () => {
  for (let index = 0; index < 5; index++) await idleLane("idle-many", `lane-${index}`);
  const first = await sweep(client, "partitions", { ...DAY, batch: 2 });
  assert.deepEqual([first.state, first.done], ["under way", { partitions: 2 }]);
  assert.deepEqual(await sweepAll(client, "partitions", { ...DAY, batch: 2 }), { partitions: 5 });
});

// ------------------------------------------------------------------------------------------------ figures

test("old history goes in rounds, young history stays", async () => {
  const { queueId } = await newLane(client);
  await client.query(
    `insert into queen.retention_history (queue_id, at, kind, messages)
     select $1, now() - n * interval '1 day', 'retention', n from generate_series(0, 9) as n`,
    [queueId],
  );
  const options = { keepSeconds: 4.5 * 86_400, batch: 2 };
  assert.equal((await sweep(client, "metrics", options)).state, "under way");
  assert.deepEqual(await sweepAll(client, "metrics", options), { rows: 5 });
  const left = await database.query(
    "select messages from queen.retention_history where queue_id = $1 order by 1",
    [queueId],
  );
  assert.deepEqual(
    left.map((row) => Number(row.messages)),
    [0, 1, 2, 3, 4],
  );
});
