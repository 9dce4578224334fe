/** How far groups are behind is noted once a minute, from offsets, by whoever asks, and read by stretches of time. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import { newLane, numbered, openCursor, openGroup, openLane, push } from "../support/procedures.ts";
import { sequentialScans, sweep, sweepAll } from "../support/sweeps.ts";

let database: TestDatabase;
let client: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database.drop());

/** As if the last pass had been so many minutes ago, and everything noted, too. */
const minutesLater = async (minutes: number): Promise<void> => {
  const passed = `${minutes} minutes`;
  // By way of the far past: no row may meet another one on its way.
  await client.query("update queen.group_minutes set minute = minute - interval '99999 days'");
  await client.query(
    "update queen.group_minutes set minute = minute + interval '99999 days' - $1::interval",
    [passed],
  );
  await client.query(
    `update queen.sweeps set started_at = started_at - $1::interval, finished_at = finished_at - $1::interval
      where name = 'lag'`,
    [passed],
  );
};
beforeEach(() => minutesLater(10));

const MINUTE = { intervalMs: 60_000 };

const noted = async (group: number): Promise<number[]> => {
  const { rows } = await client.query(
    "select pending from queen.group_minutes where group_id = $1 order by minute",
    [group],
  );
  return rows.map((row) => Number(row.pending));
};
const series = async (queue: string, minutes: number, back: string): Promise<Row[]> => {
  const { rows } = await client.query(
    "select * from queen.lag_series(now() - $1::interval, now(), $2, $3, 'g')",
    [back, minutes, queue],
  );
  return rows;
};

test("a pass notes the unfinished messages of every group over all lanes, and how old the oldest is", async () => {
  const lane = await newLane(client, 5);
  const second = await openLane(client, lane.queue, "second");
  await push(client, second.partition, numbered(3));
  const [group, idle] = [await openGroup(client, lane.queue, "g"), await openGroup(client, lane.queue, "h")];
  await openCursor(client, lane.partition, group);
  await client.query(
    `update queen.partition_consumers set committed = 2, acked = '{[3,4)}' where partition_id = $1 and group_id = $2`,
    [lane.partition, group],
  );
  await client.query(
    "update queen.segments set created_at = now() - interval '1 hour' where partition_id = $1",
    [lane.partition],
  );
  await sweepAll(client, "lag", MINUTE);
  assert.deepEqual(await noted(group), [2 + 3]);
  assert.deepEqual(await noted(idle), [8], "a group that has met no lane starts at the beginning");
  const [bucket] = await series(lane.queue, 1, "5 minutes");
  assert.ok(Math.abs(Number(bucket!.age_ms) / 3_600_000 - 1) < 0.1, `${bucket!.age_ms} ms`);
});

test("there is one pass in a stretch of time, and none before a hundred times its length has passed", async () => {
  const HOUR = { intervalMs: 3_600_000 };
  await minutesLater(60);
  await sweepAll(client, "lag", HOUR);
  const early = await sweep(client, "lag", { ...HOUR, worker: "another" });
  assert.equal(early.state, "not due");
  assert.ok(Number(early.wait_ms) <= 3_600_000);
  await minutesLater(60);
  assert.equal((await sweep(client, "lag", HOUR)).state, "finished");
  await client.query("update queen.sweeps set busy_ms = 6000 where name = 'lag'");
  await minutesLater(5);
  const resting = await sweep(client, "lag", MINUTE);
  assert.equal(resting.state, "not due");
  assert.ok(Number(resting.wait_ms) > 4 * 60_000 && Number(resting.wait_ms) <= 5 * 60_000, resting.wait_ms);
  await minutesLater(5);
  assert.equal((await sweep(client, "lag", MINUTE)).state, "finished");
});

test("many lanes take many rounds; a queue is written when it is complete, and rounds go on where others ended", async () => {
  const queues = [await newLane(client), await newLane(client)];
  const groups: number[] = [];
  for (const { queue, queueId } of queues) {
    groups.push(await openGroup(client, queue, "g"));
    await client.query(
      `insert into queen.partitions (queue_id, name, next_offset)
       select $1, 'lane-' || n, 3 from generate_series(1, 9000) as n`,
      [queueId],
    );
  }
  await client.query("analyze queen.partitions");
  await client.query("begin");
  const scans = await sequentialScans(client, "segments");
  let rounds = 0;
  let state = "under way";
  for (; state === "under way"; rounds += 1) {
    ({ state } = (await sweep(client, "lag", { ...MINUTE, worker: "one" })) as { state: string });
    for (const group of groups) {
      const counts = await noted(group);
      assert.ok(counts.length === 0 || counts[0] === 27_000, "nothing is half written");
    }
  }
  assert.equal(await sequentialScans(client, "segments"), scans, "the log was not read");
  await client.query("commit");
  assert.equal(state, "finished");
  assert.ok(rounds > 1, `${rounds} rounds`);
  for (const group of groups) assert.deepEqual(await noted(group), [27_000]);
  await client.query("delete from queen.partitions where name like 'lane-%'");
});

test("while nothing is unfinished there is a row an hour, and what is between them is 0", async () => {
  const lane = await newLane(client, 2);
  const group = await openGroup(client, lane.queue, "g");
  await openCursor(client, lane.partition, group);
  await sweepAll(client, "lag", MINUTE);
  await client.query("update queen.partition_consumers set committed = 2 where group_id = $1", [group]);
  for (let minute = 1; minute <= 130; minute += 1) {
    await minutesLater(1);
    await sweepAll(client, "lag", MINUTE);
  }
  assert.deepEqual(await noted(group), [2, 0, 0, 0]);
  const lastHour = await series(lane.queue, 1, "1 hour");
  assert.ok(lastHour.length >= 60, `${lastHour.length} buckets`);
  assert.ok(lastHour.every(({ pending }) => Number(pending) === 0));
  const all = await series(lane.queue, 15, "1 day");
  assert.deepEqual([Number(all[0]!.pending), Number(all.at(-1)!.pending)], [2, 0]);
  await minutesLater(300);
  const later = await series(lane.queue, 1, "1 hour");
  assert.deepEqual(later, [], "of hours in which no broker ran nothing is known");
});

test("rows go with their group, and old ones with the other figures", async () => {
  const lane = await newLane(client, 1);
  const group = await openGroup(client, lane.queue, "g");
  await sweepAll(client, "lag", MINUTE);
  await minutesLater(2 * 1440);
  await sweepAll(client, "lag", MINUTE);
  assert.deepEqual(await noted(group), [1, 1]);
  await sweepAll(client, "metrics", { keepSeconds: 86_400 });
  assert.deepEqual(await noted(group), [1]);
  await client.query("delete from queen.consumer_groups where id = $1", [group]);
  assert.deepEqual(await noted(group), []);
});
