/** Figures of lanes and queues: exact against counting, whatever the cursors say. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  age,
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  openLane,
  push,
  settle,
  takeOne,
  trim,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database.drop());

async function figures(partition: number): Promise<Row> {
  const { rows } = await client.query("select * from queen.lane_figures(null, $1)", [[partition]]);
  assert.equal(rows.length, 1);
  const { pending, processing, place } = rows[0];
  return { pending, processing, place };
}

async function lanes(
  queue: number | null,
  sort: string,
  limit = 100,
  offset = 0,
  search: string | null = null,
) {
  const { rows } = await client.query("select * from queen.list_lanes($1, $2, $3, $4, $5)", [
    queue,
    search,
    sort,
    limit,
    offset,
  ]);
  return rows as Row[];
}

test("where nobody reads, everything is pending", async () => {
  const { partition } = await openLane(client, "unread");
  assert.deepEqual(await figures(partition), { pending: 0, processing: 0, place: 0 });
  await push(client, partition, numbered(5));
  assert.deepEqual(await figures(partition), { pending: 5, processing: 0, place: 0 });
  await trim(client, partition, 3);
  assert.deepEqual(await figures(partition), { pending: 2, processing: 0, place: 3 });
});

test("queue mode counts where the queue is read so, otherwise the group that has most to do", async () => {
  const { queue, partition, group } = await newLane(client, 10);
  const fast = await openGroup(client, queue, "fast");
  await openCursor(client, partition, fast);
  await takeOne(client, { partition, group: fast, budget: 8, autoAck: true });
  await takeOne(client, { partition, group, budget: 3, autoAck: true });
  assert.deepEqual(await figures(partition), { pending: 7, processing: 0, place: 3 });

  const queueMode = await openGroup(client, queue, "__QUEUE_MODE__");
  assert.deepEqual(await figures(partition), { pending: 10, processing: 0, place: 0 });
  await openCursor(client, partition, queueMode);
  const token = newToken();
  await takeOne(client, { partition, group: queueMode, budget: 4, token });
  assert.deepEqual(await figures(partition), { pending: 6, processing: 4, place: 0 });
  await settle(client, [{ partition, group: queueMode, token, from: 1, to: 3 }]);
  assert.deepEqual(await figures(partition), { pending: 6, processing: 2, place: 0 });
});

test("a lease that ran out holds nothing", async () => {
  const { partition, group } = await newLane(client, 4);
  await takeOne(client, { partition, group, budget: 3 });
  assert.deepEqual(await figures(partition), { pending: 1, processing: 3, place: 0 });
  await client.query(
    "update queen.partition_consumers set lease_expires_at = now() where partition_id = $1",
    [partition],
  );
  assert.deepEqual(await figures(partition), { pending: 4, processing: 0, place: 0 });
});

test("a group that starts at a time has only that before it, also where it has no cursor yet", async () => {
  const { partition } = await openLane(client, "late");
  await push(client, partition, numbered(4));
  await age(client, partition, 3_600);
  await client.query("update queen.partitions set created_at = created_at - interval '1 day' where id = $1", [
    partition,
  ]);
  await openGroup(client, "late", "late", "timestamp", new Date(Date.now() - 60_000).toISOString());
  assert.deepEqual(await figures(partition), { pending: 0, processing: 0, place: 4 });
  await push(client, partition, numbered(3, 4));
  assert.deepEqual(await figures(partition), { pending: 3, processing: 0, place: 4 });
});

/** A small generator whose seed is in the test's name where it fails. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

test("figures are what counting message by message gives, in any state", async () => {
  const queue = "any-state";
  const { queueId } = await openLane(client, queue);
  const groups = [await openGroup(client, queue, "one"), await openGroup(client, queue, "two")];
  const next = random(20261116);
  const expected = new Map<string, Row>();
  for (let lane = 0; lane < 150; lane++) {
    const start = next(6);
    const end = start + next(20);
    const { rows } = await client.query(
      "insert into queen.partitions (queue_id, name, start_offset, next_offset) values ($1, $2, $3, $4) returning id",
      [queueId, `lane ${lane}`, start, end],
    );
    const partition = rows[0].id as number;
    const states = [];
    for (const group of groups) {
      if (next(4) === 0) {
        states.push({ unfinished: end - start, processing: 0 }); // no cursor
        continue;
      }
      const committed = next(end + 1);
      const acked = new Set<number>();
      for (let offset = committed + 1; offset < end; offset++) if (next(3) === 0) acked.add(offset);
      const until = next(2) === 0 ? null : Math.min(end, committed + 1 + next(8));
      const isActive = next(3) > 0;
      await client.query(
        `insert into queen.partition_consumers (partition_id, group_id, committed, acked, lease_token, lease_expires_at, lease_until)
         values ($1, $2, $3, (select range_agg(int8range(o, o + 1)) from unnest($4::int8[]) as o),
                 case when $5::int8 is not null then 1 end,
                 case when $5::int8 is not null then now() + $6 * interval '1 hour' end, $5)`,
        [partition, group, committed, acked.size ? [...acked] : null, until, isActive ? 1 : -1],
      );
      let [unfinished, processing] = [0, 0];
      for (let offset = Math.max(start, committed); offset < end; offset++) {
        if (acked.has(offset)) continue;
        unfinished++;
        if (until !== null && isActive && offset < until) processing++;
      }
      states.push({ unfinished, processing });
    }
    states.sort((a, b) => b.unfinished - a.unfinished || b.processing - a.processing);
    const { unfinished, processing } = states[0]!;
    expected.set(`lane ${lane}`, { total: end - start, pending: unfinished - processing, processing });
  }
  const shown = await lanes(queueId, "name", 1_000);
  for (const { name, total, pending, processing } of shown) {
    if (name !== "Default") assert.deepEqual({ total, pending, processing }, expected.get(name), name);
  }
  assert.equal(shown.length, 151);
  const { rows } = await client.query("select * from queen.queue_figures($1)", [queueId]);
  const sum = (field: string): number => [...expected.values()].reduce((total, row) => total + row[field], 0);
  const { partitions, total, pending, processing } = rows[0];
  assert.deepEqual(
    { partitions, total, pending, processing },
    { partitions: 151, total: sum("total"), pending: sum("pending"), processing: sum("processing") },
  );
});

test("lanes come by name, by depth, by age, page by page, with the times of their messages", async () => {
  const made: Record<string, number> = {};
  let queueId = 0;
  for (const [name, messages, seconds] of [
    ["b", 3, 50],
    ["a", 1, 200],
    ["Cc", 9, 10],
    ["empty", 0, 0],
    ["done", 2, 900],
  ] as const) {
    const lane = await openLane(client, "sorted", name);
    ({ partition: made[name], queueId } = lane);
    if (messages > 0) await push(client, lane.partition, numbered(messages));
    await age(client, lane.partition, seconds);
  }
  const group = await openGroup(client, "sorted", "readers");
  await openCursor(client, made.done!, group);
  await takeOne(client, { partition: made.done!, group, autoAck: true });
  const names = (rows: Row[]): string[] => rows.map((row) => row.name);
  const { rows: order } = await client.query(
    "select name from queen.partitions where queue_id = $1 order by name",
    [queueId],
  );
  assert.deepEqual(names(await lanes(queueId, "name")), names(order));
  assert.deepEqual(names(await lanes(queueId, "depth")).slice(0, 3), ["Cc", "b", "a"]);
  assert.deepEqual(names(await lanes(queueId, "age")).slice(0, 3), ["a", "b", "Cc"]);
  assert.deepEqual(names(await lanes(queueId, "depth", 1, 1)), ["b"]);
  assert.deepEqual(names(await lanes(queueId, "name", 10, 0, "c")), ["Cc"]);
  assert.deepEqual(names(await lanes(queueId, "depth", 10, 0, "C")), ["Cc"]);
  const beyond = await lanes(queueId, "name", 10, 50);
  assert.deepEqual([beyond.length, beyond[0]!.partition_id, beyond[0]!.lanes], [1, null, 5]);

  const [deepest] = await lanes(queueId, "depth", 1);
  assert.equal(deepest!.queue_name, "sorted");
  assert.equal(deepest!.lanes, 5);
  assert.deepEqual(deepest!.oldest_at, deepest!.newest_at);
  assert.deepEqual(deepest!.waiting_since, deepest!.oldest_at);
  const all = await lanes(queueId, "name");
  const done = all.find((row) => row.name === "done")!;
  assert.deepEqual([done.waiting_since, done.finished, done.oldest_at !== null], [null, 2, true]);
  assert.ok(done.active_at > done.newest_at, "it was consumed after its last message came");
  const empty = all.find((row) => row.name === "empty")!;
  assert.deepEqual([empty.oldest_at, empty.newest_at, empty.active_at], [null, null, null]);
});

test("dead letters are counted by queue and by lane", async () => {
  const { queue, queueId, partition, group } = await newLane(client, 3);
  const { partition: other } = await openLane(client, queue, "other");
  await push(client, other, numbered(1));
  await client.query("select queen.bury_message($1, 1, 'workers', 'e')", [partition]);
  assert.ok(group > 0);
  const shown = await lanes(queueId, "name");
  assert.deepEqual(
    shown.map((row) => [row.name, row.dead_letters, row.pending]),
    [
      ["Default", 1, 2],
      ["other", 0, 1],
    ],
  );
  const { rows } = await client.query("select * from queen.queue_figures($1)", [queueId]);
  assert.deepEqual([rows[0].dead_letters, rows[0].appended, rows[0].finished], [1, 4, 1]);
});
