/**
 * The procedures around the hot path: lanes and cursors are opened by whoever comes first, hints tell
 * exactly what is new, deleting a queue takes everything along, and the view shows messages as they are.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Row, type TestDatabase } from "../support/database.ts";
import {
  newLane,
  newToken,
  numbered,
  openCursor,
  openGroup,
  openLane,
  processId,
  push,
  readCursor,
  settleLease,
  takeOne,
  trim,
  waitsForLock,
} from "../support/procedures.ts";
import { fragmentOf, keysOf, type Message } from "../support/segments.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

// --- hints

interface Hints {
  snapshot: string;
  queues: number[];
  partitions: Row[];
}

async function readHints(reader: pg.Client, snapshot: string | null, queues: number[]): Promise<Hints> {
  const { rows } = await reader.query("select * from queen.read_hints($1, $2)", [snapshot, queues]);
  const all = rows as Row[];
  assert.equal(all.filter((row) => row.snapshot !== null).length, 1);
  assert.notEqual(all[0]!.snapshot, null, "the snapshot is in the first row");
  return {
    snapshot: all[0]!.snapshot,
    queues: all
      .filter((row) => row.queue_id !== null && row.partition_id === null)
      .map((row) => row.queue_id),
    partitions: all.filter((row) => row.partition_id !== null),
  };
}

test("the first look brings a snapshot and nothing else", async () => {
  const { queueId } = await newLane(client, 1);
  const hints = await readHints(client, null, [queueId]);
  assert.deepEqual([hints.queues, hints.partitions], [[], []]);
});

test("hints tell of appends to the queues that matter, once, with the lane's place", async () => {
  const [lane, uninteresting] = [await newLane(client, 1), await newLane(client, 1)];
  const before = await readHints(client, null, []);
  await push(client, lane.partition, numbered(2, 1));
  await push(client, lane.partition, numbered(2, 3));
  await push(client, uninteresting.partition, numbered(1, 1));
  const hints = await readHints(client, before.snapshot, [lane.queueId]);
  assert.deepEqual(hints.partitions, [
    {
      snapshot: null,
      queue_id: lane.queueId,
      partition_id: lane.partition,
      name: "Default",
      next_offset: 5,
      appended: true,
    },
  ]);
  assert.deepEqual((await readHints(client, hints.snapshot, [lane.queueId])).partitions, []);
});

test("a lane of which more happened than an append is told so, whatever came first", async () => {
  const lanes = [await newLane(client, 2), await newLane(client, 2), await newLane(client, 2)];
  const [before, behind, only] = lanes as [(typeof lanes)[0], (typeof lanes)[0], (typeof lanes)[0]];
  const { snapshot } = await readHints(client, null, []);
  await client.query("select queen.delete_message($1, 0)", [before.partition]);
  for (const { partition } of lanes) await push(client, partition, numbered(1, 3));
  await client.query("select queen.delete_message($1, 0)", [behind.partition]);
  const hints = await readHints(
    client,
    snapshot,
    lanes.map(({ queueId }) => queueId),
  );
  assert.deepEqual(
    new Map(
      hints.partitions.filter((row) => row.queue_id !== null).map((row) => [row.partition_id, row.appended]),
    ),
    new Map([
      [before.partition, false],
      [behind.partition, false],
      [only.partition, true],
    ]),
  );
});

test("a lane is looked up once, however many queues matter", async () => {
  const LANES = 100;
  const names = Array.from({ length: LANES }, (_, index) => `many-${index}`);
  const { rows: lanes } = await client.query("select * from queen.open_lanes($1, $2, true)", [
    names,
    names.map(() => "p"),
  ]);
  const { snapshot } = await readHints(client, null, []);
  await client.query("insert into queen.hints (partition_ids) values ($1)", [
    lanes.map((lane) => lane.partition_id),
  ]);
  const lookUps = async (): Promise<Row> => {
    await client.query("select pg_stat_force_next_flush()");
    const { rows } = await client.query(
      `select indexrelname as name, idx_scan::int4 as count from pg_stat_user_indexes
        where relid = 'queen.partitions'::regclass`,
    );
    return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
  };
  const before = await lookUps();
  const { partitions } = await readHints(
    client,
    snapshot,
    lanes.map((lane) => lane.queue_id),
  );
  const after = await lookUps();
  assert.equal(partitions.length, LANES);
  // By its id alone: with the queues as well, each lane would be looked for in each of them.
  assert.deepEqual(after, { ...before, partitions_pkey: before.partitions_pkey + LANES });
});

test("hints are exact when transactions commit in another order than they began", async () => {
  const lanes = [await newLane(client, 1), await newLane(client, 1), await newLane(client, 1)];
  const queues = lanes.map((lane) => lane.queueId);
  const third = await database.client();
  let { snapshot } = await readHints(client, null, queues);
  const look = async (): Promise<number[]> => {
    const hints = await readHints(client, snapshot, queues);
    snapshot = hints.snapshot;
    return hints.partitions
      .map((row) => lanes.findIndex((lane) => lane.partition === row.partition_id))
      .sort();
  };

  await other.query("begin");
  await push(other, lanes[0]!.partition, numbered(1, 1)); // begins first
  await third.query("begin");
  await push(third, lanes[1]!.partition, numbered(1, 1));
  assert.deepEqual(await look(), []);
  await push(client, lanes[2]!.partition, numbered(1, 1));
  assert.deepEqual(await look(), [2]);
  await third.query("commit");
  assert.deepEqual(await look(), [1]);
  assert.deepEqual(await look(), []);
  await other.query("commit"); // ends last
  assert.deepEqual(await look(), [0]);
  assert.deepEqual(await look(), []);

  await other.query("begin");
  await push(other, lanes[0]!.partition, numbered(1, 2));
  await other.query("rollback");
  assert.deepEqual(await look(), [], "what was rolled back was never there");
});

test("no hint is missed or told twice while many commit at once", async () => {
  const lane = await newLane(client);
  const { queueId } = lane;
  const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
  const lanes = await Promise.all(names.map((name) => openLane(client, lane.queue, name)));
  let { snapshot } = await readHints(client, null, [queueId]);
  const told = new Map<number, number>();
  const look = async (): Promise<void> => {
    const hints = await readHints(client, snapshot, [queueId]);
    snapshot = hints.snapshot;
    for (const row of hints.partitions) told.set(row.partition_id, (told.get(row.partition_id) ?? 0) + 1);
  };
  const writers = await Promise.all(names.map(() => database.client()));
  let writing = true;
  const work = Promise.all(
    writers.map(async (writer, index) => {
      await writer.query("begin");
      await push(writer, lanes[index]!.partition, numbered(1));
      await writer.query("select pg_sleep($1)", [((index * 5) % 8) / 200]);
      await writer.query("commit");
    }),
  ).finally(() => {
    writing = false;
  });
  while (writing) await look();
  await work;
  await look();
  assert.deepEqual(
    lanes.map(({ partition }) => told.get(partition)),
    names.map(() => 1),
  );
});

test("a queue that is made, changed or deleted is told of", async () => {
  let { snapshot } = await readHints(client, null, []);
  const look = async (): Promise<number[]> => {
    const hints = await readHints(client, snapshot, []);
    snapshot = hints.snapshot;
    return hints.queues;
  };
  const { queueId } = await openLane(client, "told-of");
  assert.deepEqual(await look(), [queueId]);
  await client.query(
    "select * from queen.configure_queue('told-of', null, null, '{\"lease_time\": 7}', true)",
  );
  assert.deepEqual(await look(), [queueId]);
  await client.query("delete from queen.queues where id = $1", [queueId]);
  assert.deepEqual(await look(), [queueId]);
});

test("old hints are trimmed", async () => {
  await client.query("update queen.hints set at = at - interval '2 minutes'");
  await newLane(client, 1);
  const [row] = await database.query("select queen.trim_hints() as trimmed");
  assert.ok(row!.trimmed > 0);
  const left = await database.query(
    "select 1 from queen.hints where at < clock_timestamp() - interval '1 minute'",
  );
  assert.deepEqual(left, []);
  assert.notDeepEqual(await database.query("select 1 from queen.hints"), []);
});

// --- lanes

test("sessions that open the same lanes at once agree on them", async () => {
  const sessions = await Promise.all(Array.from({ length: 6 }, () => database.client()));
  for (let round = 0; round < 5; round++) {
    const pairs = Array.from({ length: 30 }, (_, index) => [
      `together-${round}-${index % 3}`,
      `p${index >> 1}`,
    ]);
    const results = await Promise.all(
      sessions.map(async (session, index) => {
        const order = index % 2 === 0 ? pairs : [...pairs].reverse();
        const { rows } = await session.query("select * from queen.open_lanes($1, $2, true) order by lane", [
          order.map(([queue]) => queue),
          order.map(([, partition]) => partition),
        ]);
        const byName = rows.map((row, place) => [order[place]!.join("/"), row.queue_id, row.partition_id]);
        return byName.sort((a, b) => (a[0] < b[0] ? -1 : 1));
      }),
    );
    for (const result of results) {
      assert.deepEqual(result, results[0]);
      assert.ok(result.every(([, queue, partition]) => queue !== null && partition !== null));
    }
  }
});

test("new lanes are made in the order of their names, so that nobody waits in a circle", async () => {
  const { queueId } = await openLane(client, "ordered");
  const blocker = await database.client();
  await blocker.query("begin");
  await blocker.query("insert into queen.partitions (queue_id, name) values ($1, 'a')", [queueId]);
  const pid = await processId(client);
  const opened = client.query("select * from queen.open_lanes($1, $2, true)", [
    ["ordered", "ordered", "ordered"],
    ["c", "b", "a"],
  ]);
  await waitsForLock(database, pid);
  await openLane(other, "ordered", "b"); // the one that waits for a has not made b
  await openLane(other, "ordered", "c");
  await blocker.query("rollback");
  assert.equal(new Set((await opened).rows.map((row) => row.partition_id)).size, 3);
});

test("a lane is made only where asked to", async () => {
  const look = "select queue_id, partition_id from queen.open_lanes($1, $2, false)";
  const missing = await database.query(look, [["nowhere"], ["p"]]);
  assert.deepEqual(missing, [{ queue_id: null, partition_id: null }]);
  assert.deepEqual(await database.query("select 1 from queen.queues where name = 'nowhere'"), []);
  const { queueId } = await openLane(client, "somewhere");
  assert.deepEqual(await database.query(look, [["somewhere"], ["p"]]), [
    { queue_id: queueId, partition_id: null },
  ]);
});

test("a new lane is made with the cursors of the groups that are named, another stays as it was", async () => {
  const { queueId, partition: old } = await openLane(client, "waited-for", "old");
  await openLane(client, "not-waited-for");
  const group = await openGroup(client, "waited-for", "waits");
  const late = await openGroup(client, "waited-for", "late", "new");
  await openGroup(client, "waited-for", "away");
  const foreign = await openGroup(client, "not-waited-for", "waits");
  const open = async (lanes: readonly string[], create: boolean): Promise<Row[]> => {
    const { rows } = await client.query("select * from queen.open_lanes($1, $2, $3, $4) order by lane", [
      lanes.map(() => "waited-for"),
      lanes,
      create,
      [group, late, foreign, 2 ** 31 - 1],
    ]);
    return rows;
  };
  assert.deepEqual(
    (await open(["old", "none"], false)).map((row) => [row.partition_id, row.is_new]),
    [
      [old, false],
      [null, false],
    ],
  );
  const rows = await open(["old", "new", "newer", "new"], true);
  assert.deepEqual(
    rows.map((row) => [row.queue_id, row.is_new]),
    [
      [queueId, false],
      [queueId, true],
      [queueId, true],
      [queueId, true],
    ],
  );
  const cursors = await database.query(
    `select partition_id, group_id, committed from queen.partition_consumers
      where partition_id = any ($1) order by partition_id, group_id`,
    [rows.map((row) => row.partition_id)],
  );
  const expected = [rows[1], rows[2]].flatMap((row) =>
    [group, late].map((id) => ({ partition_id: row!.partition_id, group_id: id, committed: 0 })),
  );
  assert.deepEqual(cursors, expected);
  assert.ok((await open(["new"], true)).every((row) => !row.is_new));
});

test("a group that is being deleted holds up no new lane, and gets no cursor in it", async () => {
  await openLane(client, "leaving-group");
  const [staying, leaving] = [
    await openGroup(client, "leaving-group", "staying"),
    await openGroup(client, "leaving-group", "leaving"),
  ];
  const blocker = await database.client();
  await blocker.query("begin");
  await blocker.query("delete from queen.consumer_groups where id = $1", [leaving]);
  const { rows } = await client.query("select * from queen.open_lanes($1, $2, true, $3)", [
    ["leaving-group"],
    ["new"],
    [staying, leaving],
  ]);
  await blocker.query("commit");
  const cursors = await database.query(
    "select group_id from queen.partition_consumers where partition_id = $1",
    [rows[0]!.partition_id],
  );
  assert.deepEqual(cursors, [{ group_id: staying }]);
});

// --- groups

const tryOpenGroups = async (
  session: pg.Client,
  groups: readonly (readonly [queue: string, group: string, mode?: string, from?: string])[],
): Promise<Row[]> => {
  const { rows } = await session.query(
    "select * from queen.try_open_groups($1, $2, $3, $4) order by opening",
    [
      groups.map(([queue]) => queue),
      groups.map(([, group]) => group),
      groups.map(([, , mode]) => mode ?? "all"),
      groups.map(([, , , from]) => from ?? null),
    ],
  );
  return rows;
};

test("groups are found and recorded together, each with its subscription", async () => {
  const { queueId } = await openLane(client, "read");
  const known = await openGroup(client, "read", "known");
  const from = "2026-01-02T03:04:05Z";
  const rows = await tryOpenGroups(client, [
    ["read", "later"],
    ["nowhere-to-read", "g"],
    ["read", "known", "new"],
    ["made-by-a-reader", "g", "timestamp", from],
  ]);
  assert.deepEqual(
    rows.map((row) => row.opening),
    [0, 1, 2, 3],
  );
  assert.deepEqual([rows[0]!.queue_id, rows[2]!.queue_id, rows[2]!.group_id], [queueId, queueId, known]);
  assert.deepEqual([rows[1]!.queue_id, rows[1]!.group_id], [null, null]);
  const recorded = await database.query(
    `select q.name as queue, g.name, g.subscription_mode as mode, g.subscription_from as from
       from queen.consumer_groups g join queen.queues q on q.id = g.queue_id
      where g.id = any ($1) order by g.id`,
    [[rows[0]!.group_id, known, rows[3]!.group_id]],
  );
  assert.deepEqual(recorded, [
    { queue: "read", name: "known", mode: "all", from: null },
    { queue: "made-by-a-reader", name: "g", mode: "timestamp", from: new Date(from) },
    { queue: "read", name: "later", mode: "all", from: null },
  ]);
});

test("brokers that record the same groups in opposite order do not deadlock", async () => {
  const sessions = await Promise.all(Array.from({ length: 4 }, () => database.client()));
  await Promise.all(["a", "b", "c"].map((name) => openLane(client, `same-${name}`)));
  for (let round = 0; round < 5; round++) {
    const groups = ["a", "b", "c"].flatMap((name) => [
      [`same-${name}`, `g${round}`] as const,
      [`same-${name}`, `h${round}`] as const,
    ]);
    const found = await Promise.all(
      sessions.map(async (session, index) => {
        const order = index % 2 === 0 ? groups : [...groups].reverse();
        const rows = await tryOpenGroups(session, order);
        const ids = new Map(rows.map((row, place) => [order[place], row.group_id]));
        return groups.map((group) => ids.get(group));
      }),
    );
    assert.equal(new Set(found[0]).size, groups.length);
    for (const ids of found) assert.deepEqual(ids, found[0]);
  }
});

test("a broker does not wait for whoever is making a group, or deleting its queue", async () => {
  await Promise.all([
    openLane(client, "busy-made"),
    openLane(client, "busy-deleted"),
    openLane(client, "free"),
  ]);
  const blocker = await database.client();
  await blocker.query("begin");
  await openGroup(blocker, "busy-made", "g");
  await blocker.query("delete from queen.queues where name = 'busy-deleted'");
  for (const queue of ["busy-made", "busy-deleted"])
    await assert.rejects(
      tryOpenGroups(client, [
        ["free", "g"],
        [queue, "g"],
      ]),
      { code: "55P03" },
    );
  assert.deepEqual(
    await database.query(
      "select 1 from queen.consumer_groups g join queen.queues q on q.id = g.queue_id where q.name = 'free'",
    ),
    [],
    "of a call that was refused nothing is left",
  );
  await blocker.query("rollback");
  assert.equal(
    (
      await tryOpenGroups(client, [
        ["busy-made", "g"],
        ["busy-deleted", "g"],
      ])
    ).length,
    2,
  );
});

test("a new queue gets namespace and task from its name", async () => {
  await openLane(client, "billing.invoices.eu");
  assert.deepEqual(
    await database.query("select namespace, task from queen.queues where name = 'billing.invoices.eu'"),
    [{ namespace: "billing", task: "invoices" }],
  );
});

test("configuring a queue and opening its first Default partition at once do not deadlock", async () => {
  const queue = "configured";
  await openLane(client, queue, "other");
  const blocker = await database.client();
  await blocker.query("begin; lock table queen.hints in share mode");
  const [configuring, opening] = [await processId(client), await processId(other)];
  const configured = client.query(
    "select * from queen.configure_queue($1, null, null, '{\"lease_time\": 9}', true)",
    [queue],
  );
  await waitsForLock(database, configuring); // between the queue's row and its partition
  const opened = openLane(other, queue);
  await Promise.race([opened, waitsForLock(database, opening)]);
  await blocker.query("commit");
  const [{ rows }, { partition }] = await Promise.all([configured, opened]);
  assert.equal(rows[0].queue.lease_time, 9);
  assert.equal(rows[0].partition_id, partition);
});

// --- cursors

async function offsetAt(partition: number, at: Date | string): Promise<number> {
  const [row] = await database.query("select queen.offset_at($1, $2) as at", [partition, at]);
  return row!.at;
}

/** A lane of one segment a minute, the first at 12:00, each of two messages. */
async function minuteLane(segments: number): Promise<{ partition: number; queue: string }> {
  const { queue, partition } = await newLane(client);
  await push(client, partition, numbered(segments * 2), 2);
  await client.query(
    `update queen.segments set created_at = timestamptz '2026-01-01 12:00Z' + first_offset / 2 * interval '1 minute'
      where partition_id = $1`,
    [partition],
  );
  return { partition, queue };
}

