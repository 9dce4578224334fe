/** transact (P6): pushes and acks happen together or not at all, and no two of them wait in a circle. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  APPEND,
  expire,
  newLane,
  newToken,
  nextOffset,
  numbered,
  processId,
  push,
  readCursor,
  readEverything,
  settle,
  TAKE,
  type TestLane,
  take,
  takeOne,
  transact,
  waitsForLock,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

async function leasedLane(messages: number): Promise<TestLane & { token: number }> {
  const lane = { ...(await newLane(client, messages)), token: newToken() };
  await takeOne(client, lane);
  return lane;
}

const one = (transactionId: string) => [{ transactionId }];

/** Expects the call to be refused with this SQLSTATE and to leave everything as it was. */
async function refused(call: Promise<unknown>, sqlstate: string): Promise<pg.DatabaseError> {
  let reason: pg.DatabaseError | undefined;
  await assert.rejects(call, (error: pg.DatabaseError) => {
    reason = error;
    assert.equal(error.code, sqlstate, error.message);
    return true;
  });
  return reason!;
}

test("acks and pushes are done in one transaction", async () => {
  const [from, to] = [await leasedLane(3), await newLane(client, 1)];
  const result = await transact(client, {
    pushes: [{ partition: to.partition, known: 1, messages: [...one("a"), ...one("b")] }],
    acks: [{ ...from, done: "{[0,3)}" }],
    required: [from],
  });
  assert.deepEqual(
    result.appended.map((row: { lane: number; status: number; at: number }) => [
      row.lane,
      row.status,
      row.at,
    ]),
    [[0, APPEND.appended, 1]],
  );
  assert.deepEqual(result.settled, [{ status: 0, committed: 3, released: true, buried: [] }]);
  assert.deepEqual((await takeOne(client, to)).delivered, ["m0", "a", "b"]);
});

test("what fails at the end keeps nothing of what came before", async () => {
  const [good, bad, to] = [await leasedLane(3), await leasedLane(3), await newLane(client, 1)];
  const before = await readEverything(client);
  const call = transact(client, {
    pushes: [{ partition: to.partition, known: 1, messages: one("a") }],
    acks: [
      { ...good, done: "{[0,3)}", dead: [] },
      { ...bad, token: newToken(), done: "{[0,3)}" },
    ],
  });
  await refused(call, "QN409");
  assert.deepEqual(await readEverything(client), before);
});

test("failed and dead messages of a transaction are counted and buried like acks", async () => {
  const [from, to] = [await leasedLane(3), await newLane(client)];
  const result = await transact(client, {
    pushes: [{ partition: to.partition, known: 0, messages: one("a") }],
    acks: [{ ...from, done: "{[0,1)}", failed: [1], dead: [2] }],
  });
  assert.deepEqual(result.settled, [{ status: 0, committed: 1, released: true, buried: [2] }]);
  const { acked, failures } = await readCursor(client, from);
  assert.deepEqual([acked, failures["1"].n], ["{[2,3)}", 1]);
});

test("a required lease must be held, whether or not it is acked in the transaction", async () => {
  const [held, lost, to] = [await leasedLane(2), await leasedLane(2), await newLane(client)];
  await settle(client, [{ ...lost, release: true }]);
  const before = await readEverything(client);
  const pushes = [{ partition: to.partition, known: 0, messages: one("a") }];
  await refused(transact(client, { pushes, required: [held, lost] }), "QN409");
  await refused(transact(client, { acks: [{ ...held, done: "{[0,1)}" }], required: [lost] }), "QN409");
  assert.deepEqual(await readEverything(client), before);
  await transact(client, { pushes, required: [held] });
});

test("a replaced lease refuses the acks, with and without being required", async () => {
  const [from, to] = [await leasedLane(2), await newLane(client)];
  await expire(client, from);
  await takeOne(client, { ...from, token: newToken() });
  const before = await readEverything(client);
  const pushes = [{ partition: to.partition, known: 0, messages: one("a") }];
  const acks = [{ ...from, done: "{[0,2)}" }];
  await refused(transact(client, { pushes, acks }), "QN409");
  await refused(transact(client, { pushes, acks, required: [from] }), "QN409");
  await refused(transact(client, { acks }), "QN409");
  assert.deepEqual(await readEverything(client), before);
});

test("a message that was finished before refuses the transaction", async () => {
  const [from, to] = [await leasedLane(3), await newLane(client)];
  await settle(client, [{ ...from, from: 1, to: 2 }]);
  const pushes = [{ partition: to.partition, known: 0, messages: one("a") }];
  const reason = await refused(transact(client, { pushes, acks: [{ ...from, done: "{[0,2)}" }] }), "QN409");
  assert.match(reason.message, /already acknowledged/);
  assert.equal(await nextOffset(client, to.partition), 0);
});

