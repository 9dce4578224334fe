/** The sweep of maxWaitTimeSeconds: what a group has not finished in time is its dead letter, and only its. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
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
import { configure, deadLetters, history, storedIds, sweep, sweepAll } from "../support/sweeps.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
  other = await database.client();
});
after(() => database.drop());

const REASON = "waited longer than maxWaitTimeSeconds (60 s)";

async function lateLane(old: number, young = 0, options: object = {}): Promise<TestLane> {
  const lane = await newLane(client, old);
  await configure(client, lane.queue, { max_wait_time_seconds: 60, ...options });
  await age(client, lane.partition, 100);
  if (young > 0) await push(client, lane.partition, numbered(young, old));
  return lane;
}

const ids = (from: number, to: number): string[] =>
  numbered(to - from, from).map((each) => each.transactionId);
const lettersOf = async (lane: TestLane, group = "workers"): Promise<string[]> =>
  (await deadLetters(client, lane.partition)).filter((each) => each.group === group).map((each) => each.id);

test("what waited too long is the dead letter of the group that has not finished it, with the reason", async () => {
  const lane = await lateLane(5, 2);
  const fast = await openGroup(client, lane.queue, "fast");
  await openCursor(client, lane.partition, fast);
  const token = newToken();
  await takeOne(client, { partition: lane.partition, group: fast, token });
  await settle(client, [{ partition: lane.partition, group: fast, token, from: 0, to: 4 }]);
  await settle(client, [{ partition: lane.partition, group: fast, token, release: true }]);

  assert.deepEqual(await sweepAll(client, "eviction"), { evictedMessages: 6 });
  assert.deepEqual(await lettersOf(lane), ids(0, 5));
  assert.deepEqual(await lettersOf(lane, "fast"), ids(4, 5));
  assert.ok((await deadLetters(client, lane.partition)).every((letter) => letter.error === REASON));
  assert.deepEqual(await storedIds(client, lane.partition), ids(0, 7), "the log keeps everything");
  assert.deepEqual((await takeOne(client, lane)).delivered, ids(5, 7));
  assert.deepEqual(await history(client, lane.queueId), { max_wait_time_eviction: 6 });
  assert.deepEqual(await sweepAll(client, "eviction"), { evictedMessages: 0 }, "each message once");
});

test("what a consumer holds stays, and what waits behind it goes", async () => {
  const lane = await lateLane(5);
  const token = newToken();
  await takeOne(client, { ...lane, token, budget: 2 });
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane), ids(2, 5));
  const [settled] = await settle(client, [{ ...lane, token, from: 0, to: 2 }]);
  assert.deepEqual([settled!.status, settled!.committed, settled!.released], [0, 5, true]);
  assert.equal((await readCursor(client, lane)).acked, null);
});

test("a lease that ran out does not keep messages; it ends with the last of them", async () => {
  const lane = await lateLane(3);
  await takeOne(client, { ...lane, budget: 2 });
  await expire(client, lane);
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane), ids(0, 3));
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.committed, cursor.token], [3, null]);
});

test("messages finished out of order are not dead letters, and failures become their history", async () => {
  const lane = await lateLane(4, 1);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { done: "{[1,2)}", failed: [2], retryDelayMs: 3_600_000 });
  assert.equal((await take(client, [lane]))[0]!.status, TAKE.retryDelay);
  await sweepAll(client, "eviction");
  assert.deepEqual(
    (await deadLetters(client, lane.partition)).map(({ id, failures }) => [id, failures]),
    [
      ["m0", 0],
      ["m2", 1],
      ["m3", 0],
    ],
  );
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.committed, cursor.acked, cursor.failures], [4, null, null]);
  assert.deepEqual(
    (await takeOne(client, lane)).delivered,
    ids(4, 5),
    "nobody waits for a retry that is over",
  );
});

test("a group that has not met the lane gets its dead letters, one that starts later gets none", async () => {
  const lane = await lateLane(2);
  await openGroup(client, lane.queue, "all");
  await openGroup(client, lane.queue, "new", "new");
  await push(client, lane.partition, numbered(1, 2));
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane, "all"), ids(0, 2));
  assert.deepEqual(await lettersOf(lane, "new"), []);
});

test("what expired by ttl is no dead letter", async () => {
  const lane = await newLane(client, 3);
  await configure(client, lane.queue, { max_wait_time_seconds: 60, ttl: 90 });
  await age(client, lane.partition, 30);
  await push(client, lane.partition, numbered(3, 3));
  await age(client, lane.partition, 70);
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane), ids(3, 6), "100 s old: expired; 70 s old: too late");
  const [empty] = await take(client, [{ ...lane, ttlSeconds: 90 }]);
  assert.equal(empty!.status, TAKE.empty);
  const cursor = await readCursor(client, lane);
  assert.deepEqual([cursor.committed, cursor.acked], [6, null]);
});

test("a cursor below the start of the log is no obstacle", async () => {
  const lane = await lateLane(6);
  await configure(client, lane.queue, { retention_enabled: true, retention_seconds: 200 });
  await client.query(
    "update queen.segments set created_at = created_at - interval '200 seconds' where partition_id = $1 and first_offset = 0",
    [lane.partition],
  );
  await sweepAll(client, "retention");
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane), ids(3, 6));
  assert.equal((await readCursor(client, lane)).committed, 6);
});

test("a cursor that another transaction holds is neither waited for nor touched", async () => {
  const lane = await lateLane(3);
  const token = newToken();
  await other.query("begin");
  await takeOne(other, { ...lane, token });
  assert.deepEqual(await sweepAll(client, "eviction"), { evictedMessages: 0 });
  await settle(other, [{ ...lane, token, from: 0, to: 3 }]);
  await other.query("commit");
  await sweepAll(client, "eviction");
  assert.deepEqual(await lettersOf(lane), [], "it was finished");
});

test("an ack that comes while its message is being evicted changes nothing twice", async () => {
  const lane = await lateLane(2);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await expire(client, lane);
  await other.query("begin");
  await sweepAll(other, "eviction");
  const [busy] = await settle(client, [{ ...lane, token, from: 0, to: 2 }]);
  assert.equal(busy!.status, 1);
  await other.query("commit");
  const [late] = await settle(client, [{ ...lane, token, from: 0, to: 2 }]);
  assert.equal(late!.status, 0, "finished is finished");
  assert.deepEqual(await lettersOf(lane), ids(0, 2));
});

test("rounds are bounded by messages, and a lost round leaves nothing", async () => {
  const lane = await lateLane(5);
  const counts: number[] = [];
  for (;;) {
    await client.query("begin");
    await sweep(client, "eviction", { batch: 2 });
    await client.query("rollback");
    const { state } = await sweep(client, "eviction", { batch: 2 });
    counts.push((await lettersOf(lane)).length);
    if (state === "finished") break;
  }
  assert.deepEqual(counts, [2, 4, 5]);
});