test("offset_at finds the first message stored at a time or later", async () => {
  const { partition } = await minuteLane(5);
  assert.equal(await offsetAt(partition, "2026-01-01 11:59Z"), 0);
  assert.equal(await offsetAt(partition, "2026-01-01 12:00Z"), 0, "at the very time");
  assert.equal(await offsetAt(partition, "2026-01-01 12:00:00.000001Z"), 2);
  assert.equal(await offsetAt(partition, "2026-01-01 12:01Z"), 2);
  assert.equal(await offsetAt(partition, "2026-01-01 12:03:30Z"), 8);
  assert.equal(await offsetAt(partition, "2026-01-01 12:04Z"), 8);
  assert.equal(
    await offsetAt(partition, "2026-01-01 12:04:00.000001Z"),
    10,
    "after the newest: what comes next",
  );
  assert.equal(await offsetAt(partition, "-infinity"), 0);
  assert.equal(await offsetAt(partition, "infinity"), 10);
});

test("offset_at in a partition without messages, and in what is left of a log", async () => {
  const empty = await newLane(client);
  assert.equal(await offsetAt(empty.partition, "2026-01-01 12:00Z"), 0);

  const { partition } = await minuteLane(5);
  await trim(client, partition, 5); // in the middle of a segment
  assert.equal(await offsetAt(partition, "2026-01-01 11:00Z"), 5);
  assert.equal(await offsetAt(partition, "2026-01-01 12:02Z"), 5);
  assert.equal(await offsetAt(partition, "2026-01-01 12:03Z"), 6);

  await trim(client, partition, 10);
  assert.equal(await offsetAt(partition, "2026-01-01 11:00Z"), 10);
});

