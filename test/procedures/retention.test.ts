/** The sweep of retention: what is old goes, by the queue's rules; what a group still needs stays. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  APPEND,
  age,
  append,
  expire,
  newLane,
  newToken,
  nextOffset,
  numbered,
  openCursor,
  openGroup,
  push,
  readCursor,
  settle,
  settleLease,
  type TestLane,
  takeOne,
} from "../support/procedures.ts";
import {
  configure,
  deadLetters,
  history,
  sequentialScans,
  startOffset,
  storedIds,
  sweep,
  sweepAll,
} from "../support/sweeps.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
  other = await database.client();
});
after(() => database.drop());

const RETENTION = { retention_enabled: true, retention_seconds: 60 };
const COMPLETED = { retention_enabled: true, completed_retention_seconds: 60 };

/** A lane of a queue with these options: `old` messages a hundred seconds old, then `young` ones. */
async function laneOf(options: object, old: number, young = 0): Promise<TestLane> {
  const lane = await newLane(client, old);
  await configure(client, lane.queue, options);
  await age(client, lane.partition, 100);
  if (young > 0) await push(client, lane.partition, numbered(young, old));
  return lane;
}

async function finish(lane: TestLane, group: number, count: number): Promise<void> {
  const token = newToken();
  const { from } = await takeOne(client, { partition: lane.partition, group, token, budget: count });
  await settle(client, [{ partition: lane.partition, group, token, from, to: from + count }]);
}

const ids = (from: number, to: number): string[] =>
  numbered(to - from, from).map((each) => each.transactionId);

test("retentionSeconds removes whole segments that are older, finished or not", async () => {
  const lane = await laneOf(RETENTION, 7, 4);
  assert.deepEqual(await sweepAll(client, "retention"), {
    retentionMessages: 7,
    completedMessages: 0,
    segments: 3,
  });
  assert.deepEqual(await storedIds(client, lane.partition), ids(7, 11));
  assert.equal(await startOffset(client, lane.partition), 7);
  assert.deepEqual(await history(client, lane.queueId), { retention: 7 });
  const taken = await takeOne(client, lane);
  assert.deepEqual(taken.delivered, ids(7, 11), "the group goes on with what is left");
});

test("without retentionEnabled nothing is removed", async () => {
  const lane = await laneOf({ retention_seconds: 1, completed_retention_seconds: 1 }, 3);
  await finish(lane, lane.group, 3);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(0, 3));
});

test("completedRetentionSeconds removes what every group has finished, up to the one that lags", async () => {
  const lane = await laneOf(COMPLETED, 9);
  const slow = await openGroup(client, lane.queue, "slow");
  await openCursor(client, lane.partition, slow);
  await finish(lane, lane.group, 9);
  await sweepAll(client, "retention");
  assert.equal(await startOffset(client, lane.partition), 0, "the slow group needs everything");

  await finish(lane, slow, 4);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(3, 9), "only whole segments go");

  await finish(lane, slow, 5);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), []);
  assert.deepEqual(await history(client, lane.queueId), { completed_retention: 9 });
});

test("what was finished a moment ago stays until it is old", async () => {
  const lane = await laneOf(COMPLETED, 3, 3);
  await finish(lane, lane.group, 6);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(3, 6));
});

test("messages acked out of order keep what is unfinished before them", async () => {
  const lane = await laneOf(COMPLETED, 9);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { done: "{[1,9)}", release: true });
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(0, 9));
});

test("a group that has not met the lane keeps it, unless its subscription starts later", async () => {
  const lane = await laneOf(COMPLETED, 3, 1);
  await finish(lane, lane.group, 4);
  await openGroup(client, lane.queue, "all");
  await sweepAll(client, "retention");
  assert.equal((await storedIds(client, lane.partition)).length, 4, "a group that reads everything");

  const later = await laneOf(COMPLETED, 3, 1);
  await finish(later, later.group, 4);
  await openGroup(client, later.queue, "new", "new");
  await sweepAll(client, "retention");
  assert.deepEqual(
    await storedIds(client, later.partition),
    ids(3, 4),
    "a group that reads what is pushed now",
  );
});

test("a queue that no group reads keeps everything", async () => {
  const lane = await laneOf(COMPLETED, 3);
  await client.query("select * from queen.delete_group('workers', $1, true)", [lane.queue]);
  await sweepAll(client, "retention");
  assert.equal((await storedIds(client, lane.partition)).length, 3);
});

