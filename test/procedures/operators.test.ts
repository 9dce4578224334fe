/** What operators do, beside what consumers and producers do at the same moment: two sessions on one lane. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
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
  type TestLane,
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

/** Holds a transaction open on `client`, has `other` wait for it, and ends it. */
async function beside<T>(first: () => Promise<unknown>, second: () => Promise<T>): Promise<T> {
  const pid = await processId(other);
  await client.query("begin");
  await first();
  const waiting = second();
  await waitsForLock(database, pid);
  await client.query("commit");
  return waiting;
}

const cursors = async ({ partition }: TestLane) =>
  database.query("select group_id, committed from queen.partition_consumers where partition_id = $1", [
    partition,
  ]);

test("seek: a cursor that is opened meanwhile starts where the group was moved to", async () => {
  const lane = await newLane(client, 3);
  const later = await openLane(client, lane.queue, "later");
  await push(client, later.partition, numbered(4));
  const rows = await beside(
    () => client.query("select * from queen.seek($1, 'workers', null, null)", [lane.queue]),
    () => other.query("select * from queen.open_cursors($1, $2)", [[later.partition], [lane.group]]),
  );
  assert.equal(rows.rows[0].status, 0);
  assert.equal((await readCursor(client, { partition: later.partition, group: lane.group })).committed, 4);
});

test("seek: a take that comes meanwhile is busy and waits for nobody, an old token changes nothing", async () => {
  const lane = await newLane(client, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await client.query("begin");
  await client.query("select * from queen.seek($1, 'workers', null, '2000-01-01')", [lane.queue]);
  const [answer] = await take(other, [lane]);
  assert.equal(answer!.status, TAKE.leased, "as it was before");
  const [busy] = await settle(other, [{ ...lane, token, from: 0, to: 1 }]);
  assert.equal(busy!.status, SETTLE.busy);
  await client.query("commit");
  const [stale] = await settle(other, [{ ...lane, token, from: 0, to: 1 }]);
  assert.equal(stale!.status, SETTLE.stale);
  assert.equal((await takeOne(client, lane)).from, 0);
});

test("seek and the deletion of the queue wait for each other, and never in a circle", async () => {
  for (const seekFirst of [true, false]) {
    const lane = await newLane(client, 3);
    const seek = (session: pg.Client) =>
      session.query("select * from queen.seek($1, 'workers', null, null)", [lane.queue]);
    const remove = (session: pg.Client) =>
      session.query("delete from queen.queues where name = $1", [lane.queue]);
    if (seekFirst)
      await beside(
        () => seek(client),
        () => remove(other),
      );
    else {
      const { rows } = await beside(
        () => remove(client),
        () => seek(other),
      );
      assert.equal(rows[0].queue_id, null);
    }
    assert.deepEqual(await cursors(lane), []);
  }
});

test("delete_group: a cursor that is opened meanwhile is not left behind", async () => {
  const lane = await newLane(client, 1);
  const later = await openLane(client, lane.queue, "later");
  const { rows } = await beside(
    () => client.query("select * from queen.delete_group('workers', $1, true)", [lane.queue]),
    () => other.query("select * from queen.open_cursors($1, $2)", [[later.partition], [lane.group]]),
  );
  assert.equal(rows[0].status, 2, "no such group");
  assert.deepEqual(await cursors(lane), []);
  assert.deepEqual(await cursors({ ...lane, partition: later.partition }), []);
});

async function bury(lane: TestLane, dead: readonly number[]): Promise<number[]> {
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { dead: [...dead] });
  const rows = await database.query("select id from queen.dead_letters where partition_id = $1 order by id", [
    lane.partition,
  ]);
  return rows.map((row) => row.id as number);
}

test("requeue: who comes second waits, and finds nothing to move", async () => {
  const lane = await newLane(client, 3);
  const letters = await bury(lane, [0, 1]);
  const { rows } = await beside(
    async () => {
      const first = await client.query("select * from queen.requeue($1)", [letters]);
      assert.deepEqual(
        first.rows.map((row) => row.at_offset),
        [3, 4],
      );
    },
    () => other.query("select * from queen.requeue($1)", [letters]),
  );
  assert.deepEqual(rows, []);
  const [log] = await database.query(
    `select array_agg(transaction_id order by message_offset) as ids, min(start_offset) as start
       from queen.messages m join queen.partitions p on p.id = m.partition_id where m.partition_id = $1`,
    [lane.partition],
  );
  assert.deepEqual(log!.ids, ["m0", "m1", "m2", "m0", "m1"]);
});