test("several segments of the same time count as one moment", async () => {
  const { partition } = await minuteLane(6);
  await client.query(
    `update queen.segments set created_at = '2026-01-01 12:01Z'
      where partition_id = $1 and first_offset between 2 and 8`,
    [partition],
  );
  assert.equal(await offsetAt(partition, "2026-01-01 12:01Z"), 2);
  assert.equal(await offsetAt(partition, "2026-01-01 12:01:01Z"), 10);
});

test("a group starts at the beginning, from now on, or at a time", async () => {
  const { partition, queue } = await minuteLane(5);
  const start = async (name: string, mode: string, from: string | null = null): Promise<number> => {
    const group = await openGroup(client, queue, name, mode, from);
    await openCursor(client, partition, group);
    return (await readCursor(client, { partition, group })).committed;
  };
  assert.equal(await start("all", "all"), 0);
  assert.equal(await start("new", "new"), 10);
  assert.equal(await start("since", "timestamp", "2026-01-01 12:02Z"), 4);
  await trim(client, partition, 4);
  assert.equal(await start("late", "all"), 4, "what is gone is not waited for");
});

test("a subscription is recorded at the group's first pop and keeps its start", async () => {
  const { partition, queue } = await minuteLane(1);
  const group = await openGroup(client, queue, "first", "new");
  await push(client, partition, numbered(1, 2));
  assert.equal(await openGroup(client, queue, "first", "all"), group, "the first pop decides");
  await openCursor(client, partition, group);
  const cursor = { partition, group };
  assert.equal((await readCursor(client, cursor)).committed, 2, "the message after the first pop is new");

  const later = await openLane(client, queue, "later");
  await push(client, later.partition, numbered(2));
  await openCursor(client, later.partition, group);
  assert.equal((await readCursor(client, { partition: later.partition, group })).committed, 0);
});