test("the replay of a committed transaction succeeds and changes nothing", async () => {
  const [from, to] = [await leasedLane(3), await newLane(client)];
  const acks = [{ ...from, done: "{[0,2)}", dead: [2] }];
  const pushes = [{ partition: to.partition, known: 0, messages: one("a") }];
  await transact(client, { pushes, acks, required: [from] });
  const before = await readEverything(client);
  // All its pushes were found to be duplicates, so that none is left to send.
  const result = await transact(client, { acks, required: [from] });
  assert.deepEqual(result.appended, []);
  assert.deepEqual(result.settled, [{ status: 0, committed: null, released: false, buried: [2] }]);
  assert.deepEqual(await readEverything(client), before);
});

test("giving a lease back is done in a transaction too, and needs the lease", async () => {
  const from = await leasedLane(2);
  const result = await transact(client, { acks: [{ ...from, release: true }] });
  assert.deepEqual(result.settled, [{ status: 0, committed: 0, released: true, buried: [] }]);
  assert.equal((await readCursor(client, from)).token, null);
  await refused(transact(client, { acks: [{ ...from, release: true }] }), "QN409");
});

test("half a replay is none: if an ack is not finished, its lease must be held", async () => {
  const [first, second] = [await leasedLane(2), await leasedLane(2)];
  await settle(client, [{ ...first, from: 0, to: 2 }]);
  await settle(client, [{ ...second, release: true }]);
  const before = await readEverything(client);
  const acks = [first, second].map((lane) => ({ ...lane, done: "{[0,2)}" }));
  await refused(transact(client, { acks }), "QN409");
  assert.deepEqual(await readEverything(client), before);
});

test("keys that were added meanwhile raise QN001 with append's rows, and nothing is kept", async () => {
  const [from, to, bystander] = [await leasedLane(2), await newLane(client, 1), await newLane(client, 1)];
  await push(other, to.partition, one("same"));
  const before = await readEverything(client);
  const pushes = [
    { partition: bystander.partition, known: 1, messages: one("x") },
    { partition: to.partition, known: 1, messages: one("same") },
  ];
  const reason = await refused(transact(client, { pushes, acks: [{ ...from, done: "{[0,2)}" }] }), "QN001");
  const rows = JSON.parse(reason.detail!) as { lane: number; status: number }[];
  assert.deepEqual(
    rows.map((row) => [row.lane, row.status]),
    [
      [0, APPEND.appended],
      [1, APPEND.conflict],
    ],
  );
  assert.deepEqual(await readEverything(client), before);
});

test("other keys that were added meanwhile do no harm", async () => {
  const to = await newLane(client, 1);
  await push(other, to.partition, one("theirs"));
  const pushes = [{ partition: to.partition, known: 1, messages: one("ours") }];
  const result = await transact(client, { pushes });
  assert.deepEqual([result.appended.length, result.appended[0].at], [1, 2]);
});

test("a transaction waits for a lane and then sees what was committed", async () => {
  const [from, to] = [await leasedLane(2), await newLane(client, 1)];
  await other.query("begin");
  await push(other, to.partition, one("same"));
  const pid = await processId(client);
  const pushes = [{ partition: to.partition, known: 1, messages: one("same") }];
  const call = transact(client, { pushes, acks: [{ ...from, done: "{[0,2)}" }] });
  const expected = refused(call, "QN001");
  await waitsForLock(database, pid);
  await other.query("commit");
  await expected;
});

test("a token replaced while the transaction waited for the cursor refuses it", async () => {
  const [from, to] = [await leasedLane(2), await newLane(client)];
  await expire(client, from);
  await other.query("begin");
  const holder = newToken();
  await takeOne(other, { ...from, token: holder });
  const pid = await processId(client);
  const pushes = [{ partition: to.partition, known: 0, messages: one("a") }];
  const expected = refused(transact(client, { pushes, acks: [{ ...from, done: "{[0,2)}" }] }), "QN409");
  await waitsForLock(database, pid);
  await other.query("commit");
  await expected;
  assert.equal((await readCursor(client, from)).token, holder);
  assert.equal(await nextOffset(client, to.partition), 0);
});

