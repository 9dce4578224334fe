/** append (P2, P7): offsets in commit order without gaps, and no key stored twice, whoever else appends. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  APPEND,
  append,
  newLane,
  nextOffset,
  numbered,
  openLane,
  push,
  readEverything,
  TAKE,
  take,
  takeOne,
} from "../support/procedures.ts";
import { keysOf, type LaneAppend, type Message } from "../support/segments.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

const named = (...ids: string[]): Message[] => ids.map((transactionId) => ({ transactionId }));

const statuses = (rows: { lane: number; status: number }[]): [number, number][] =>
  rows.map((row): [number, number] => [row.lane, row.status]).sort((a, b) => a[0] - b[0]);

async function storedIds(partition: number): Promise<string[]> {
  const rows = await database.query(
    "select transaction_id from queen.messages where partition_id = $1 order by message_offset",
    [partition],
  );
  return rows.map((row) => row.transaction_id);
}

test("offsets are dense, segments follow each other, and the answer names the first", async () => {
  const { partition } = await newLane(client);
  assert.equal(await push(client, partition, numbered(7), 3), 0);
  assert.equal(await push(client, partition, numbered(2, 7), 3), 7);
  assert.equal(await push(client, partition, numbered(1, 9), 3), 9);
  const segments = await database.query(
    "select first_offset, count from queen.segments where partition_id = $1 order by first_offset",
    [partition],
  );
  assert.deepEqual(
    segments.map((row) => [row.first_offset, row.count]),
    [
      [0, 3],
      [3, 3],
      [6, 1],
      [7, 2],
      [9, 1],
    ],
  );
  assert.deepEqual(
    await storedIds(partition),
    numbered(10).map((message) => message.transactionId),
  );
  assert.equal(await nextOffset(client, partition), 10);
});

test("one call appends to many lanes, each with its own offsets", async () => {
  const lanes = [await newLane(client, 4), await newLane(client), await newLane(client, 1)];
  const rows = await append(
    client,
    lanes.map(({ partition }, index) => ({
      partition,
      known: [4, 0, 1][index]!,
      messages: numbered(index + 1, 50),
    })),
  );
  assert.deepEqual(
    rows.map((row) => [row.lane, row.status, row.at_offset]),
    [
      [0, APPEND.appended, 4],
      [1, APPEND.appended, 0],
      [2, APPEND.appended, 1],
    ],
  );
  assert.deepEqual(await storedIds(lanes[2]!.partition), ["m0", "m50", "m51", "m52"]);
});

test("a lane held by an open transaction is busy, and the others in the call are stored", async () => {
  const [held, free] = [await newLane(client, 1), await newLane(client, 1)];
  await other.query("begin");
  await append(other, [{ partition: held.partition, known: 1, messages: named("theirs") }]);
  const call = [
    { partition: held.partition, known: 1, messages: named("ours") },
    { partition: free.partition, known: 1, messages: named("ours") },
  ];
  const rows = await append(client, call);
  assert.deepEqual(statuses(rows as never), [
    [0, APPEND.busy],
    [1, APPEND.appended],
  ]);
  await other.query("commit");
  assert.deepEqual(await storedIds(held.partition), ["m0", "theirs"]);
  assert.deepEqual(await storedIds(free.partition), ["m0", "ours"]);
});

test("a lane whose row a user holds is busy too, and so is a call of busy lanes only", async () => {
  const { partition } = await newLane(client, 1);
  await other.query("begin");
  await other.query("select 1 from queen.partitions where id = $1 for update", [partition]);
  const rows = await append(client, [{ partition, known: 1, messages: named("ours") }]);
  assert.deepEqual(statuses(rows as never), [[0, APPEND.busy]]);
  await other.query("rollback");
  assert.equal(await push(client, partition, named("ours")), 1);
});

test("a late commit is seen whole and in order: nobody can pass it", async () => {
  const lane = await newLane(client, 2);
  await takeOne(client, { ...lane, autoAck: true });
  await other.query("begin");
  await append(other, [{ partition: lane.partition, known: 2, messages: named("late1", "late2") }]);

  const rows = await append(client, [{ partition: lane.partition, known: 2, messages: named("early") }]);
  assert.deepEqual(statuses(rows as never), [[0, APPEND.busy]], "a later message gets no place before it");
  assert.equal((await take(client, [lane]))[0]!.status, TAKE.empty, "an open transaction shows nothing");

  await other.query("commit");
  assert.equal(await push(client, lane.partition, named("early")), 4);
  assert.deepEqual((await takeOne(client, lane)).delivered, ["late1", "late2", "early"]);
});

test("a rolled back append leaves no gap", async () => {
  const { partition } = await newLane(client, 2);
  await other.query("begin");
  await append(other, [{ partition, known: 2, messages: numbered(5, 2) }]);
  await other.query("rollback");
  assert.equal(await push(client, partition, named("next")), 2);
  assert.deepEqual(await storedIds(partition), ["m0", "m1", "next"]);
});

test("what others added since is returned, and the append comes after it", async () => {
  const { partition } = await newLane(client, 2);
  await push(other, partition, named("a", "b", "c", "d"), 3);
  await push(other, partition, named("e"), 3);
  const rows = await append(client, [{ partition, known: 2, messages: named("x", "y") }]);
  assert.deepEqual(
    rows.map((row) => [row.status, row.at_offset]),
    [
      [APPEND.missed, 2],
      [APPEND.missed, 5],
      [APPEND.missed, 6],
      [APPEND.appended, 7],
    ],
    "the missed keys come before the result",
  );
  const keys = Buffer.concat(await keysOf(client, ["a", "b", "c", "d", "e"]));
  assert.deepEqual(Buffer.concat(rows.slice(0, 3).map((row) => row.keys)), keys);
  assert.ok(rows.every((row) => row.created_at instanceof Date));
  assert.deepEqual(await storedIds(partition), ["m0", "m1", "a", "b", "c", "d", "e", "x", "y"]);
});

test("a key that was added meanwhile is a conflict, and nothing of that lane is stored", async () => {
  const [lane, bystander] = [await newLane(client, 2), await newLane(client, 2)];
  await push(other, lane.partition, named("a", "same", "c"));
  const call = [
    { partition: lane.partition, known: 2, messages: named("x", "same") },
    { partition: bystander.partition, known: 2, messages: named("x", "same") },
  ];
  const rows = await append(client, call);
  assert.deepEqual(statuses(rows as never), [
    [0, APPEND.conflict],
    [1, APPEND.appended],
  ]);
  assert.deepEqual(await storedIds(lane.partition), ["m0", "m1", "a", "same", "c"]);
  assert.equal(await nextOffset(client, lane.partition), 5);
});

test("a key that was there before the known offset is the caller's business", async () => {
  const { partition } = await newLane(client, 3);
  const rows = await append(client, [{ partition, known: 3, messages: named("m1") }]);
  assert.deepEqual(statuses(rows as never), [[0, APPEND.appended]]);
});

test("two that race with the same key store it once, whoever comes first", async () => {
  const { partition } = await newLane(client, 1);
  const call = [{ partition, known: 1, messages: named("same") }];
  await other.query("begin");
  await append(other, call);
  assert.deepEqual(statuses((await append(client, call)) as never), [[0, APPEND.busy]]);
  await other.query("commit");
  assert.deepEqual(statuses((await append(client, call)) as never), [[0, APPEND.conflict]]);
  assert.deepEqual(await storedIds(partition), ["m0", "same"]);
});

test("a caller that is too far behind, or ahead, reads the keys first", async () => {
  const { partition } = await newLane(client);
  await push(other, partition, numbered(4096), 128);
  const at = async (known: number, id: string): Promise<number[]> =>
    (await append(client, [{ partition, known, messages: named(id) }])).map((row) => row.status);
  assert.deepEqual(
    new Set(await at(0, "first")),
    new Set([APPEND.missed, APPEND.appended]),
    "4096 is near enough",
  );
  assert.deepEqual(await at(0, "second"), [APPEND.behind]);
  assert.deepEqual(await at(-1, "second"), [APPEND.behind]);
  assert.deepEqual(await at(4098, "second"), [APPEND.behind], "nobody knows what is not there yet");
  assert.equal(await nextOffset(client, partition), 4097);
});

test("a lane that is behind does not hold up the others in the call", async () => {
  const [lane, good] = [await newLane(client, 3), await newLane(client, 3)];
  const rows = await append(client, [
    { partition: lane.partition, known: 9, messages: named("x") },
    { partition: good.partition, known: 3, messages: named("x") },
  ]);
  assert.deepEqual(statuses(rows as never), [
    [0, APPEND.behind],
    [1, APPEND.appended],
  ]);
});

test("a partition that does not exist is gone, alone or among others", async () => {
  const { partition } = await newLane(client, 1);
  const missing = { partition: 999_999_999, known: 0, messages: named("x") };
  assert.deepEqual(statuses((await append(client, [missing])) as never), [[0, APPEND.gone]]);
  const rows = await append(client, [missing, { partition, known: 1, messages: named("x") }]);
  assert.deepEqual(statuses(rows as never), [
    [0, APPEND.gone],
    [1, APPEND.appended],
  ]);
});

test("a partition deleted meanwhile is gone, and no segment of it is left", async () => {
  const { queue, partition } = await newLane(client, 3);
  await client.query("delete from queen.queues where name = $1", [queue]);
  const rows = await append(client, [{ partition, known: 3, messages: named("x") }]);
  assert.deepEqual(statuses(rows as never), [[0, APPEND.gone]]);
  assert.deepEqual(
    await database.query("select 1 from queen.segments where partition_id = $1", [partition]),
    [],
  );
});

test("a refused call changes nothing at all", async () => {
  const { partition } = await newLane(client, 3);
  const before = await readEverything(client);
  await append(client, [
    { partition, known: 7, messages: named("x") },
    { partition: 999_999_999, known: 0, messages: named("x") },
  ]);
  assert.deepEqual(await readEverything(client), before);
});

test("created_at never goes back within a partition, even if the clock does", async () => {
  const { partition } = await newLane(client, 1);
  await client.query(
    "update queen.partitions set last_at = clock_timestamp() + interval '1 hour' where id = $1",
    [partition],
  );
  await client.query(
    `update queen.segments set created_at = (select last_at from queen.partitions where id = $1)
      where partition_id = $1`,
    [partition],
  );
  await push(client, partition, named("after"));
  const rows = await database.query(
    `select s.created_at = first_value(s.created_at) over (order by s.first_offset) as same,
            p.last_at = s.created_at as last
       from queen.segments s join queen.partitions p on p.id = s.partition_id
      where s.partition_id = $1 order by s.first_offset`,
    [partition],
  );
  assert.deepEqual(rows, [
    { same: true, last: true },
    { same: true, last: true },
  ]);
});

test("created_at is the database's clock after the lock, not the transaction's start", async () => {
  const { partition } = await newLane(client, 0);
  await other.query("begin");
  await other.query("select pg_sleep(0.02)");
  await push(other, partition, named("x"));
  const { rows } = await other.query(
    "select created_at > now() as later from queen.segments where partition_id = $1",
    [partition],
  );
  await other.query("commit");
  assert.deepEqual(rows, [{ later: true }]);
});

test("racing writers on the same lanes leave dense offsets and each message once", async () => {
  const queue = "race";
  const lanes = await Promise.all(["a", "b", "c"].map((name) => openLane(client, queue, name)));
  const writers = await Promise.all([
    database.client(),
    database.client(),
    database.client(),
    database.client(),
  ]);
  await Promise.all(
    writers.map(async (writer, index) => {
      for (let round = 0; round < 25; round++) {
        // Every key is written by two of the writers.
        const id = `${index >> 1}-${round}`;
        const order = round % 2 === 0 ? lanes : [...lanes].reverse();
        let open = order.map(({ partition }) => ({
          partition,
          messages: named(id, `${id}-${index}`),
          from: 0,
        }));
        while (open.length > 0) {
          const call: LaneAppend[] = [];
          for (const lane of open) {
            const known = await nextOffset(writer, lane.partition);
            const ids = await storedIdsBy(writer, lane.partition);
            const messages = lane.messages.filter(({ transactionId }) => !ids.has(transactionId));
            // Two statements: what was stored between them is above `known`, or is met as a conflict.
            if (messages.length > 0) call.push({ partition: lane.partition, known, messages });
          }
          if (call.length === 0) break;
          const rows = await append(writer, call);
          const stored = new Set(
            rows.filter((row) => row.status === APPEND.appended).map((row) => call[row.lane]!.partition),
          );
          open = open.filter((lane) => !stored.has(lane.partition));
        }
      }
    }),
  );
  for (const { partition } of lanes) {
    const ids = await storedIds(partition);
    assert.equal(ids.length, 2 * 25 + 4 * 25);
    assert.equal(new Set(ids).size, ids.length, "no key is stored twice");
    const [holes] = await database.query(
      `select count(*) from (select first_offset + count as next, lead(first_offset) over (order by first_offset) as following
                               from queen.segments where partition_id = $1) s where next <> following`,
      [partition],
    );
    assert.equal(holes!.count, 0);
    assert.equal(await nextOffset(client, partition), ids.length);
  }
});

async function storedIdsBy(writer: pg.Client, partition: number): Promise<Set<string>> {
  const { rows } = await writer.query("select transaction_id from queen.messages where partition_id = $1", [
    partition,
  ]);
  return new Set(rows.map((row) => row.transaction_id));
}
