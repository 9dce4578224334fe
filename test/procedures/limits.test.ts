/** ttl: what expired is not delivered. maxSize: a queue that is full takes no more through SQL either. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import {
  age,
  expire,
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  push,
  readCursor,
  settle,
  settleLease,
  TAKE,
  type TestLane,
  take,
  takeOne,
} from "../support/procedures.ts";
import { call, idsOf, items, pop, type SqlSystem, startSqlSystem } from "../support/sql-api.ts";
import { configure, deadLetters } from "../support/sweeps.ts";

let system: SqlSystem;
let client: pg.Client;
let application: pg.Client;
before(async () => {
  system = await startSqlSystem();
  client = system.owner;
  application = await system.application.connect();
});
after(() => system.stop());

const ids = (from: number, to: number): string[] =>
  numbered(to - from, from).map((each) => each.transactionId);

/** A lane with `old` messages a hundred seconds old, then `young` ones. */
async function agedLane(old: number, young: number): Promise<TestLane> {
  const lane = await newLane(client, old);
  await age(client, lane.partition, 100);
  if (young > 0) await push(client, lane.partition, numbered(young, old));
  return lane;
}

test("a message older than ttl is passed and is no dead letter; another group is not concerned", async () => {
  const lane = await agedLane(5, 2);
  assert.deepEqual((await takeOne(client, { ...lane, ttlSeconds: 60 })).delivered, ids(5, 7));
  assert.equal((await readCursor(client, lane)).committed, 5);
  assert.deepEqual(await deadLetters(client, lane.partition), []);
  const group = await openGroup(client, lane.queue, "patient");
  await openCursor(client, lane.partition, group);
  assert.deepEqual((await takeOne(client, { partition: lane.partition, group })).delivered, ids(0, 7));
});

test("where everything expired the lane is empty, and its place is at the end", async () => {
  const lane = await agedLane(3, 0);
  const [empty] = await take(client, [{ ...lane, ttlSeconds: 60 }]);
  assert.equal(empty!.status, TAKE.empty);
  assert.equal((await readCursor(client, lane)).committed, 3);
});

test("a message just below its ttl is delivered", async () => {
  const lane = await agedLane(3, 0);
  assert.deepEqual((await takeOne(client, { ...lane, ttlSeconds: 110 })).delivered, ids(0, 3));
});

test("marks and failures of what expired go with it, others stay", async () => {
  const lane = await agedLane(4, 4);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { done: "{[2,3),[4,5),[6,7)}", failed: [1, 5] });
  const taken = await takeOne(client, { ...lane, ttlSeconds: 60 });
  assert.deepEqual(taken.delivered, ["m5", "m7"]);
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.committed, cursor.acked, Object.keys(cursor.failures)], [5, "{[6,7)}", ["5"]]);
});

test("a lease that ran out on what expired meanwhile is no attempt of what comes next", async () => {
  const lane = await newLane(client, 2);
  await takeOne(client, lane);
  await expire(client, lane);
  await age(client, lane.partition, 100);
  await push(client, lane.partition, numbered(1, 2));
  assert.deepEqual((await takeOne(client, { ...lane, ttlSeconds: 60 })).delivered, ["m2"]);
  assert.equal((await readCursor(client, lane)).failures, null);
});

test("what is leased when it expires can be acked; what is given back is not delivered again", async () => {
  const lane = await newLane(client, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await age(client, lane.partition, 100);
  const [settled] = await settle(client, [{ ...lane, token, from: 0, to: 1 }]);
  assert.equal(settled!.status, 0);
  await settle(client, [{ ...lane, token, release: true }]);
  assert.equal((await take(client, [{ ...lane, ttlSeconds: 60 }]))[0]!.status, TAKE.empty);
});

test("pops by SQL pass what expired, of any partition and of one", async () => {
  await call(application, "push_messages_v2", items("fading", 0, 3, "a"));
  await configure(client, "fading", { ttl: 60 });
  const [lane] = await system.database.query("select id from queen.partitions where name = 'a'");
  await age(client, lane!.id, 100);
  assert.equal((await pop(application, "fading")).error, "no_available_partition");
  assert.equal((await pop(application, "fading", { partition_name: "a" })).error, "no_available_partition");
  assert.equal((await client.query("select queen.has_pending_messages('fading') as any")).rows[0].any, false);
  await call(application, "push_messages_v2", items("fading", 3, 5, "a"));
  assert.deepEqual(idsOf(await pop(application, "fading")), ["t3", "t4"]);
});

test("a ttl that nobody said lets nothing expire", async () => {
  await call(application, "push_messages_v2", items("lasting", 0, 1));
  const [lane] = await system.database.query(
    "select p.id, q.ttl from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = 'lasting'",
  );
  assert.equal(lane!.ttl, null);
  await age(client, lane!.id, 100_000);
  assert.deepEqual(idsOf(await pop(application, "lasting")), ["t0"]);
});

// ------------------------------------------------------------------------------------------------ maxSize

const depth = async (queue: string): Promise<number> =>
  (await client.query("select queen.queue_depth(id) as depth from queen.queues where name = $1", [queue]))
    .rows[0].depth;

test("the depth is what the slowest group has not finished; without groups, what is stored", async () => {
  const lane = await newLane(client, 6);
  assert.equal(await depth(lane.queue), 6);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { done: "{[0,2),[3,5)}", release: true });
  assert.equal(await depth(lane.queue), 2);
  await openGroup(client, lane.queue, "slow");
  assert.equal(await depth(lane.queue), 6);
  await client.query("select * from queen.delete_group('slow', null, true)");
  await client.query("select * from queen.delete_group('workers', $1, true)", [lane.queue]);
  assert.equal(await depth(lane.queue), 6);
});

test("a push by SQL to a full queue raises QN429 and keeps nothing, of other queues neither", async () => {
  await call(application, "push_messages_v2", items("full", 0, 3));
  await configure(client, "full", { max_queue_size: 3 });
  const full = { code: "QN429", message: /queue full has maxSize \(3\) unfinished messages or more/ };
  await assert.rejects(call(application, "push_messages_v2", items("full", 3, 4)), full);
  await assert.rejects(
    call(application, "push_messages_v2", [...items("beside", 0, 1), ...items("full", 3, 4)]),
    full,
  );
  await assert.rejects(
    call(application, "execute_transaction_v2", {
      operations: [{ type: "push", items: items("full", 3, 4) }],
    }),
    full,
  );
  const beside = await client.query("select 1 from queen.queues where name = 'beside'");
  assert.equal(beside.rows.length, 0);

  await pop(application, "full", { batch_size: 1, auto_ack: true });
  await call(application, "push_messages_v2", items("full", 3, 6));
  assert.equal(await depth("full"), 5, "what is pushed at once may go beyond");
  await assert.rejects(call(application, "push_messages_v2", items("full", 6, 7)), full);
});