test("a group that starts now is recorded where the queue does not exist yet", async () => {
  assert.equal(
    await openGroup(client, "not-yet", "readers"),
    null,
    "everything: nothing has to be remembered",
  );
  const group = await openGroup(client, "not-yet", "readers", "new");
  const { partition } = await openLane(client, "not-yet");
  await push(client, partition, numbered(2));
  await openCursor(client, partition, group);
  assert.deepEqual((await takeOne(client, { partition, group })).delivered, ["m0", "m1"]);
});

test("cursors are opened by whoever comes first, and keep their place", async () => {
  const { partition, queue } = await minuteLane(3);
  const group = await openGroup(client, queue, "shared");
  const sessions = await Promise.all(Array.from({ length: 4 }, () => database.client()));
  await Promise.all(sessions.map((session) => openCursor(session, partition, group)));
  await takeOne(client, { partition, group, autoAck: true, budget: 2 });
  await openCursor(client, partition, group);
  assert.equal((await readCursor(client, { partition, group })).committed, 2);

  const stranger = await newLane(client);
  const rows = await database.query("select * from queen.open_cursors($1, $2)", [
    [partition, 999_999_999, partition],
    [stranger.group, group, group],
  ]);
  assert.deepEqual(
    rows.map((row) => row.status),
    [2, 1, 0],
    "a group of another queue, a partition that is not there",
  );
});