test("dead letters outlive the log, and can be put back", async () => {
  const lane = await laneOf(RETENTION, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { dead: [0], release: true });
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), []);
  assert.deepEqual(
    (await deadLetters(client, lane.partition)).map((letter) => letter.id),
    ["m0"],
  );
  await client.query(
    "select * from queen.requeue(array(select id from queen.dead_letters where partition_id = $1))",
    [lane.partition],
  );
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m0"]);
});

test("ttl removes what expired, but nothing from where a consumer holds it", async () => {
  const lane = await laneOf({ ttl: 60 }, 9, 2);
  const token = newToken();
  // Asked without its ttl, as a pop that came before the messages expired.
  await takeOne(client, { ...lane, token, budget: 4 });
  await settle(client, [{ ...lane, token, from: 0, to: 3 }]);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(3, 11));

  await expire(client, lane);
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(9, 11));
  assert.deepEqual(await history(client, lane.queueId), { retention: 9 });
});

test("a lane that a push holds is neither waited for nor touched, and swept the next time", async () => {
  const lane = await laneOf(RETENTION, 3);
  await other.query("begin");
  const known = await nextOffset(other, lane.partition);
  await append(other, [{ partition: lane.partition, known, messages: numbered(2, 3) }]);
  assert.equal((await sweepAll(client, "retention")).retentionMessages, 0);
  await other.query("commit");
  assert.deepEqual(await storedIds(client, lane.partition), ids(0, 5));
  await sweepAll(client, "retention");
  assert.deepEqual(await storedIds(client, lane.partition), ids(3, 5));
});

test("a push during a round is told that the lane is busy, and stored after it", async () => {
  const lane = await laneOf(RETENTION, 3);
  await other.query("begin");
  await sweepAll(other, "retention");
  const pushed = { partition: lane.partition, known: 3, messages: numbered(1, 3) };
  assert.deepEqual(
    (await append(client, [pushed])).map((row) => row.status),
    [APPEND.busy],
  );
  await other.query("commit");
  assert.equal((await append(client, [pushed]))[0]!.at_offset, 3);
  assert.deepEqual(await storedIds(client, lane.partition), ids(3, 4));
});

test("a pop and an ack during a round work, and their group goes on behind what was removed", async () => {
  const lane = await laneOf(RETENTION, 6);
  const token = newToken();
  await takeOne(client, { ...lane, token, budget: 2 });
  await other.query("begin");
  await sweepAll(other, "retention");
  const [settled] = await settle(client, [{ ...lane, token, from: 0, to: 2 }]);
  assert.deepEqual([settled!.status, settled!.released], [0, true]);
  const again = newToken();
  assert.deepEqual((await takeOne(client, { ...lane, token: again, budget: 2 })).delivered, ids(2, 4));
  await other.query("commit");
  const [late] = await settle(client, [{ ...lane, token: again, from: 2, to: 4 }]);
  assert.equal(late!.status, 0, "an ack of what is gone meanwhile is an ack");
  await push(client, lane.partition, numbered(1, 6));
  assert.deepEqual((await takeOne(client, lane)).delivered, ids(6, 7));
  assert.equal((await readCursor(client, lane)).committed, 6);
});

test("an operator's seek that is under way keeps what it moves back to", async () => {
  const lane = await laneOf(COMPLETED, 6);
  await finish(lane, lane.group, 6);
  await other.query("begin");
  await other.query("select * from queen.seek($1, 'workers', null, now() - interval '1 day')", [lane.queue]);
  assert.equal((await sweepAll(client, "retention")).completedMessages, 0);
  await other.query("commit");
  await sweepAll(client, "retention");
  assert.deepEqual((await takeOne(client, lane)).delivered, ids(0, 6));
});

test("rounds are bounded, and one that is lost is done again", async () => {
  const lane = await laneOf(RETENTION, 15);
  const rounds: number[] = [];
  for (let lost = true; ; lost = !lost) {
    if (lost) {
      await client.query("begin");
      await sweep(client, "retention", { batch: 2 });
      await client.query("rollback");
    }
    const row = await sweep(client, "retention", { batch: 2, worker: lost ? "one" : "tester" });
    if (row.state === "elsewhere") {
      await client.query("update queen.sweeps set round_at = round_at - interval '11 seconds'");
      continue;
    }
    rounds.push(await startOffset(client, lane.partition));
    if (row.state === "finished") break;
  }
  assert.deepEqual(rounds, [6, 12, 15]);
  assert.deepEqual(await history(client, lane.queueId), { retention: 15 });
});

