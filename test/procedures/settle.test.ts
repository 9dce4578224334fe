/** settle and settle_lease (P4, P5, P8): tokens fence, acks finish exactly what they name, failures count. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  expire,
  newLane,
  newToken,
  openCursor,
  openGroup,
  readCursor,
  readEverything,
  SETTLE,
  settle,
  settleLease,
  TAKE,
  type TestLane,
  take,
  takeOne,
  trim,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

async function leasedLane(messages: number, budget = 100): Promise<TestLane & { token: number }> {
  const lane = { ...(await newLane(client, messages)), token: newToken() };
  await takeOne(client, { ...lane, budget });
  return lane;
}

const short = (row: Row): unknown[] => [row.status, row.committed, row.released];

const letters = (partition: number): Promise<Row[]> =>
  database.query(
    `select message_offset, transaction_id, convert_from(fragment, 'UTF8') as fragment, error_message,
            retry_count, history from queen.dead_letters where partition_id = $1 order by message_offset`,
    [partition],
  );

test("finishing everything leased releases the lane, also if less was leased than asked for", async () => {
  const lane = await leasedLane(3, 100);
  const [row] = await settle(client, [{ ...lane, from: 0, to: 3 }]);
  assert.deepEqual(short(row!), [SETTLE.done, 3, true]);
  assert.deepEqual(await readCursor(client, lane), {
    committed: 3,
    acked: null,
    token: null,
    until: null,
    failures: null,
  });
});

test("acks out of order finish only what they name", async () => {
  const lane = await leasedLane(6);
  const [fifth] = await settle(client, [{ ...lane, from: 5, to: 6 }]);
  assert.deepEqual(short(fifth!), [SETTLE.done, 0, false], "acking message 5 does not finish 0 to 4");
  await settle(client, [{ ...lane, from: 1, to: 2, more: "{[3,4)}" }]);
  assert.equal((await readCursor(client, lane)).acked, "{[1,2),[3,4),[5,6)}");
  const [first] = await settle(client, [{ ...lane, from: 0, to: 1 }]);
  assert.deepEqual(short(first!), [SETTLE.done, 2, false]);
  const [rest] = await settle(client, [{ ...lane, from: 2, to: 3, more: "{[4,5)}" }]);
  assert.deepEqual(short(rest!), [SETTLE.done, 6, true]);
  assert.equal((await readCursor(client, lane)).acked, null);
});

test("the cursor never goes back", async () => {
  const lane = await leasedLane(6);
  await settle(client, [{ ...lane, from: 0, to: 4 }]);
  const [row] = await settle(client, [{ ...lane, from: 1, to: 2 }]);
  assert.deepEqual(short(row!), [SETTLE.done, 4, false]);
});

test("an ack repeated after its lease ended is done, and changes nothing", async () => {
  const lane = await leasedLane(4);
  await settle(client, [{ ...lane, from: 0, to: 4 }]);
  const before = await readEverything(client);
  const [row] = await settle(client, [{ ...lane, from: 0, to: 4 }]);
  assert.deepEqual(short(row!), [SETTLE.done, 4, false]);
  assert.deepEqual(short(await settleLease(client, lane, lane.token, { done: "{[1,3)}" })), [
    SETTLE.done,
    4,
    false,
  ]);
  assert.deepEqual(await readEverything(client), before);
});

test("a token that was replaced or ended changes nothing", async () => {
  const lane = await leasedLane(4);
  await expire(client, lane);
  const holder = newToken();
  await takeOne(client, { ...lane, token: holder });
  const before = await readEverything(client);
  const [acked, released] = await settle(client, [{ ...lane, from: 0, to: 4 }]).then(async ([row]) => [
    row!,
    (await settle(client, [{ ...lane, release: true }]))[0]!,
  ]);
  assert.equal(acked!.status, SETTLE.stale);
  assert.equal(released!.status, SETTLE.stale, "a stale release does not end the holder's lease");
  for (const ends of [{ done: "{[0,4)}" }, { failed: [0] }, { dead: [0] }, { release: true }]) {
    const row = await settleLease(client, lane, lane.token, ends);
    assert.deepEqual(short(row), [SETTLE.stale, 0, false]);
  }
  assert.deepEqual(await readEverything(client), before);

  await settle(client, [{ ...lane, token: holder, release: true }]);
  const [ended] = await settle(client, [{ ...lane, token: holder, from: 0, to: 1 }]);
  assert.equal(ended!.status, SETTLE.stale);
  assert.equal((await settleLease(client, lane, holder, { dead: [0] })).status, SETTLE.stale);
  assert.equal((await readCursor(client, lane)).committed, 0);
});

test("a token replaced by a transaction that is still open: busy, and stale once it commits", async () => {
  const lane = await leasedLane(4);
  await expire(client, lane);
  await other.query("begin");
  const holder = newToken();
  await takeOne(other, { ...lane, token: holder });
  assert.equal((await settle(client, [{ ...lane, from: 0, to: 4 }]))[0]!.status, SETTLE.busy);
  assert.equal((await settleLease(client, lane, lane.token, { failed: [0] })).status, SETTLE.busy);
  await other.query("commit");
  assert.equal((await settle(client, [{ ...lane, from: 0, to: 4 }]))[0]!.status, SETTLE.stale);
  assert.equal((await settleLease(client, lane, lane.token, { failed: [0] })).status, SETTLE.stale);
  assert.equal((await readCursor(client, lane)).token, holder);
});

test("acks that race with a take that replaces the token end the lease of nobody else", async () => {
  const racers = await Promise.all([database.client(), database.client()]);
  for (let round = 0; round < 50; round++) {
    const lane = await leasedLane(4);
    await expire(client, lane);
    const holder = newToken();
    const [[answer], [row]] = await Promise.all([
      take(racers[0]!, [{ ...lane, token: holder }]),
      settle(racers[1]!, [{ ...lane, from: 0, to: 4 }]),
    ]);
    const cursor = await readCursor(client, lane);
    if (answer!.status === TAKE.taken) {
      assert.notEqual(row!.status, SETTLE.done);
      assert.deepEqual([cursor.token, cursor.committed], [holder, 0]);
    } else if (row!.status === SETTLE.done) {
      assert.deepEqual([cursor.token, cursor.committed], [null, 4]);
    }
  }
});

test("a token that ran out but was not replaced is honoured", async () => {
  const lane = await leasedLane(4);
  await expire(client, lane);
  assert.deepEqual(short((await settle(client, [{ ...lane, from: 0, to: 2 }]))[0]!), [SETTLE.done, 2, false]);
  assert.deepEqual(short(await settleLease(client, lane, lane.token, { done: "{[2,4)}" })), [
    SETTLE.done,
    4,
    true,
  ]);
});

test("nothing beyond the lease can be finished", async () => {
  const lane = await leasedLane(6, 3);
  const before = await readEverything(client);
  assert.equal((await settle(client, [{ ...lane, from: 0, to: 5 }]))[0]!.status, SETTLE.stale);
  assert.equal(
    (await settle(client, [{ ...lane, from: 0, to: 1, more: "{[4,5)}" }]))[0]!.status,
    SETTLE.stale,
  );
  assert.equal((await settleLease(client, lane, lane.token, { done: "{[0,5)}" })).status, SETTLE.stale);
  assert.deepEqual(await readEverything(client), before);
});

test("a lane that does not exist is gone; one call answers each lease for itself", async () => {
  const [good, stale, held] = [await leasedLane(2), await leasedLane(2), await leasedLane(2)];
  await other.query("begin");
  await other.query("select 1 from queen.partition_consumers where partition_id = $1 for update", [
    held.partition,
  ]);
  const rows = await settle(client, [
    { ...held, from: 0, to: 2 },
    { ...good, from: 0, to: 2 },
    { ...stale, token: newToken(), from: 0, to: 2 },
    { partition: 999_999_999, group: 1, token: 1, from: 0, to: 1 },
  ]);
  await other.query("rollback");
  assert.deepEqual(
    rows.map((row) => [row.lease, row.status]),
    [
      [0, SETTLE.busy],
      [1, SETTLE.done],
      [2, SETTLE.stale],
      [3, SETTLE.gone],
    ],
  );
  const gone = { partition: 999_999_999, group: 1 };
  assert.equal((await settleLease(client, gone, 1, { done: "{[0,1)}" })).status, SETTLE.gone);
});

test("the same lease twice in one call loses no ack", async () => {
  const lane = await leasedLane(6);
  const rows = await settle(client, [
    { ...lane, from: 0, to: 3 },
    { ...lane, from: 3, to: 6 },
  ]);
  assert.deepEqual(
    rows.map((row) => row.status),
    [SETTLE.done, SETTLE.done],
  );
  const { committed, token } = await readCursor(client, lane);
  assert.deepEqual([committed, token], [6, null]);
});

test("of two acks of one lease that are not simple, in one call, none is lost", async () => {
  const lane = await leasedLane(6);
  const rows = await settle(client, [
    { ...lane, from: 1, to: 3 },
    { ...lane, from: 4, to: 6 },
  ]);
  const busy = rows.filter((row) => row.status === SETTLE.busy);
  assert.equal(busy.length, 1, "one of the two is to be tried again");
  await settle(client, [busy[0]!.lease === 0 ? { ...lane, from: 1, to: 3 } : { ...lane, from: 4, to: 6 }]);
  assert.deepEqual((await readCursor(client, lane)).acked, "{[1,3),[4,6)}");
  const [row] = await settle(client, [{ ...lane, from: 0, to: 1, more: "{[3,4)}" }]);
  assert.deepEqual(short(row!), [SETTLE.done, 6, true]);
});

test("a release gives the rest back at once and counts no attempt", async () => {
  const lane = await leasedLane(4);
  const [row] = await settle(client, [{ ...lane, from: 1, to: 2, release: true }]);
  assert.deepEqual(short(row!), [SETTLE.done, 0, true]);
  assert.equal((await readCursor(client, lane)).failures, null);
  const token = newToken();
  assert.deepEqual((await takeOne(client, { ...lane, token })).delivered, ["m0", "m2", "m3"]);
  assert.deepEqual(short(await settleLease(client, lane, token, { release: true })), [SETTLE.done, 0, true]);
  assert.equal((await readCursor(client, lane)).failures, null);
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m0", "m2", "m3"]);
});

test("a failure ends the lease; the unfinished rest comes again in order", async () => {
  const lane = await leasedLane(5);
  const row = await settleLease(client, lane, lane.token, { done: "{[0,1),[3,4)}", failed: [1] });
  assert.deepEqual(short(row), [SETTLE.done, 1, true]);
  assert.deepEqual(row.buried, []);
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m1", "m2", "m4"]);
});

test("a failing message is retried retryLimit times, then buried with payload and history", async () => {
  const lane = await newLane(client, 3);
  for (let attempt = 1; attempt <= 3; attempt++) {
    const token = newToken();
    assert.deepEqual((await takeOne(client, { ...lane, retryLimit: 2 })).delivered[0], "m0");
    await client.query("update queen.partition_consumers set lease_token = $2 where partition_id = $1", [
      lane.partition,
      token,
    ]);
    const row = await settleLease(client, lane, token, {
      failed: [0],
      errors: [`reason ${attempt}`],
      retryLimit: 2,
    });
    assert.deepEqual(row.buried, attempt === 3 ? [0] : []);
    assert.equal(row.released, attempt < 3, "what is buried does not end the lease on the rest");
  }
  const [letter] = await letters(lane.partition);
  assert.equal(letter!.transaction_id, "m0");
  assert.match(letter!.fragment, /"data":\{"n":0\}$/);
  assert.equal(letter!.error_message, "reason 3");
  assert.equal(letter!.retry_count, 2);
  assert.deepEqual(
    letter!.history.map((entry: Row) => entry.error),
    ["reason 1", "reason 2", "reason 3"],
  );
  const { committed, failures } = await readCursor(client, lane);
  assert.deepEqual([committed, failures], [1, null]);
});

test("the last chance of a message that failed is alone", async () => {
  const lane = await newLane(client, 3);
  for (let attempt = 0; attempt < 2; attempt++) {
    const token = newToken();
    await takeOne(client, { ...lane, token, retryLimit: 1 });
    await expire(client, lane);
  }
  const answer = await takeOne(client, { ...lane, retryLimit: 1 });
  assert.deepEqual(answer.delivered, ["m0"]);
});

test("a message may be buried at once", async () => {
  const lane = await leasedLane(3);
  const row = await settleLease(client, lane, lane.token, { dead: [1], errors: ["not for us"] });
  assert.deepEqual([...short(row), row.buried], [SETTLE.done, 0, false, [1]]);
  const [letter] = await letters(lane.partition);
  assert.deepEqual(
    [letter!.transaction_id, letter!.error_message, letter!.retry_count],
    ["m1", "not for us", 0],
  );
  assert.equal((await readCursor(client, lane)).acked, "{[1,2)}");
  assert.deepEqual(short(await settleLease(client, lane, lane.token, { done: "{[0,1),[2,3)}" })), [
    SETTLE.done,
    3,
    true,
  ]);
});

test("with unlimited retries a message is never buried for failing", async () => {
  const lane = await newLane(client, 1);
  for (let attempt = 1; attempt <= 15; attempt++) {
    const token = newToken();
    await takeOne(client, { ...lane, token, retryLimit: -1 });
    const row = await settleLease(client, lane, token, { failed: [0], retryLimit: -1 });
    assert.deepEqual(row.buried, []);
  }
  const { failures } = await readCursor(client, lane);
  assert.deepEqual([failures["0"].n, failures["0"].history.length], [15, 10]);
});

test("one call may finish, fail and bury messages of one lease", async () => {
  const lane = await leasedLane(8);
  const row = await settleLease(client, lane, lane.token, {
    done: "{[0,2),[5,6)}",
    failed: [2, 6],
    dead: [3],
    errors: ["e2", "e6", "e3"],
    retryDelayMs: 0,
  });
  assert.deepEqual([...short(row), row.buried], [SETTLE.done, 2, true, [3]]);
  const { acked, failures } = await readCursor(client, lane);
  assert.equal(acked, "{[3,4),[5,6)}");
  assert.deepEqual(Object.keys(failures).sort(), ["2", "6"]);
  assert.equal((await letters(lane.partition))[0]!.error_message, "e3");
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m2", "m4", "m6", "m7"]);
});

test("a failure of what is finished, or was never leased, counts nothing", async () => {
  const lane = await leasedLane(6, 4);
  await settle(client, [{ ...lane, from: 0, to: 2 }]);
  const row = await settleLease(client, lane, lane.token, {
    done: "{[3,4)}",
    failed: [1, 3, 5],
    dead: [0, 5],
  });
  assert.deepEqual([...short(row), row.buried], [SETTLE.done, 2, false, []]);
  assert.equal((await readCursor(client, lane)).failures, null);
  assert.deepEqual(await letters(lane.partition), []);
});

test("failures are forgotten when their message is finished, by whichever way", async () => {
  const lane = await leasedLane(4);
  await settleLease(client, lane, lane.token, { failed: [0, 2] });
  let token = newToken();
  await takeOne(client, { ...lane, token });
  await settle(client, [{ ...lane, token, from: 0, to: 2 }]);
  assert.deepEqual(Object.keys((await readCursor(client, lane)).failures), ["2"]);
  await settleLease(client, lane, token, { failed: [3] });
  token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { done: "{[2,4)}" });
  assert.equal((await readCursor(client, lane)).failures, null);
});

test("groups fail and bury for themselves", async () => {
  const lane = await leasedLane(2);
  const audit = { ...lane, group: await openGroup(client, lane.queue, "audit"), token: newToken() };
  await openCursor(client, audit.partition, audit.group);
  await takeOne(client, audit);
  await settleLease(client, lane, lane.token, { dead: [0] });
  await settleLease(client, audit, audit.token, { dead: [0] });
  assert.equal((await letters(lane.partition)).length, 2);
  assert.equal((await readCursor(client, audit)).acked, null);
  assert.equal((await readCursor(client, audit)).committed, 1);
});

test("a dead letter keeps its payload when the log is trimmed", async () => {
  const lane = await leasedLane(3);
  await settleLease(client, lane, lane.token, { dead: [0] });
  await trim(client, lane.partition, 3);
  assert.match((await letters(lane.partition))[0]!.fragment, /"data":\{"n":0\}$/);
});

test("burying a message that is gone from the log finishes it", async () => {
  const lane = await leasedLane(6, 3);
  await trim(client, lane.partition, 3);
  const row = await settleLease(client, lane, lane.token, { dead: [0], done: "{[1,3)}" });
  assert.deepEqual(short(row), [SETTLE.done, 3, true]);
  assert.deepEqual(await letters(lane.partition), []);
});