// --- deleting

test("deleting a queue by hand removes everything below it and tells the brokers", async () => {
  const [doomed, kept] = [await newLane(client, 4), await newLane(client, 4)];
  for (const lane of [doomed, kept]) {
    const token = newToken();
    await takeOne(client, { ...lane, token });
    await settleLease(client, lane, token, { dead: [0], failed: [1] });
  }
  await client.query("select queen.touch_watermarks($1, $2)", [
    [doomed.queue, kept.queue],
    ["workers", "workers"],
  ]);
  const rest = async ({ queue, queueId, partition }: typeof doomed): Promise<number[]> => {
    const [row] = await database.query(
      `select (select count(*) from queen.partitions where queue_id = $1) as partitions,
              (select count(*) from queen.segments where partition_id = $2) as segments,
              (select count(*) from queen.consumer_groups where queue_id = $1) as groups,
              (select count(*) from queen.partition_consumers where partition_id = $2) as cursors,
              (select count(*) from queen.dead_letters where queue_id = $1) as letters,
              (select count(*) from queen.consumer_watermarks where queue_name = $3) as watermarks`,
      [queueId, partition, queue],
    );
    return Object.values(row!);
  };
  assert.deepEqual(await rest(doomed), [1, 2, 1, 1, 1, 1]);
  const listener = await database.client();
  const heard: string[] = [];
  listener.on("notification", ({ payload }) => heard.push(payload ?? ""));
  await listener.query("listen queen");
  const { snapshot } = await readHints(client, null, []);

  await client.query("delete from queen.queues where name = $1", [doomed.queue]);
  assert.deepEqual(await rest(doomed), [0, 0, 0, 0, 0, 0]);
  assert.deepEqual(await rest(kept), [1, 2, 1, 1, 1, 1]);
  assert.deepEqual((await readHints(client, snapshot, [])).queues, [doomed.queueId]);
  await listener.query("select 1");
  assert.deepEqual(
    heard.map((text) => JSON.parse(text)),
    [{ queues: [doomed.queueId] }],
  );
});

