/**
 * find_spooled: what a broker has on its disk is compared with the log as it was when the messages began to wait, and
 * with everything that was stored since.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { age, newLane, numbered, push, type TestLane } from "../support/procedures.ts";
import { keysOf } from "../support/segments.ts";

let database: TestDatabase;
let client: pg.Client;

before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database?.drop());

interface Waiting {
  readonly lane: TestLane;
  readonly ageSeconds: number;
  readonly doubtFrom?: number;
  readonly ids: readonly string[];
}

/** The ids that were found, lane by lane. */
async function found(...waiting: Waiting[]): Promise<string[][]> {
  const keys = await Promise.all(waiting.map(async ({ ids }) => Buffer.concat(await keysOf(client, ids))));
  const { rows } = await client.query(
    "select * from queen.find_spooled($1, $2, $3, $4) order by lane, message",
    [
      waiting.map(({ lane }) => lane.partition),
      waiting.map(({ ageSeconds }) => ageSeconds * 1_000),
      waiting.map(({ doubtFrom }) => doubtFrom ?? -1),
      keys,
    ],
  );
  for (const row of rows) {
    const id = waiting[row.lane]!.ids[row.message]!;
    assert.match(row.fragment.toString(), new RegExp(`^"transactionId":"${id}",`));
  }
  return waiting.map(({ ids }, lane) =>
    rows.filter((row) => row.lane === lane).map((row) => ids[row.message]!),
  );
}

/** A lane whose dedup window is a minute and no number of messages. */
async function laneWithShortWindow(messages: number): Promise<TestLane> {
  const lane = await newLane(client, messages);
  await client.query(
    "update queen.queues set dedup_window_seconds = 60, dedup_messages_min = 0 where id = $1",
    [lane.queueId],
  );
  return lane;
}

const [FIRST, SECOND] = ["m0", "m1"] as const;

test("several lanes are looked at in one call, and each finds only its own", async () => {
  const [one, other] = [await newLane(client, 3), await newLane(client, 1)];
  assert.deepEqual(
    await found(
      { lane: one, ageSeconds: 0, ids: ["no", FIRST, SECOND] },
      { lane: other, ageSeconds: 0, ids: [SECOND, FIRST] },
    ),
    [[FIRST, SECOND], [FIRST]],
  );
});

test("the window is that of the time when the messages began to wait", async () => {
  const lane = await laneWithShortWindow(2);
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await found({ lane, ageSeconds: 0, ids: [FIRST] }), [[]]);
  assert.deepEqual(await found({ lane, ageSeconds: 3_500, ids: [FIRST] }), [[]]);
  assert.deepEqual(await found({ lane, ageSeconds: 3_590, ids: [FIRST] }), [[FIRST]]);
});

test("what was stored since they wait is found, however long ago that is", async () => {
  const lane = await laneWithShortWindow(0);
  await push(client, lane.partition, numbered(2));
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await found({ lane, ageSeconds: 7_200, ids: [SECOND] }), [[SECOND]]);
});

test("an append in doubt is looked for from its offset on, whatever the clocks say", async () => {
  const lane = await laneWithShortWindow(2);
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await found({ lane, ageSeconds: 0, doubtFrom: 1, ids: [FIRST, SECOND] }), [[SECOND]]);
  assert.deepEqual(await found({ lane, ageSeconds: 0, doubtFrom: 0, ids: [FIRST, SECOND] }), [
    [FIRST, SECOND],
  ]);
});

test("a partition that is gone has nothing", async () => {
  const lane = await newLane(client, 1);
  await client.query("delete from queen.queues where id = $1", [lane.queueId]);
  assert.deepEqual(await found({ lane, ageSeconds: 0, doubtFrom: 0, ids: [FIRST] }), [[]]);
});
