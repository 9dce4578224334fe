/** take and bury_expired (P4, P5): one lease per lane and group, delivered is leased, and no lane hangs. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  age,
  BURY,
  buryExpired,
  expire,
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  push,
  readCursor,
  SETTLE,
  settle,
  settleLease,
  TAKE,
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

const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `m${from + index}`);

test("a take leases what it delivers, in order", async () => {
  const lane = await newLane(client, 7);
  const token = newToken();
  const answer = await takeOne(client, { ...lane, token, budget: 5 });
  assert.deepEqual(answer.delivered, ids(0, 5));
  assert.deepEqual([answer.from, answer.to], [0, 5]);
  assert.deepEqual(await readCursor(client, lane), {
    committed: 0,
    acked: null,
    token,
    until: 5,
    failures: null,
  });
  const [row] = await database.query(
    "select lease_expires_at from queen.partition_consumers where partition_id = $1",
    [lane.partition],
  );
  assert.deepEqual(row!.lease_expires_at, answer.expiresAt);
  const secondsLeft = (answer.expiresAt.getTime() - Date.now()) / 1000;
  assert.ok(secondsLeft > 290 && secondsLeft < 310);
});

test("a lease is exclusive; it says when it ends, and frees the lane when it ran out", async () => {
  const lane = await newLane(client, 3);
  await takeOne(client, { ...lane, leaseSeconds: 60 });
  const [refused] = await take(client, [lane]);
  assert.equal(refused!.status, TAKE.leased);
  assert.ok(refused!.dueMs > 55_000 && refused!.dueMs <= 60_000);
  assert.deepEqual(refused!.delivered, []);
  await expire(client, lane);
  assert.deepEqual((await takeOne(client, lane)).delivered, ids(0, 3));
});

test("of many that race for a lane, one gets it", async () => {
  const lanes = [await newLane(client, 3), await newLane(client, 3), await newLane(client, 3)];
  const racers = await Promise.all(Array.from({ length: 6 }, () => database.client()));
  for (let round = 0; round < 30; round++) {
    const asks = racers.map((racer, index) => {
      const order = index % 2 === 0 ? lanes : [...lanes].reverse();
      return { racer, asks: order.map((lane) => ({ ...lane, token: newToken() })) };
    });
    const answers = await Promise.all(asks.map((each) => take(each.racer, each.asks)));
    for (const lane of lanes) {
      const holders = asks.flatMap((each, racer) =>
        each.asks.filter(
          (ask, index) => ask.partition === lane.partition && answers[racer]![index]!.status === TAKE.taken,
        ),
      );
      assert.equal(holders.length, 1);
      assert.equal((await readCursor(client, lane)).token, holders[0]!.token);
      const [given] = await settle(client, [{ ...lane, token: holders[0]!.token, release: true }]);
      assert.equal(given!.status, SETTLE.done);
    }
  }
});

test("a take in an open transaction makes the cursor busy, and the rest of the call goes on", async () => {
  const [held, free] = [await newLane(client, 1), await newLane(client, 1)];
  await other.query("begin");
  await takeOne(other, held);
  const answers = await take(client, [held, free]);
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [TAKE.busy, TAKE.taken],
  );
  await other.query("rollback");
  await takeOne(client, held);
});

test("a call that asks for a lane twice is refused whole", async () => {
  const [lane, bystander] = [await newLane(client, 4), await newLane(client, 4)];
  for (const autoAck of [false, true]) {
    const twice = [
      { ...bystander, autoAck },
      { ...lane, autoAck, budget: 2 },
      { ...lane, autoAck, budget: 3 },
    ];
    await assert.rejects(take(client, twice), { code: "QN400" });
    for (const each of [lane, bystander]) {
      const { committed, token } = await readCursor(client, each);
      assert.deepEqual([committed, token], [0, null]);
    }
  }
});

test("groups read the same lane independently", async () => {
  const lane = await newLane(client, 3);
  const audit = { ...lane, group: await openGroup(client, lane.queue, "audit") };
  await openCursor(client, audit.partition, audit.group);
  const token = newToken();
  const answers = await take(client, [{ ...lane, token }, audit]);
  assert.deepEqual(
    answers.map((answer) => answer.delivered),
    [ids(0, 3), ids(0, 3)],
  );
  await settle(client, [{ ...lane, token, from: 0, to: 3 }]);
  assert.equal((await readCursor(client, lane)).committed, 3);
  assert.equal((await readCursor(client, audit)).committed, 0);
});

test("a cursor that is not there, and a lane with nothing to deliver", async () => {
  const [lane, empty] = [await newLane(client, 1), await newLane(client)];
  const stranger = await openGroup(client, lane.queue, "stranger");
  const answers = await take(client, [
    { ...lane, group: stranger },
    { partition: 999_999_999, group: lane.group },
    empty,
  ]);
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [TAKE.missing, TAKE.missing, TAKE.empty],
  );
  assert.equal((await readCursor(client, empty)).token, null);
});

test("the lanes of a pop share its budget in their order; pops do not share theirs", async () => {
  const lanes = [await newLane(client, 3), await newLane(client, 3), await newLane(client, 3)];
  const second = await newLane(client, 3);
  const answers = await take(client, [
    ...lanes.map((lane) => ({ ...lane, pop: 0, budget: 4 })),
    { ...second, pop: 1, budget: 2 },
  ]);
  assert.deepEqual(
    answers.map((answer) => [answer.status, answer.delivered.length]),
    [
      [TAKE.taken, 3],
      [TAKE.taken, 1],
      [TAKE.notTried, 0],
      [TAKE.taken, 2],
    ],
  );
  assert.equal((await readCursor(client, lanes[2]!)).token, null, "a lane that was not tried is not leased");
  assert.equal((await readCursor(client, lanes[1]!)).until, 1);
});

test("lanes that give nothing use none of the budget", async () => {
  const [empty, full] = [await newLane(client), await newLane(client, 3)];
  const answers = await take(client, [
    { ...empty, pop: 0, budget: 3 },
    { ...full, pop: 0, budget: 3 },
  ]);
  assert.deepEqual(
    answers.map((answer) => answer.delivered.length),
    [0, 3],
  );
});

test("a delay holds messages back until they are old enough, and says when", async () => {
  const lane = await newLane(client, 3);
  const [young] = await take(client, [{ ...lane, delaySeconds: 60 }]);
  assert.equal(young!.status, TAKE.delayed);
  assert.ok(young!.dueMs > 50_000 && young!.dueMs <= 60_000);
  await age(client, lane.partition, 61);
  await push(client, lane.partition, numbered(2, 3));
  const answer = await takeOne(client, { ...lane, delaySeconds: 60 });
  assert.deepEqual(answer.delivered, ids(0, 3), "the young ones behind are not delivered");
  assert.equal((await readCursor(client, lane)).until, 3);
});

test("a delay counts from the first message that is not finished", async () => {
  const lane = await newLane(client, 3);
  await age(client, lane.partition, 100);
  await push(client, lane.partition, numbered(1, 3));
  await takeOne(client, { ...lane, autoAck: true, delaySeconds: 60 });
  assert.equal((await readCursor(client, lane)).committed, 3);
  const [answer] = await take(client, [{ ...lane, delaySeconds: 60 }]);
  assert.equal(answer!.status, TAKE.delayed);
  assert.ok(answer!.dueMs > 50_000);
});

test("a window buffer waits for silence in the lane, and says until when", async () => {
  const lane = await newLane(client, 3);
  await age(client, lane.partition, 100);
  await push(client, lane.partition, numbered(1, 3));
  const [noisy] = await take(client, [{ ...lane, windowSeconds: 30 }]);
  assert.equal(noisy!.status, TAKE.window);
  assert.ok(noisy!.dueMs > 25_000 && noisy!.dueMs <= 30_000);
  await age(client, lane.partition, 31);
  assert.deepEqual((await takeOne(client, { ...lane, windowSeconds: 30 })).delivered, ids(0, 4));
});

test("after a failure the lane waits for the retry delay, and says how long", async () => {
  const lane = await newLane(client, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { failed: [0], retryDelayMs: 20_000 });
  const [answer] = await take(client, [lane]);
  assert.equal(answer!.status, TAKE.retryDelay);
  assert.ok(answer!.dueMs > 15_000 && answer!.dueMs <= 20_000);
  await client.query(
    "update queen.partition_consumers set not_before = clock_timestamp() where partition_id = $1",
    [lane.partition],
  );
  assert.deepEqual((await takeOne(client, lane)).delivered, ids(0, 3));
});

test("messages that were finished out of order are reported and not delivered again", async () => {
  const lane = await newLane(client, 8);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settle(client, [{ ...lane, token, from: 1, to: 3, more: "{[5,6)}", release: true }]);
  const answer = await takeOne(client, { ...lane, budget: 7 });
  assert.equal(answer.acked, "{[1,3),[5,6)}");
  assert.deepEqual([answer.from, answer.to], [0, 7]);
  assert.deepEqual(answer.delivered, ["m0", "m3", "m4", "m6"]);
});

test("auto-ack finishes what it delivers, without a lease, and passes over what was finished", async () => {
  const lane = await newLane(client, 8);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settle(client, [{ ...lane, token, from: 2, to: 4, more: "{[6,7)}", release: true }]);
  const answer = await takeOne(client, { ...lane, autoAck: true, budget: 2 });
  assert.deepEqual(answer.delivered, ["m0", "m1"]);
  const after2 = await readCursor(client, lane);
  assert.deepEqual([after2.committed, after2.acked, after2.token], [4, "{[6,7)}", null]);
  assert.deepEqual((await takeOne(client, { ...lane, autoAck: true })).delivered, ["m4", "m5", "m7"]);
  const after8 = await readCursor(client, lane);
  assert.deepEqual([after8.committed, after8.acked, after8.token], [8, null, null]);
  assert.equal((await take(client, [lane]))[0]!.status, TAKE.empty);
});

test("auto-ack forgets the failures of what it finished", async () => {
  const lane = await newLane(client, 3);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settleLease(client, lane, token, { failed: [1] });
  await takeOne(client, lane);
  await expire(client, lane);
  assert.deepEqual((await takeOne(client, { ...lane, autoAck: true })).delivered, ids(0, 3));
  assert.deepEqual(await readCursor(client, lane), {
    committed: 3,
    acked: null,
    token: null,
    until: null,
    failures: null,
  });
});

test("segments that the caller has are not sent again", async () => {
  const lane = await newLane(client, 6);
  const [all] = await take(client, [{ ...lane, budget: 4, have: [0, 6] }]);
  assert.deepEqual([all!.status, all!.from, all!.to, all!.segments.length], [TAKE.taken, 0, 4, 0]);
  await expire(client, lane);
  const [part] = await take(client, [{ ...lane, budget: 4, have: [0, 3] }]);
  assert.deepEqual(part!.delivered, ids(0, 4), "a part is not enough: then all segments come");
  await expire(client, lane);
  const [behind] = await take(client, [{ ...lane, budget: 4, have: [1, 6] }]);
  assert.deepEqual(behind!.delivered, ids(0, 4));
});

test("only the segments of the range come", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, numbered(9), 3);
  await takeOne(client, { ...lane, budget: 4, autoAck: true });
  const answer = await takeOne(client, { ...lane, budget: 2 });
  assert.deepEqual(answer.delivered, ["m4", "m5"]);
  assert.deepEqual(
    answer.segments.map((segment) => segment.first_offset),
    [3],
  );
});

test("a lease that runs out is an attempt of its first message only", async () => {
  const lane = await newLane(client, 3);
  await takeOne(client, lane);
  await expire(client, lane);
  await takeOne(client, lane);
  const { failures } = await readCursor(client, lane);
  assert.deepEqual(Object.keys(failures), ["0"]);
  assert.equal(failures["0"].n, 1);
  assert.equal(failures["0"].history[0].error, "lease expired");
});

test("a message that kills its consumers is tried alone, buried, and the lane goes on", async () => {
  const lane = await newLane(client, 3);
  const ask = { ...lane, retryLimit: 2 };
  const sizes: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    sizes.push((await takeOne(client, ask)).delivered.length);
    await expire(client, lane);
  }
  assert.deepEqual(sizes, [3, 3, 3, 1], "first, two retries, and once more alone");

  const before = await readCursor(client, lane);
  const [exhausted] = await take(client, [ask]);
  assert.equal(exhausted!.status, TAKE.exhausted);
  assert.deepEqual(exhausted!.delivered, []);
  assert.deepEqual(await readCursor(client, lane), before, "saying so changes nothing");

  assert.equal(await buryExpired(client, lane, 2), BURY.buried);
  const letters = await database.query(
    `select transaction_id, convert_from(fragment, 'UTF8') as fragment, error_message, retry_count, history,
            consumer_group, message_offset
       from queen.dead_letters where partition_id = $1`,
    [lane.partition],
  );
  assert.equal(letters.length, 1);
  const [letter] = letters;
  assert.equal(letter!.transaction_id, "m0");
  assert.equal(letter!.fragment, '"transactionId":"m0","traceId":null,"producerSub":null,"data":{"n":0}');
  assert.equal(letter!.error_message, "lease expired");
  assert.equal(letter!.consumer_group, "workers");
  assert.equal(letter!.history.length, 4);
  assert.equal(letter!.retry_count, 3);
  assert.deepEqual(await readCursor(client, lane), {
    committed: 1,
    acked: null,
    token: null,
    until: null,
    failures: null,
  });
  assert.deepEqual((await takeOne(client, ask)).delivered, ["m1", "m2"]);
});

test("bury_expired does nothing for a lane that is not exhausted, and says when the cursor is busy", async () => {
  const lane = await newLane(client, 2);
  await takeOne(client, lane);
  const live = await readCursor(client, lane);
  assert.equal(await buryExpired(client, lane, 0), BURY.nothing);
  assert.deepEqual(await readCursor(client, lane), live, "a live lease is left alone");

  await expire(client, lane);
  assert.equal(await buryExpired(client, lane, 0), BURY.nothing);
  assert.deepEqual(await readCursor(client, lane), live, "it has one more attempt");

  await other.query("begin");
  await other.query("select 1 from queen.partition_consumers where partition_id = $1 for update", [
    lane.partition,
  ]);
  assert.equal(await buryExpired(client, lane, 0), BURY.busy);
  await other.query("rollback");
  assert.equal(
    await buryExpired(client, { ...lane, group: 999_999 }, 0),
    BURY.nothing,
    "nothing is left to bury",
  );
});

test("burying the first message passes over those behind it that were finished", async () => {
  const lane = await newLane(client, 4);
  const token = newToken();
  const ask = { ...lane, retryLimit: 0 };
  await takeOne(client, { ...ask, token });
  await settle(client, [{ ...lane, token, from: 1, to: 3 }]);
  await expire(client, lane);
  assert.deepEqual((await takeOne(client, ask)).delivered, ["m0"], "alone");
  await expire(client, lane);
  assert.equal((await take(client, [ask]))[0]!.status, TAKE.exhausted);
  await buryExpired(client, lane, 0);
  const { committed, acked } = await readCursor(client, lane);
  assert.deepEqual([committed, acked], [3, null]);
  assert.deepEqual((await takeOne(client, ask)).delivered, ["m3"]);
});

test("with unlimited retries no lease that runs out exhausts a message", async () => {
  const lane = await newLane(client, 2);
  for (let attempt = 0; attempt < 12; attempt++) {
    const answer = await takeOne(client, { ...lane, retryLimit: -1 });
    assert.deepEqual(answer.delivered, ids(0, 2));
    await expire(client, lane);
  }
  await takeOne(client, { ...lane, retryLimit: -1 });
  const { failures } = await readCursor(client, lane);
  assert.equal(failures["0"].n, 12);
  assert.equal(failures["0"].history.length, 10, "the history is bounded");
});

test("a group starts at what is left of the log", async () => {
  const lane = await newLane(client, 9);
  await trim(client, lane.partition, 6);
  const token = newToken();
  const answer = await takeOne(client, { ...lane, token, budget: 2 });
  assert.deepEqual(answer.delivered, ["m6", "m7"]);
  const [settled] = await settle(client, [{ ...lane, token, from: 6, to: 8 }]);
  assert.deepEqual([settled!.status, settled!.committed, settled!.released], [SETTLE.done, 8, true]);
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m8"]);
});

test("what is left of the log may be finished already", async () => {
  const lane = await newLane(client, 9);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  await settle(client, [{ ...lane, token, from: 6, to: 8, release: true }]);
  await trim(client, lane.partition, 6);
  const answer = await takeOne(client, { ...lane, budget: 1 });
  assert.deepEqual(answer.delivered, ["m8"], "a lease always holds something");
  const { committed, acked } = await readCursor(client, lane);
  assert.deepEqual([committed, acked], [8, null]);
});

test("a log that is gone whole is empty and leases nothing", async () => {
  const lane = await newLane(client, 3);
  await trim(client, lane.partition, 3);
  assert.equal((await take(client, [lane]))[0]!.status, TAKE.empty);
  assert.equal((await readCursor(client, lane)).token, null);
  await push(client, lane.partition, numbered(1, 3));
  assert.deepEqual((await takeOne(client, lane)).delivered, ["m3"]);
});

test("a lease whose messages are gone from the log does not block the lane", async () => {
  const lane = await newLane(client, 6);
  await takeOne(client, { ...lane, budget: 3, retryLimit: 0 });
  await trim(client, lane.partition, 3);
  await expire(client, lane);
  assert.equal(await buryExpired(client, lane, 0), BURY.nothing);
  const answer = await takeOne(client, { ...lane, retryLimit: 0 });
  assert.deepEqual(answer.delivered, ids(3, 6), "it was no attempt of the message that is first now");
  assert.equal((await readCursor(client, lane)).failures, null);
});

const large = (count: number, from = 0) =>
  numbered(count, from).map((each) => ({ ...each, data: `"${"x".repeat(1_000)}"` }));

test("a call with too many bytes is refused whole, and one that is to fit is cut", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, large(10), 1);
  await assert.rejects(take(client, [{ ...lane, budget: 10 }], { bytes: 5_000, fit: false }), {
    code: "QN413",
  });
  assert.equal((await readCursor(client, lane)).token, null, "nothing was leased");
  const [answer] = await take(client, [{ ...lane, budget: 10 }], { bytes: 5_000, fit: true });
  assert.deepEqual(answer!.delivered, ids(0, 4));
  assert.equal((await readCursor(client, lane)).until, 4, "what is delivered is what is leased");
  const [rest] = await take(client, [{ ...(await newLane(client, 3)), budget: 3 }], {
    bytes: 5_000,
    fit: false,
  });
  assert.equal(rest!.delivered.length, 3, "a call below the limit goes through");
});

test("what the caller holds already has no bytes, however many messages are taken", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, large(3), 1);
  const [answer] = await take(client, [{ ...lane, budget: 3, have: [0, 3] }], { bytes: 10, fit: false });
  assert.equal(answer!.status, TAKE.taken);
  assert.equal((await readCursor(client, lane)).until, 3);
});

test("a message that is larger than the limit is delivered alone", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, large(3), 1);
  const [answer] = await take(client, [{ ...lane, budget: 3, autoAck: true }], { bytes: 10, fit: true });
  assert.deepEqual(answer!.delivered, ids(0, 1));
  const [next] = await take(client, [{ ...lane, budget: 3 }], { bytes: 10, fit: true });
  assert.deepEqual(next!.delivered, ids(1, 2));
});

test("of lanes that do not fit together the first are taken; the others are not, or busy for their own pop", async () => {
  const lanes = [await newLane(client), await newLane(client), await newLane(client)];
  for (const lane of lanes) await push(client, lane.partition, large(2), 1);
  const [one, two, three] = lanes;
  const asks = [
    { ...one!, pop: 0, budget: 9 },
    { ...two!, pop: 0, budget: 9 },
    { ...three!, pop: 1, budget: 9 },
  ];
  const answers = await take(client, asks, { bytes: 2_500, fit: true });
  assert.deepEqual(
    answers.map(({ status }) => status),
    [TAKE.taken, TAKE.notTried, TAKE.busy],
  );
  assert.equal((await readCursor(client, three!)).token, null);
});

test("a take that is cut starts in the middle of a segment", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, large(6), 3);
  const [first] = await take(client, [{ ...lane, budget: 1, autoAck: true }], { bytes: 3_500, fit: true });
  assert.deepEqual(first!.delivered, ids(0, 1));
  const [answer] = await take(client, [{ ...lane, budget: 9 }], { bytes: 3_500, fit: true });
  assert.deepEqual(answer!.delivered, ids(1, 3));
});
