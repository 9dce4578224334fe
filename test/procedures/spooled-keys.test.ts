/**
 * spooled_keys: what a broker has on its disk is compared with the log as it was when the messages began to wait, and
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
  readonly known?: number;
}

interface Keys {
  readonly lane: number;
  readonly from_offset: string;
  readonly next_offset: string;
  readonly keys: Buffer;
}

async function read(...waiting: Waiting[]): Promise<Keys[]> {
  const { rows } = await client.query<Keys>("select * from queen.spooled_keys($1, $2, $3, $4)", [
    waiting.map(({ lane }) => lane.partition),
    waiting.map(({ ageSeconds }) => ageSeconds * 1_000),
    waiting.map(({ doubtFrom }) => doubtFrom ?? -1),
    waiting.map(({ known }) => known ?? 0),
  ]);
  return rows;
}

/** Which of the messages count, lane by lane. */
async function counting(...waiting: Waiting[]): Promise<string[][]> {
  const rows = await read(...waiting);
  const ids = [...numbered(5)].map((_, index) => `m${index}`);
  const keys = await keysOf(client, ids);
  return waiting.map((_, lane) =>
    rows
      .filter((row) => row.lane === lane)
      .flatMap((row) => {
        const first = Number(row.next_offset) - row.keys.length / 8;
        return Array.from({ length: row.keys.length / 8 }, (_, at) => at)
          .filter((at) => first + at >= Number(row.from_offset))
          .map((at) => ids[keys.findIndex((key) => key.equals(row.keys.subarray(at * 8, at * 8 + 8)))]!);
      }),
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

test("several lanes are read in one call, each with its own", async () => {
  const [one, other] = [await newLane(client, 3), await newLane(client, 1)];
  assert.deepEqual(await counting({ lane: one, ageSeconds: 0 }, { lane: other, ageSeconds: 0 }), [
    [FIRST, SECOND, "m2"],
    [FIRST],
  ]);
});

test("the window is that of the time when the messages began to wait", async () => {
  const lane = await laneWithShortWindow(2);
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await counting({ lane, ageSeconds: 0 }), [[]]);
  assert.deepEqual(await counting({ lane, ageSeconds: 3_500 }), [[]]);
  assert.deepEqual(await counting({ lane, ageSeconds: 3_590 }), [[FIRST, SECOND]]);
});

test("what was stored since they wait counts, however long ago that is", async () => {
  const lane = await laneWithShortWindow(0);
  await push(client, lane.partition, numbered(2));
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await counting({ lane, ageSeconds: 7_200 }), [[FIRST, SECOND]]);
});

test("what an append in doubt may have stored counts from its offset on, whatever the clocks say", async () => {
  const lane = await laneWithShortWindow(2);
  await age(client, lane.partition, 3_600);
  assert.deepEqual(await counting({ lane, ageSeconds: 0, doubtFrom: 1 }), [[SECOND]]);
  assert.deepEqual(await counting({ lane, ageSeconds: 0, doubtFrom: 0 }), [[FIRST, SECOND]]);
});

test("keys that are known are not read again, and those that were added are", async () => {
  const lane = await newLane(client, 2);
  const known = Math.max(...(await read({ lane, ageSeconds: 10 })).map((row) => Number(row.next_offset)));
  assert.equal(known, 2);
  assert.deepEqual(await read({ lane, ageSeconds: 10, known }), []);
  await push(client, lane.partition, [...numbered(3)].slice(2));
  assert.deepEqual(await counting({ lane, ageSeconds: 10, known }), [["m2"]]);
});

test("a partition that is gone has nothing", async () => {
  const lane = await newLane(client, 1);
  await client.query("delete from queen.queues where id = $1", [lane.queueId]);
  assert.deepEqual(await read({ lane, ageSeconds: 0, doubtFrom: 0 }), []);
});
