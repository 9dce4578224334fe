/** Traces go with what they are about. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { newLane, type TestLane, trim } from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database.drop());

async function trace(partition: number, offset: number, names: string[] = []): Promise<number | null> {
  const { rows } = await client.query(
    "select queen.add_trace($1, $2, $3, 'g', 'info', '{}', '0', $4) as id",
    [partition, offset, `m${offset}`, names],
  );
  return rows[0].id;
}

/** The offsets of a lane's messages that have traces, and how many names are left in all. */
async function left({ partition }: TestLane): Promise<{ offsets: number[]; names: number }> {
  const { rows } = await client.query(
    "select message_offset from queen.message_traces where partition_id = $1 order by id",
    [partition],
  );
  const names = await client.query(
    `select count(*)::int4 as count from queen.message_trace_names n
      where not exists (select 1 from queen.message_traces t where t.id = n.trace_id and t.partition_id <> $1)`,
    [partition],
  );
  return { offsets: rows.map((row) => row.message_offset), names: names.rows[0].count };
}

test("a deleted message takes its traces along, with their names", async () => {
  const lane = await newLane(client, 3);
  for (const offset of [0, 1, 1, 2]) await trace(lane.partition, offset, ["a", "b", "a"]);
  assert.deepEqual(await left(lane), { offsets: [0, 1, 1, 2], names: 8 });
  await client.query("select queen.delete_message($1, 1)", [lane.partition]);
  assert.deepEqual(await left(lane), { offsets: [0, 2], names: 4 });
});

test("a cleared lane takes its traces along, a deleted queue all of them", async () => {
  const lane = await newLane(client, 3);
  await trace(lane.partition, 2, ["a"]);
  await client.query("select * from queen.clear_lanes($1, null, 0, null, 100)", [lane.queueId]);
  assert.deepEqual(await left(lane), { offsets: [], names: 0 });
  await trace(lane.partition, 3, ["a"]);
  await client.query("delete from queen.queues where id = $1", [lane.queueId]);
  assert.deepEqual(await left(lane), { offsets: [], names: 0 });
  assert.equal(await trace(lane.partition, 3), null, "nothing is noted about what is gone");
});

test("traces of messages that retention removed are trimmed in rounds; those of dead letters stay", async () => {
  const lane = await newLane(client, 9);
  const bystander = await newLane(client, 9);
  for (let offset = 0; offset < 9; offset++) {
    await trace(lane.partition, offset);
    await trace(bystander.partition, offset);
  }
  await client.query("select queen.bury_message($1, 1, 'workers', 'e')", [lane.partition]);
  await trim(client, lane.partition, 6);
  const rounds: number[] = [];
  do {
    const { rows } = await client.query("select queen.trim_traces(2) as count");
    rounds.push(rows[0].count);
  } while (rounds.at(-1)! === 2);
  assert.deepEqual(rounds, [2, 2, 1]);
  assert.deepEqual((await left(lane)).offsets, [1, 6, 7, 8]);
  assert.equal((await left(bystander)).offsets.length, 9);
});