test("no round reads the log from end to end, nor the cursors, in a queue of many partitions", async () => {
  const many = await database.client();
  const { queue, queueId, partition } = await newLane(many, 3);
  await configure(many, queue, {
    ...RETENTION,
    completed_retention_seconds: 30,
    max_wait_time_seconds: 3000,
  });
  await many.query(
    `insert into queen.partitions (queue_id, name, next_offset, last_at)
     select $1, 'p' || n, 3, now() - n * interval '1 second' from generate_series(1, 5000) as n`,
    [queueId],
  );
  await many.query(
    `insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
     select p.id, 0, 3, p.last_at, s.keys, s.ends, s.body
       from queen.partitions p, queen.segments s where p.queue_id = $1 and p.id <> $2 and s.partition_id = $2`,
    [queueId, partition],
  );
  await many.query("analyze");
  await many.query("begin");
  const done: Row = {};
  for (const name of ["eviction", "retention", "leases", "partitions"])
    Object.assign(done, await sweepAll(many, name, { batch: 500, keepSeconds: 10 }));
  assert.ok(done.evictedMessages > 5000 && done.retentionMessages > 10_000, JSON.stringify(done));
  for (const table of ["segments", "partition_consumers", "dead_letters"]) {
    assert.equal(await sequentialScans(many, table), 0, table);
  }
  await many.query("rollback");
  await many.query("delete from queen.queues where id = $1", [queueId]);
});

interface Reader {
  readonly id: number;
  /** What it has finished. */
  readonly done: Set<string>;
}

test("whatever happens, completed retention removes only what every group has finished", async () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant("push" as const), count: fc.integer({ min: 1, max: 7 }) }),
    fc.record({ kind: fc.constant("age" as const), seconds: fc.integer({ min: 1, max: 90 }) }),
    fc.record({
      kind: fc.constant("consume" as const),
      reader: fc.nat({ max: 2 }),
      count: fc.integer({ min: 1, max: 9 }),
      skip: fc.nat({ max: 2 }),
    }),
    fc.record({ kind: fc.constant("seek" as const), reader: fc.nat({ max: 2 }) }),
    fc.record({ kind: fc.constant("join" as const) }),
    fc.record({ kind: fc.constant("sweep" as const), batch: fc.integer({ min: 1, max: 4 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
      const lane = await newLane(client);
      await configure(client, lane.queue, COMPLETED);
      const readers: Reader[] = [{ id: lane.group, done: new Set() }];
      let pushed = 0;
      for (const each of operations) {
        const reader = readers["reader" in each ? each.reader % readers.length : 0]!;
        if (each.kind === "push") {
          await push(client, lane.partition, numbered(each.count, pushed));
          pushed += each.count;
        } else if (each.kind === "age") await age(client, lane.partition, each.seconds);
        else if (each.kind === "join" && readers.length < 3) {
          const id = await openGroup(client, lane.queue, `reader-${readers.length}`);
          // What went before it came is not its to read.
          const left = new Set(await storedIds(client, lane.partition));
          readers.push({ id, done: new Set(ids(0, pushed).filter((one) => !left.has(one))) });
        } else if (each.kind === "seek") {
          await openCursor(client, lane.partition, reader.id);
          await client.query(
            `select * from queen.seek($1, (select name from queen.consumer_groups where id = $2), null,
                                      now() - interval '45 seconds')`,
            [lane.queue, reader.id],
          );
          const { committed } = await readCursor(client, { partition: lane.partition, group: reader.id });
          reader.done.clear();
          for (const one of ids(0, committed)) reader.done.add(one);
        } else if (each.kind === "consume") {
          await openCursor(client, lane.partition, reader.id);
          const token = newToken();
          const cursor = { partition: lane.partition, group: reader.id };
          const { rows } = await client.query(
            `select from_offset as "from", to_offset as "to", status
               from queen.take(array[0], array[$1::int4], array[$2::int8], array[$3::int4], array[$4::int8],
                               array[60], array[false], array[0], array[0], array[0], array[3],
                               array[0::int8], array[9999::int8])`,
            [each.count, lane.partition, reader.id, token],
          );
          const [taken] = rows;
          if (taken.status !== 0) continue;
          const from = Math.min(taken.from + each.skip, taken.to);
          await settleLease(client, cursor, token, { done: `{[${from},${taken.to})}`, release: true });
          for (const one of ids(from, taken.to)) reader.done.add(one);
        } else if (each.kind === "sweep") {
          await sweepAll(client, "retention", { batch: each.batch });
          const left = new Set(await storedIds(client, lane.partition));
          for (const { id, done } of readers) {
            const missing = ids(0, pushed).filter((one) => !left.has(one) && !done.has(one));
            assert.deepEqual(missing, [], `group ${id} still needed what was removed`);
          }
        }
      }
      await client.query("delete from queen.queues where id = $1", [lane.queueId]);
    }),
    { numRuns: 40 },
  );
});