test("transactions with the same lanes in opposite order do not deadlock", async () => {
  const deadlocks = async (): Promise<number> => {
    const [row] = await database.query(
      "select deadlocks from pg_stat_database where datname = current_database()",
    );
    return row!.deadlocks;
  };
  const before = await deadlocks();
  const lanes = [await newLane(client, 40), await newLane(client, 40), await newLane(client, 40)];
  const tokens = lanes.map(() => newToken());
  for (const [index, lane] of lanes.entries()) await takeOne(client, { ...lane, token: tokens[index]! });
  const sessions = await Promise.all([
    database.client(),
    database.client(),
    database.client(),
    database.client(),
  ]);
  await Promise.all(
    sessions.map(async (session, worker) => {
      for (let round = 0; round < 10; round++) {
        const order = worker % 2 === 0 ? [0, 1, 2] : [2, 1, 0];
        const offset = worker * 10 + round;
        const pushes = [];
        for (const index of order) {
          const { partition } = lanes[index]!;
          const known = await nextOffset(session, partition);
          pushes.push({ partition, known, messages: one(`${worker}-${round}`) });
        }
        const acks = order.map((index) => ({
          ...lanes[index]!,
          token: tokens[index]!,
          done: `{[${offset},${offset + 1})}`,
        }));
        await transact(session, { pushes, acks });
      }
    }),
  );
  for (const lane of lanes) {
    assert.equal(await nextOffset(client, lane.partition), 80);
    const { committed, token } = await readCursor(client, lane);
    assert.deepEqual([committed, token], [40, null]);
  }
  await sleep(1_100); // statistics of a session are written at most once a second
  assert.equal(await deadlocks(), before);
});

test("locks are taken in one order: partitions by id, then cursors, whatever order is asked for", async () => {
  const lanes = [await leasedLane(2), await leasedLane(2)];
  const [low, high] = [lanes[0]!, lanes[1]!];
  assert.ok(low.partition < high.partition);
  const pid = await processId(client);
  const partition = "select 1 from queen.partitions where id = $1 for update";
  const cursor = "select 1 from queen.partition_consumers where partition_id = $1 for update";
  const isFree = async (row: string, lane: TestLane): Promise<boolean> =>
    (await database.query(`${row} skip locked`, [lane.partition])).length === 1;
  /** Starts the transaction while another one holds a row, and looks which other rows it holds while it waits. */
  const heldWhileWaitingFor = async (row: string, lane: TestLane): Promise<boolean[]> => {
    await other.query("begin");
    await other.query(row, [lane.partition]);
    const reversed = [high, low];
    const pushes = [];
    for (const each of reversed) {
      const known = await nextOffset(client, each.partition);
      pushes.push({ partition: each.partition, known, messages: one(`to ${known}`) });
    }
    await client.query("begin");
    const call = transact(client, { pushes, acks: reversed.map((each) => ({ ...each, done: "{[0,1)}" })) });
    await waitsForLock(database, pid);
    const held = [];
    for (const [kind, each] of [
      [partition, low],
      [partition, high],
      [cursor, low],
      [cursor, high],
    ] as const) {
      held.push(!(await isFree(kind, each)));
    }
    await other.query("commit");
    await call;
    await client.query("rollback");
    return held;
  };
  assert.deepEqual(await heldWhileWaitingFor(partition, low), [true, false, false, false]);
  assert.deepEqual(await heldWhileWaitingFor(partition, high), [true, true, false, false]);
  assert.deepEqual(await heldWhileWaitingFor(cursor, low), [true, true, true, false]);
  assert.deepEqual(await heldWhileWaitingFor(cursor, high), [true, true, true, true]);
});

test("a transaction does not deadlock with merged calls on the same lanes", async () => {
  const lanes = [await newLane(client, 4), await newLane(client, 4)];
  const sessions = await Promise.all([database.client(), database.client()]);
  await Promise.all([
    (async () => {
      for (let round = 0; round < 20; round++) {
        const pushes = [];
        for (const { partition } of [...lanes].reverse()) {
          const known = await nextOffset(sessions[0]!, partition);
          pushes.push({ partition, known, messages: numbered(1, 100 + round) });
        }
        await transact(sessions[0]!, { pushes });
      }
    })(),
    (async () => {
      for (let round = 0; round < 40; round++) {
        const tokens = lanes.map(() => newToken());
        const answers = await take(
          sessions[1]!,
          lanes.map((lane, index) => ({ ...lane, token: tokens[index]!, budget: 1 })),
        );
        await settle(
          sessions[1]!,
          lanes.flatMap((lane, index) => {
            const { status, from, to } = answers[index]!;
            return status === TAKE.taken ? [{ ...lane, token: tokens[index]!, from, to }] : [];
          }),
        );
      }
    })(),
  ]);
});