test("deleting one partition by hand leaves the others", async () => {
  const lane = await newLane(client, 2);
  const second = await openLane(client, lane.queue, "second");
  await push(client, second.partition, numbered(2));
  await client.query("delete from queen.partitions where id = $1", [lane.partition]);
  const rows = await database.query(
    "select partition_id, count(*) from queen.messages where partition_id in ($1, $2) group by 1",
    [lane.partition, second.partition],
  );
  assert.deepEqual(rows, [{ partition_id: second.partition, count: 2 }]);
});

test("a queue deleted under an append that is not committed takes the late segments along", async () => {
  const lane = await newLane(client, 1);
  await other.query("begin");
  await push(other, lane.partition, numbered(3, 1));
  const pid = await processId(client);
  const deleted = client.query("delete from queen.queues where name = $1", [lane.queue]);
  await waitsForLock(database, pid);
  await other.query("commit");
  await deleted;
  assert.deepEqual(
    await database.query("select 1 from queen.segments where partition_id = $1", [lane.partition]),
    [],
  );
});

// --- reading messages

const NASTY: readonly Message[] = [
  { transactionId: "plain", data: '{"a":1}' },
  { transactionId: "nul", data: '"\\u0000 and {\\"k\\":\\"\\u0000\\"}"' },
  { transactionId: "surrogate", data: '["\\ud800","\\udc00x","\\ud83d\\ude00"]' },
  { transactionId: "numbers", data: "[12345678901234567890,1e400,-0,1E2,0.10000000000000000000001]" },
  { transactionId: "order", data: '{"b":1,"a":2,"b":3,"":null}' },
  { transactionId: 'quote " backslash \\ ,"data":{"fake":true}', data: '{"real":true}' },
  { transactionId: '","traceId":null,"producerSub":null,"data":1', data: '",\\"data\\":"' },
  { transactionId: "comma,", data: '{"x":",\\"data\\":"}', producerSub: 'sub,","data":{' },
  { transactionId: "ünïcödé 😀 \u2028", data: '"ünïcödé 😀 \u2028"' },
  { transactionId: "spaces", data: ' {  "a" :\t[ 1 , 2 ]\n} ' },
  { transactionId: "traced", data: "null", traceId: "0123abcd-0123-4567-89ab-0123456789ab" },
];

