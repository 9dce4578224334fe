/** Clearing lanes: whole, in bounded rounds, with pushes, takes and acks under way. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  append,
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  openLane,
  processId,
  push,
  readCursor,
  SETTLE,
  settle,
  settleLease,
  TAKE,
  take,
  takeOne,
  waitsForLock,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
  other = await database.client();
});
after(() => database.drop());

interface Round {
  readonly after?: number;
  readonly below?: number | null;
  readonly partition?: number;
  readonly messages?: number;
}

async function clear(queueId: number, round: Round = {}, on = client): Promise<Row> {
  const { rows } = await on.query("select * from queen.clear_lanes($1, $2, $3, $4, $5)", [
    queueId,
    round.partition ?? null,
    round.after ?? 0,
    round.below ?? null,
    round.messages ?? 100_000,
  ]);
  assert.equal(rows.length, 1);
  return rows[0];
}

async function lane(partition: number): Promise<Row> {
  const { rows } = await client.query(
    `select start_offset as start, next_offset as next,
            (select coalesce(sum(count), 0)::int4 from queen.segments s where s.partition_id = p.id) as stored
       from queen.partitions p where id = $1`,
    [partition],
  );
  return rows[0];
}

test("a cleared lane is empty, its groups are at the end, and offsets go on", async () => {
  const { queue, queueId, partition, group } = await newLane(client, 10);
  const idle = await openGroup(client, queue, "idle");
  await openCursor(client, partition, idle);
  const token = newToken();
  await takeOne(client, { partition, group, budget: 5, token });
  await settle(client, [{ partition, group, token, from: 2, to: 3 }]);
  const cleared = await clear(queueId);
  assert.deepEqual(cleared, { after: null, below: null, lanes: 1, messages: 10, released: [partition] });
  assert.deepEqual(await lane(partition), { start: 10, next: 10, stored: 0 });
  for (const each of [group, idle]) {
    assert.deepEqual(await readCursor(client, { partition, group: each }), {
      committed: 10,
      acked: null,
      token: null,
      until: null,
      failures: null,
    });
  }
  assert.equal((await take(client, [{ partition, group }]))[0]!.status, TAKE.empty);
  assert.equal(await push(client, partition, numbered(2)), 10, "the same transactionIds, at new offsets");
  assert.deepEqual((await takeOne(client, { partition, group })).delivered, ["m0", "m1"]);
  const late = await openGroup(client, queue, "late");
  await openCursor(client, partition, late);
  assert.deepEqual((await takeOne(client, { partition, group: late })).delivered, ["m0", "m1"]);
});

test("a token from before a clear is dead, failures are forgotten, dead letters stay", async () => {
  const { queueId, partition, group } = await newLane(client, 4);
  const first = newToken();
  await takeOne(client, { partition, group, token: first });
  await settleLease(client, { partition, group }, first, { dead: [0], failed: [1] });
  const token = newToken();
  await takeOne(client, { partition, group, token });
  await clear(queueId);
  const { rows } = await client.query("select * from queen.dead_letters where partition_id = $1", [
    partition,
  ]);
  assert.equal(rows.length, 1);
  const failed = await settleLease(client, { partition, group }, token, { failed: [2] });
  assert.equal(failed.status, SETTLE.stale);
  await push(client, partition, numbered(2, 10));
  const [stale] = await settle(client, [{ partition, group, token, from: 4, to: 6 }]);
  assert.equal(stale!.status, SETTLE.stale, "it finishes nothing that came later");
  assert.deepEqual((await readCursor(client, { partition, group })).failures, null);
  assert.deepEqual((await takeOne(client, { partition, group })).delivered, ["m10", "m11"]);
});

test("a long lane goes in rounds: consumers stop at once, and start_offset is where the log begins", async () => {
  const { queueId, partition, group } = await newLane(client, 30); // segments of three
  const steps: Row[] = [];
  let round: Round | undefined = { messages: 10 };
  while (round) {
    const cleared = await clear(queueId, round);
    const { start, stored } = await lane(partition);
    assert.equal(stored, 30 - start, "what is in the log is what start_offset says");
    assert.equal((await readCursor(client, { partition, group })).committed, 30);
    steps.push({ messages: cleared.messages, lanes: cleared.lanes });
    round = cleared.after === null ? undefined : { ...cleared, messages: 10 };
  }
  assert.deepEqual(steps, [
    { messages: 9, lanes: 0 },
    { messages: 9, lanes: 0 },
    { messages: 9, lanes: 0 },
    { messages: 3, lanes: 1 },
  ]);
});

test("what is pushed between two rounds is kept, and its consumers are left alone", async () => {
  const { queueId, partition, group } = await newLane(client, 12);
  const first = await clear(queueId, { messages: 6 });
  assert.deepEqual([first.after, first.below], [0, 12]);
  await push(client, partition, numbered(5, 12));
  const token = newToken();
  assert.equal((await takeOne(client, { partition, group, token })).delivered.length, 5);
  const second = await clear(queueId, { after: first.after, below: first.below, messages: 6 });
  assert.deepEqual([second.after, second.messages, second.released], [null, 6, []]);
  assert.deepEqual(await lane(partition), { start: 12, next: 17, stored: 5 });
  const [settled] = await settle(client, [{ partition, group, token, from: 12, to: 17 }]);
  assert.deepEqual([settled!.status, settled!.released], [SETTLE.done, true]);
});

test("a group that comes in the middle of a clear is moved behind it, what it finished beyond stays finished", async () => {
  const { queue, queueId, partition } = await newLane(client, 12);
  const first = await clear(queueId, { messages: 6 });
  await push(client, partition, numbered(6, 12));
  const late = await openGroup(client, queue, "late");
  await openCursor(client, partition, late);
  await client.query(
    "update queen.partition_consumers set acked = '{[12,14),[15,16)}' where partition_id = $1 and group_id = $2",
    [partition, late],
  );
  await clear(queueId, { after: first.after, below: first.below });
  const { committed, acked } = await readCursor(client, { partition, group: late });
  assert.deepEqual([committed, acked], [14, "{[15,16)}"]);
});

test("a push that is under way is waited for and cleared whole", async () => {
  const { queueId, partition } = await newLane(client, 2);
  await other.query("begin");
  await append(other, [{ partition, known: 2, messages: numbered(7, 2) }]);
  const waiting = processId(client).then(async (pid) => {
    const cleared = clear(queueId);
    await waitsForLock(database, pid);
    await other.query("commit");
    return cleared;
  });
  assert.equal((await waiting).messages, 9);
  assert.deepEqual(await lane(partition), { start: 9, next: 9, stored: 0 });
});

test("a push that meets a clear under way is stored behind it, whole", async () => {
  const { queueId, partition } = await newLane(client, 2);
  await other.query("begin");
  await clear(queueId, {}, other);
  const [busy] = await append(client, [{ partition, known: 2, messages: numbered(4, 2) }]);
  assert.equal(busy!.status, 1, "busy; a broker tries again");
  await other.query("commit");
  const [stored] = await append(client, [{ partition, known: 2, messages: numbered(4, 2) }]);
  assert.deepEqual([stored!.status, stored!.at_offset], [0, 2]);
  assert.deepEqual(await lane(partition), { start: 2, next: 6, stored: 4 });
});

test("a cursor that is opened during a clear finds the end", async () => {
  const { queue, queueId, partition } = await newLane(client, 5);
  const late = await openGroup(client, queue, "late");
  await other.query("begin");
  await clear(queueId, {}, other);
  await openCursor(client, partition, late);
  await other.query("commit");
  assert.equal((await take(client, [{ partition, group: late }]))[0]!.status, TAKE.empty);
  await push(client, partition, numbered(1, 5));
  assert.deepEqual((await takeOne(client, { partition, group: late })).delivered, ["m5"]);
});

test("a queue of many lanes is cleared a thousand at a time, other queues and lanes stay", async () => {
  const { queueId } = await openLane(client, "wide");
  await client.query(
    `insert into queen.partitions (queue_id, name, next_offset, last_at)
     select $1, 'w' || n, 2, now() from generate_series(1, 2499) as n`,
    [queueId],
  );
  await client.query(
    `insert into queen.segments select p.id, 0, 2, now(), '\\x00', '\\x00', '\\x00' from queen.partitions p
      where p.queue_id = $1 and p.next_offset > 0`,
    [queueId],
  );
  const { partition: bystander } = await newLane(client, 3);
  const before = await client.query("select pg_current_snapshot()::text as snapshot");
  const lanes: number[] = [];
  let messages = 0;
  for (let next: Row | undefined = {}; next; ) {
    const cleared: Row = await clear(queueId, next);
    lanes.push(cleared.lanes);
    messages += cleared.messages;
    next = cleared.after === null ? undefined : { after: cleared.after, below: cleared.below };
  }
  assert.deepEqual([lanes, messages], [[1_000, 1_000, 500], 4_998]);
  const { rows } = await client.query(
    `select count(*)::int4 as left from queen.segments s join queen.partitions p on p.id = s.partition_id
      where p.queue_id = $1`,
    [queueId],
  );
  assert.equal(rows[0].left, 0);
  assert.deepEqual(await lane(bystander), { start: 0, next: 3, stored: 3 });
  const told = await client.query(
    "select partition_id from queen.read_hints($1, '{}') where queue_id is null",
    [before.rows[0].snapshot],
  );
  const rewritten = told.rows.filter((row) => row.partition_id !== null && row.partition_id !== bystander);
  assert.equal(rewritten.length, 2_500, "brokers are told to drop what they hold of these lanes");
});

test("one partition is cleared alone; a queue that is gone is nothing to clear", async () => {
  const { queue, queueId, partition } = await newLane(client, 3);
  const { partition: second } = await openLane(client, queue, "second");
  await push(client, second, numbered(4));
  const cleared = await clear(queueId, { partition: second });
  assert.deepEqual([cleared.after, cleared.lanes, cleared.messages], [null, 1, 4]);
  assert.deepEqual(await lane(partition), { start: 0, next: 3, stored: 3 });
  await client.query("delete from queen.queues where id = $1", [queueId]);
  assert.deepEqual(await clear(queueId), { after: null, below: null, lanes: 0, messages: 0, released: [] });
});