test("requeue: a producer that did not see it compares its keys with it", async () => {
  const lane = await newLane(client, 2);
  const letters = await bury(lane, [0]);
  await client.query("select * from queen.requeue($1)", [letters]);
  const rows = await append(client, [{ partition: lane.partition, known: 2, messages: numbered(1) }]);
  assert.equal(rows[0]!.status, 4, "conflict: the same transactionId was added");
  const fresh = await append(client, [{ partition: lane.partition, known: 2, messages: numbered(1, 7) }]);
  assert.deepEqual(
    fresh.map((row) => row.status),
    [5, 0],
  );
});

test("requeue: large letters are cut into segments that stay small", async () => {
  const lane = await newLane(client);
  const data = JSON.stringify("x".repeat(20_000));
  const messages = numbered(10).map((message) => ({ ...message, data }));
  await push(client, lane.partition, [...messages, ...numbered(300, 10)], 100);
  const token = newToken();
  await takeOne(client, { ...lane, token, budget: 1_000 });
  await settleLease(client, lane, token, { dead: Array.from({ length: 310 }, (_, index) => index) });
  const letters = await database.query("select id from queen.dead_letters where partition_id = $1", [
    lane.partition,
  ]);
  await client.query("select queen.requeue($1)", [letters.map((row) => row.id)]);
  const segments = await database.query(
    "select count, length(body) as bytes from queen.segments where partition_id = $1 and first_offset >= 310",
    [lane.partition],
  );
  assert.ok(segments.every(({ count, bytes }) => count <= 128 && bytes <= 65_536 + 21_000));
  const { delivered } = await takeOne(client, { ...lane, budget: 1_000 });
  assert.deepEqual(
    delivered,
    numbered(310).map((message) => message.transactionId),
  );
});

test("finish: other groups' marks join up with what they finished, and a lease with nothing left ends", async () => {
  const lane = await newLane(client, 5);
  const audit = { ...lane, group: await openGroup(client, lane.queue, "audit") };
  await openCursor(client, lane.partition, audit.group);
  const token = newToken();
  await takeOne(client, { ...lane, token, budget: 3 });
  await settle(client, [{ ...lane, token, from: 1, to: 3 }]);
  const finish = (done: string, groups: readonly number[] | null) =>
    client.query("select queen.finish($1, $2, $3::int8multirange)", [lane.partition, groups, done]);
  await finish("{[3,4)}", [audit.group]);
  assert.deepEqual((await readCursor(client, audit)).acked, "{[3,4)}");
  await finish("{[0,1)}", null);
  const own = await readCursor(client, lane);
  assert.deepEqual([own.committed, own.acked, own.token], [3, null, null]);
  await finish("{[1,3)}", [audit.group]);
  const after = await readCursor(client, audit);
  assert.deepEqual([after.committed, after.acked], [4, null]);
});

test("delete_message: two messages of one segment at once, and the segment stays readable", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, numbered(6), 6);
  const gone = await beside(
    () => client.query("select queen.delete_message($1, 2)", [lane.partition]),
    () => other.query("select queen.delete_message($1, 3) as done", [lane.partition]),
  );
  assert.equal(gone.rows[0].done, true);
  const rows = await database.query(
    "select transaction_id, payload ->> 'n' as n from queen.messages where partition_id = $1 order by message_offset",
    [lane.partition],
  );
  assert.deepEqual(
    rows.map((row) => [row.transaction_id, row.n]),
    [0, 1, 4, 5].map((n) => [`m${n}`, String(n)]),
  );
  const [again] = await database.query(
    "select queen.delete_message($1, 2) as twice, queen.delete_message($1, 99) as beyond, queen.delete_message(0, 0) as nowhere",
    [lane.partition],
  );
  assert.deepEqual(again, { twice: false, beyond: false, nowhere: false });
});

test("delete_message: brokers are told by a hint", async () => {
  const lane = await newLane(client, 2);
  const snapshot = async (from: string | null) =>
    (await database.query("select * from queen.read_hints($1, $2)", [from, [lane.queueId]])) as Record<
      string,
      unknown
    >[];
  const [start] = await snapshot(null);
  await client.query("select queen.delete_message($1, 0)", [lane.partition]);
  const [, ...told] = await snapshot(start!.snapshot as string);
  assert.deepEqual(
    told.map((row) => [row.queue_id, row.partition_id]),
    [
      [null, lane.partition],
      [lane.queueId, lane.partition],
    ],
  );
});
