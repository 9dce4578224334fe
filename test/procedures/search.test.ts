/** A transactionId is found in any lane, in steps that are bounded, the newest messages of every lane first. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import { newLane, numbered, openLane, push } from "../support/procedures.ts";
import { keysOf } from "../support/segments.ts";
import { sequentialScans } from "../support/sweeps.ts";

let database: TestDatabase;
let client: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database.drop());

const START = { band: 1, at_queue: 0, at_partition: 0, below: null };

interface Options {
  readonly queue?: number;
  readonly partition?: number;
  readonly limit?: number;
  /** 0: as little as possible. */
  readonly ms?: number;
}

async function step(id: string, from: Row, { queue, partition, limit = 50, ms = 0 }: Options): Promise<Row> {
  const [key] = await keysOf(client, [id]);
  const { band, at_queue, at_partition, below } = from;
  const { rows } = await client.query(
    "select * from queen.search_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    [queue ?? null, partition ?? null, id, key, band, at_queue, at_partition, below, limit, ms],
  );
  return rows[0];
}

/** All steps of a search. */
async function search(id: string, options: Options = {}) {
  const found: [number, number][] = [];
  let searched = 0;
  let steps = 0;
  for (let from: Row = START; from.band !== null; steps += 1) {
    assert.ok(steps < 10_000, "it comes to an end");
    from = await step(id, from, options);
    found.push(...from.places);
    searched += Number(from.searched);
  }
  return { found, searched, steps };
}

const wide = async (lanes: number, messages: number) => {
  const { queue, queueId } = await newLane(client);
  const partitions: number[] = [];
  for (let index = 0; index < lanes; index += 1) {
    const { partition } = await openLane(client, queue, `lane-${index}`);
    if (messages > 0) await push(client, partition, numbered(messages));
    partitions.push(partition);
  }
  return { queue, queueId, partitions };
};

test("it is found in whichever lane it is, every message is looked at once, and each step is bounded", async () => {
  const { queueId, partitions } = await wide(5, 30);
  const at = await push(client, partitions[3]!, [{ transactionId: "needle", data: "1" }]);
  const whole = await search("needle", { queue: queueId });
  assert.deepEqual(whole.found, [[partitions[3], at]]);
  assert.equal(whole.searched, 5 * 30 + 1);
  assert.ok(whole.steps >= 5, "without time, a step is one lane");
  assert.deepEqual((await search("needle", { queue: queueId, ms: 5_000 })).steps, 1);
  assert.deepEqual(
    (await search("m7", { queue: queueId })).found.map(([lane]) => lane).sort(),
    [...partitions].sort(),
  );
  assert.deepEqual((await search("nothing", { queue: queueId })).found, []);
});

test("other queues and lanes are left alone unless all are meant", async () => {
  const [one, two] = [await wide(2, 3), await wide(2, 3)];
  const places = async (options: Options) =>
    (await search("m1", options)).found.map(([partition]) => partition).sort((a, b) => a - b);
  assert.deepEqual(await places({ queue: one.queueId }), one.partitions);
  assert.deepEqual(await places({ queue: two.queueId, partition: two.partitions[1]! }), [two.partitions[1]]);
  const all = await places({});
  for (const partition of [...one.partitions, ...two.partitions]) assert.ok(all.includes(partition));
});

test("the newest messages of every lane come before the older ones of any", async () => {
  const { queueId, partitions } = await wide(3, 0);
  await push(client, partitions[0]!, [{ transactionId: "twice", data: "old" }, ...numbered(2_500)]);
  await push(client, partitions[2]!, [...numbered(5), { transactionId: "twice", data: "new" }]);
  const { found, searched } = await search("twice", { queue: queueId });
  assert.deepEqual(found, [
    [partitions[2], 5],
    [partitions[0], 0],
  ]);
  assert.equal(searched, 2_501 + 6);
});

test("a step that has found enough goes on behind it", async () => {
  const { queueId, partitions } = await wide(1, 0);
  const same = Array.from({ length: 7 }, () => ({ transactionId: "same", data: "1" }));
  for (const message of same) await push(client, partitions[0]!, [message]);
  const { found } = await search("same", { queue: queueId, limit: 2, ms: 5_000 });
  assert.deepEqual(
    found.map(([, offset]) => offset),
    [6, 5, 4, 3, 2, 1, 0],
  );
});

test("a lane that goes away, and one that grows, keep nothing from being found", async () => {
  const { queueId, partitions } = await wide(3, 6_000);
  await push(client, partitions[1]!, [{ transactionId: "needle", data: "1" }, ...numbered(3_000, 6_000)]);
  let from: Row = START;
  while (!(from.band === 2 && Number(from.at_partition) === partitions[0] && from.below !== null)) {
    from = await step("needle", from, { queue: queueId });
    assert.deepEqual(from.places, []);
  }
  await client.query("delete from queen.partitions where id = $1", [partitions[0]]);
  await push(client, partitions[1]!, numbered(2_000, 20_000));
  const found: unknown[] = [];
  for (; from.band !== null; found.push(...from.places))
    from = await step("needle", from, { queue: queueId });
  assert.deepEqual(found, [[partitions[1], 6_000]]);
});

test("a message that only its dead letter still holds is found, and one that the log holds, too, once", async () => {
  const { queueId, partitions } = await wide(1, 3);
  const letter = (offset: number, group: number) =>
    client.query(
      `insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                       transaction_id, fragment, error_message, retry_count, created_at)
       values ($1, $2, 'lane-0', $4, 'g', $3::int8, 'm' || $3::int8, '', 'bad', 0, now())`,
      [queueId, partitions[0], offset, group],
    );
  await letter(1, 1);
  await letter(2, 1);
  await letter(1, 2);
  await client.query("delete from queen.segments where partition_id = $1", [partitions[0]]);
  await client.query("update queen.partitions set start_offset = 3 where id = $1", [partitions[0]]);
  assert.deepEqual((await search("m1", { queue: queueId })).found, [[partitions[0], 1]]);
  const there = await wide(1, 3);
  await client.query(
    "update queen.dead_letters set queue_id = $1, partition_id = $2 where partition_id = $3",
    [there.queueId, there.partitions[0], partitions[0]],
  );
  assert.deepEqual((await search("m1", { queue: there.queueId })).found, [[there.partitions[0], 1]]);
});

test("nothing is read from end to end", async () => {
  const { queueId } = await wide(50, 2);
  await client.query("analyze queen.partitions, queen.segments, queen.dead_letters");
  await client.query("begin");
  const tables = ["partitions", "segments", "dead_letters"];
  const scans = async (): Promise<number[]> => {
    const counts: number[] = [];
    for (const table of tables) counts.push(await sequentialScans(client, table));
    return counts;
  };
  const before = await scans();
  await step("m1", START, { queue: queueId, ms: 5_000 });
  assert.deepEqual(await scans(), before);
  await client.query("rollback");
});
