/** hand_over (P1, P4): does what append and take would do, in one statement; or nothing at all. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  handOver,
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  push,
  readCursor,
  readEverything,
  settle,
  settleLease,
  type TestLane,
  takeOne,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

/** A lane whose group has finished all of its messages. */
async function finishedLane(messages: number): Promise<TestLane> {
  const lane = await newLane(client, messages);
  await takeOne(client, { ...lane, autoAck: true, budget: messages });
  return lane;
}

/** What is stored of a lane, without what differs from lane to lane. */
async function stateOf({ partition, group }: TestLane): Promise<Row> {
  const { rows } = await client.query(
    `select p.next_offset, p.start_offset, p.last_at = s.created_at as at_last,
            s.first_offset, s.count, s.keys, s.ends, s.body,
            c.committed, c.lease_token, c.lease_until, c.acked, c.failures, c.not_before,
            c.lease_expires_at - c.lease_acquired_at as lease, c.last_consumed_at = c.lease_acquired_at as consumed_now,
            (select count(*)::int4 from queen.hints h where h.partition_ids @> array[p.id]) as hints
       from queen.partitions p
       join queen.partition_consumers c on c.partition_id = p.id and c.group_id = $2
       join lateral (select * from queen.segments s where s.partition_id = p.id order by s.first_offset desc limit 1) s on true
      where p.id = $1`,
    [partition, group],
  );
  return rows[0]!;
}

for (const [what, options] of [
  ["all of it", { budget: 10 }],
  ["a part of it", { budget: 2 }],
  ["with auto-ack", { budget: 10, autoAck: true }],
  ["a part of it with auto-ack", { budget: 2, autoAck: true }],
  ["under a short lease", { budget: 10, leaseSeconds: 7 }],
] as const) {
  test(`what is stored and leased, ${what}, is what append and take would store and lease`, async () => {
    const [one, both] = [await finishedLane(4), await finishedLane(4)];
    const token = newToken();
    const messages = numbered(3, 4);
    assert.ok(await handOver(client, { ...one, known: 4, messages, token, ...options }));
    await push(client, both.partition, messages);
    await takeOne(client, { ...both, token, ...options });
    assert.deepEqual(await stateOf(one), await stateOf(both));
  });
}

test("other groups of the lane are not touched", async () => {
  const lane = await finishedLane(1);
  const audit = { ...lane, group: await openGroup(client, lane.queue, "audit") };
  await openCursor(client, audit.partition, audit.group);
  assert.ok(await handOver(client, { ...lane, known: 1, messages: numbered(1, 1) }));
  assert.deepEqual((await takeOne(client, { ...audit, budget: 10 })).delivered, ["m0", "m1"]);
});

const HINDRANCES: Record<string, (lane: TestLane) => Promise<unknown>> = {
  "others appended meanwhile": (lane) => push(client, lane.partition, numbered(1, 100)),
  "the lane must be encrypted": (lane) =>
    client.query("update queen.partitions set encryption_required = true where id = $1", [lane.partition]),
  "the group is behind": (lane) =>
    client.query("update queen.partition_consumers set committed = 1 where partition_id = $1", [
      lane.partition,
    ]),
  "the group is ahead": (lane) =>
    client.query("update queen.partition_consumers set committed = 9 where partition_id = $1", [
      lane.partition,
    ]),
  "the lane is leased": (lane) =>
    client.query(
      `update queen.partition_consumers
          set lease_token = 1, lease_until = 4, lease_expires_at = now() + interval '1 minute' where partition_id = $1`,
      [lane.partition],
    ),
  "a lease ran out": (lane) =>
    client.query(
      `update queen.partition_consumers
          set lease_token = 1, lease_until = 4, lease_expires_at = now() - interval '1 minute' where partition_id = $1`,
      [lane.partition],
    ),
  "later messages are finished": (lane) =>
    client.query("update queen.partition_consumers set acked = '{[5,6)}' where partition_id = $1", [
      lane.partition,
    ]),
  "a message failed": (lane) =>
    client.query(
      `update queen.partition_consumers set failures = '{"4": {"n": 1}}' where partition_id = $1`,
      [lane.partition],
    ),
  "a retry is to wait": (lane) =>
    client.query(
      "update queen.partition_consumers set not_before = now() + interval '1 minute' where partition_id = $1",
      [lane.partition],
    ),
  "the group has no cursor": (lane) =>
    client.query("delete from queen.partition_consumers where partition_id = $1", [lane.partition]),
  "the partition was deleted": (lane) =>
    client.query("delete from queen.partitions where id = $1", [lane.partition]),
};

for (const [hindrance, hinder] of Object.entries(HINDRANCES)) {
  test(`nothing is done where ${hindrance}`, async () => {
    const lane = await finishedLane(4);
    await hinder(lane);
    const before = await readEverything(client);
    assert.ok(!(await handOver(client, { ...lane, known: 4, messages: numbered(3, 4) })));
    assert.deepEqual(await readEverything(client), before);
  });
}

test("an encrypted message goes into a lane that must be encrypted", async () => {
  const lane = await finishedLane(4);
  await client.query("update queen.partitions set encryption_required = true where id = $1", [
    lane.partition,
  ]);
  assert.ok(await handOver(client, { ...lane, known: 4, messages: numbered(3, 4), sealed: true }));
});

for (const [row, lock] of [
  ["partition", "select 1 from queen.partitions where id = $1 for no key update"],
  ["cursor", "select 1 from queen.partition_consumers where partition_id = $1 for no key update"],
] as const) {
  test(`nothing is done, and nobody waits, while another transaction holds the ${row}`, async () => {
    const lane = await finishedLane(4);
    await other.query("begin");
    await other.query(lock, [lane.partition]);
    const before = await readEverything(client);
    assert.ok(!(await handOver(client, { ...lane, known: 4, messages: numbered(3, 4) })));
    assert.deepEqual(await readEverything(client), before);
    await other.query("rollback");
    assert.ok(await handOver(client, { ...lane, known: 4, messages: numbered(3, 4) }));
  });
}

test("of many that race for a lane, each message has a place of its own, and the lease one holder", async () => {
  const lane = await finishedLane(1);
  const racers = await Promise.all(Array.from({ length: 5 }, () => database.client()));
  let known = 1;
  for (let round = 0; round < 40; round++) {
    const asks = racers.map((_, index) => ({
      ...lane,
      known,
      messages: numbered(1, 1_000 * (round + 1) + index),
      token: newToken(),
    }));
    const done = await Promise.all(asks.map((ask, index) => handOver(racers[index]!, ask)));
    const winners = asks.filter((_, index) => done[index]);
    assert.equal(winners.length, 1);
    const { token } = await readCursor(client, lane);
    assert.equal(token, winners[0]!.token);
    known++;
    const [settled] = await settle(client, [{ ...lane, token, from: known - 1, to: known }]);
    assert.deepEqual([settled!.status, settled!.released, settled!.committed], [0, true, known]);
  }
});

test("what was handed over and failed comes again", async () => {
  const lane = await finishedLane(2);
  const token = newToken();
  assert.ok(await handOver(client, { ...lane, known: 2, messages: numbered(2, 2), token }));
  await settleLease(client, lane, token, { failed: [2], retryLimit: 3, retryDelayMs: 0 });
  assert.deepEqual((await takeOne(client, { ...lane, budget: 10 })).delivered, ["m2", "m3"]);
});