test("the view shows every message exactly", async () => {
  const { partition } = await newLane(client);
  await push(client, partition, NASTY, 4);
  const rows = await database.query(
    `select id, message_offset, transaction_id, trace_id, payload::text as payload, producer_sub
       from queen.messages where partition_id = $1 order by message_offset`,
    [partition],
  );
  assert.deepEqual(
    rows,
    NASTY.map((message, index) => ({
      id: `${partition
        .toString(16)
        .padStart(12, "0")
        .replace(/^(.{8})/, "$1-")}-8001-8000-${index.toString(16).padStart(12, "0")}`,
      message_offset: index,
      transaction_id: message.transactionId,
      trace_id: message.traceId ?? null,
      payload: message.data,
      producer_sub: message.producerSub ?? null,
    })),
  );
});

test("a dead letter keeps the same exactness", async () => {
  const lane = await newLane(client);
  await push(client, lane.partition, NASTY, 4);
  const token = newToken();
  await takeOne(client, { ...lane, token });
  const dead = NASTY.map((_, index) => index);
  const row = await settleLease(client, lane, token, { dead });
  assert.equal(row.released, true);
  const letters = await database.query(
    `select transaction_id, convert_from(fragment, 'UTF8') as fragment from queen.dead_letters
      where partition_id = $1 order by message_offset`,
    [lane.partition],
  );
  assert.deepEqual(
    letters,
    NASTY.map((message) => ({ transaction_id: message.transactionId, fragment: fragmentOf(message) })),
  );
});

test("a message is found by its key, the newest first, from an offset on", async () => {
  const { partition } = await newLane(client);
  const messages = ["a", "b", "a", "c", "a"].map((transactionId) => ({ transactionId }));
  await push(client, partition, messages, 2);
  const [key] = await keysOf(client, ["a"]);
  const rows = await database.query(
    "select search, at_offset, convert_from(fragment, 'UTF8') as fragment from queen.find_messages($1, $2, $3)",
    [
      [partition, partition],
      [key, key],
      [0, 3],
    ],
  );
  assert.deepEqual(
    rows.map((row) => [row.search, row.at_offset]),
    [
      [0, 4],
      [0, 2],
      [0, 0],
      [1, 4],
    ],
  );
  assert.ok(rows.every((row) => JSON.parse(`{${row.fragment}}`).transactionId === "a"));
});

test("read_keys covers the dedup window: by age, at least so many, at most so many", async () => {
  const { partition, queue } = await minuteLane(5);
  const firsts = async (seconds: number, least: number, most: number): Promise<number[]> => {
    await client.query(
      `update queen.queues set dedup_window_seconds = $2, dedup_messages_min = $3, dedup_messages_max = $4
        where name = $1`,
      [queue, seconds, least, most],
    );
    const rows = await database.query("select * from queen.read_keys($1)", [[partition]]);
    assert.ok(rows.every((row) => row.next_offset === 10));
    return rows.map((row) => row.first_offset);
  };
  // A window may reach further back than it must, by less than a segment can hold.
  assert.deepEqual(await firsts(3600, 0, 100_000), [0, 2, 4, 6, 8]);
  const rows = await database.query("select * from queen.read_keys($1)", [[999_999_999]]);
  assert.deepEqual(rows, [{ lane: 0, next_offset: null, first_offset: null, created_at: null, keys: null }]);

  const long = await newLane(client);
  await push(client, long.partition, numbered(12_000), 1000);
  await client.query(
    "update queen.segments set created_at = created_at - interval '2 hours' where partition_id = $1",
    [long.partition],
  );
  const first = async (least: number, most: number): Promise<number> => {
    await client.query(
      "update queen.queues set dedup_messages_min = $2, dedup_messages_max = $3 where name = $1",
      [long.queue, least, most],
    );
    const [row] = await database.query("select min(first_offset) as first from queen.read_keys($1)", [
      [long.partition],
    ]);
    return row!.first;
  };
  assert.ok((await first(1_000, 100_000)) <= 11_000);
  assert.ok((await first(1_000, 100_000)) >= 6_000, "not the whole log");
  assert.equal(await first(12_000, 100_000), 0);
  assert.ok((await first(12_000, 2_000)) >= 5_000, "the most wins over the least");
});

test("a scan finds the lanes with work, page by page, and says where it stopped", async () => {
  const queue = "scanned";
  const lanes = [];
  for (let index = 0; index < 7; index++) lanes.push(await openLane(client, queue, `p${index}`));
  const { queueId } = lanes[0]!;
  const group = await openGroup(client, queue, "workers");
  for (const [index, { partition }] of lanes.entries()) {
    if (index % 2 === 0) await push(client, partition, numbered(1));
  }
  await openCursor(client, lanes[0]!.partition, group);
  await takeOne(client, { partition: lanes[0]!.partition, group });
  const found: number[] = [];
  let after = 0;
  let pages = 0;
  for (let last: number | null = 0; last !== null; pages++) {
    const rows = await database.query("select * from queen.scan_ready($1, $2, $3, 3)", [
      [queueId],
      [group],
      [after],
    ]);
    for (const row of rows) {
      if (row.partition_id !== null)
        found.push(lanes.findIndex((lane) => lane.partition === row.partition_id));
    }
    last = rows.at(-1)!.last;
    after = last ?? after;
  }
  assert.deepEqual(found, [2, 4, 6], "a lane that is leased is left out");
  assert.equal(pages, 3);
});

test("opening lanes and cursors costs a few probes each, also in a table that grew since it was last counted", async () => {
  const opened = 400;
  const open = (from: number): Promise<unknown> =>
    client.query("select * from queen.open_lanes($1::text[], $2::text[], true)", [
      Array.from({ length: opened }, () => "many"),
      Array.from({ length: opened }, (_, index) => `lane-${from + index}`),
    ]);
  const fetched = async (): Promise<number> =>
    (
      await client.query(
        "select idx_tup_fetch::int4 as fetched from pg_stat_xact_user_tables where relid = 'queen.partitions'::regclass",
      )
    ).rows[0].fetched;
  await client.query("alter table queen.partitions set (autovacuum_enabled = false)");
  for (let round = 0; round < 6; round++) await open(round * opened); // plans are cached by then
  await client.query("begin");
  const before = await fetched();
  await open(6 * opened);
  await open(0);
  const probes = (await fetched()) - before;
  const group = await openGroup(client, "many", "readers");
  await client.query(
    `select queen.open_cursors(array_agg(p.id), array_agg($1::int4)) from (
       select p.id from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = 'many' limit $2) p`,
    [group, opened],
  );
  const probesOfCursors = (await fetched()) - before - probes;
  await client.query("rollback");
  await client.query("alter table queen.partitions reset (autovacuum_enabled)");
  assert.ok(probes > 0 && probes <= 6 * opened, `${probes} rows were read to open ${2 * opened} lanes`);
  assert.ok(probesOfCursors <= 6 * opened, `${probesOfCursors} rows were read to open ${opened} cursors`);
});
