/** Listings and figures of a large queue: what they read of the log is bounded, and never a scan of it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { openCursor, openGroup, openLane } from "../support/procedures.ts";
import { fragmentOf } from "../support/segments.ts";

const PER_SEGMENT = 100;
const SEGMENTS = 10_000;
const SMALL_LANES = 2_000;

let database: TestDatabase;
let client: pg.Client;
let queueId: number;
let large: number;

before(async () => {
  database = await createDatabase();
  client = await database.client();
  ({ queueId, partition: large } = await openLane(client, "large", "large"));
  // A million messages in one partition, a segment a second, the last one now; they are all alike.
  const fragment = Buffer.from(fragmentOf({ transactionId: "same", data: '{"n":1}' }));
  const ends = Buffer.alloc(PER_SEGMENT * 4);
  for (let place = 0; place < PER_SEGMENT; place++)
    ends.writeUInt32BE(fragment.length * (place + 1), place * 4);
  const body = Buffer.concat(Array(PER_SEGMENT).fill(fragment));
  const keys = Buffer.alloc(PER_SEGMENT * 8, 7);
  const insert = `insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)`;
  await client.query(
    `${insert} select $1, n * $2, $2, now() - ($3 - n) * interval '1 second', $4, $5, $6 from generate_series(0, $3 - 1) as n`,
    [large, PER_SEGMENT, SEGMENTS, keys, ends, body],
  );
  await client.query(
    `update queen.partitions set next_offset = $2, last_at = now() - interval '1 second', created_at = now() - interval '1 day'
      where id = $1`,
    [large, PER_SEGMENT * SEGMENTS],
  );
  await client.query(
    `insert into queen.partitions (queue_id, name, next_offset, last_at, created_at)
     select $1, 'p' || n, $2, now() - n * interval '1 second', now() - interval '1 day' from generate_series(1, $3) as n`,
    [queueId, PER_SEGMENT, SMALL_LANES],
  );
  await client.query(
    `${insert} select p.id, 0, $2, p.last_at, $3, $4, $5 from queen.partitions p where p.queue_id = $1 and p.id <> $6`,
    [queueId, PER_SEGMENT, keys, ends, body, large],
  );
  await openCursor(client, large, await openGroup(client, "large", "__QUEUE_MODE__"));
  await openCursor(client, large, await openGroup(client, "large", "audit"));
  await client.query(
    "update queen.partition_consumers set committed = 500000, acked = '{[700000,700050)}' where partition_id = $1",
    [large],
  );
  await client.query("analyze");
});
after(() => database.drop());

interface Read {
  readonly rows: readonly Record<string, unknown>[];
  /** Rows of the log that the statement touched. */
  readonly segments: number;
}

/** What this connection has read of the log; counted on until the server takes it over. */
async function figures(): Promise<{ scans: number; fetched: number }> {
  const { rows } = await client.query(
    `select seq_scan, coalesce(idx_tup_fetch, 0) as fetched from pg_stat_xact_user_tables
      where schemaname = 'queen' and relname = 'segments'`,
  );
  return { scans: Number(rows[0].seq_scan), fetched: Number(rows[0].fetched) };
}

/** Runs a statement in a transaction of its own, and sees to it that the log was only probed. */
async function reading(text: string, values: readonly unknown[]): Promise<Read> {
  await client.query("begin");
  try {
    const before = await figures();
    const { rows } = await client.query(text, [...values]);
    const after = await figures();
    assert.equal(after.scans - before.scans, 0, "the log is scanned");
    return { rows, segments: after.fetched - before.fetched };
  } finally {
    await client.query("rollback");
  }
}

interface Page {
  readonly partition?: number;
  readonly queue?: number;
  readonly status?: string;
  readonly from?: string;
  readonly to?: string;
  readonly before?: readonly [string, number, number];
  readonly limit?: number;
  readonly offset?: number;
}

const list = ({
  partition,
  queue,
  status,
  from,
  to,
  before: end,
  limit = 200,
  offset = 0,
}: Page): Promise<Read> =>
  reading(
    "select *, created_at::text as created_us from queen.list_messages($1, $2, null, null, $3, $4, $5, $6, $7, $8, $9, $10)",
    [
      queue ?? null,
      partition ?? null,
      status ?? null,
      from ?? "-infinity",
      to ?? "infinity",
      end?.[0] ?? null,
      end?.[1] ?? null,
      end?.[2] ?? null,
      limit,
      offset,
    ],
  );

const offsets = ({ rows }: Read): number[] =>
  rows.filter((row) => row.header !== null).map((row) => row.at_offset as number);

const NEXT = PER_SEGMENT * SEGMENTS;

test("a page of a partition with a million messages reads a few segments, however deep it is", async () => {
  for (const offset of [0, 150, 10_000, 500_000, 999_900]) {
    const page = await list({ partition: large, offset });
    const expected = Array.from(
      { length: Math.min(200, NEXT - offset) },
      (_, index) => NEXT - 1 - offset - index,
    );
    assert.deepEqual(offsets(page), expected);
    assert.ok(page.segments < 40, `${page.segments} segments at ${offset}`);
  }
});

test("a page by time halves its way to it", async () => {
  const page = await list({
    partition: large,
    from: new Date(Date.now() - 6_000_000).toISOString(),
    to: new Date(Date.now() - 5_000_000).toISOString(),
  });
  assert.equal(offsets(page).length, 200);
  assert.ok(page.segments < 120, `${page.segments} segments`);
});

test("a page by status goes where the cursors say", async () => {
  for (const [status, first, count] of [
    ["completed", 700_049, 200],
    ["pending", NEXT - 1, 200],
    ["processing", undefined, 0],
    ["dead_letter", undefined, 0],
  ] as const) {
    const page = await list({ partition: large, status });
    assert.deepEqual([offsets(page)[0], offsets(page).length], [first, count], status);
    assert.ok(page.segments < 60, `${status}: ${page.segments} segments`);
  }
  const completed = offsets(await list({ partition: large, status: "completed", offset: 50 }));
  assert.equal(completed[0], 499_999);
});

test("a page of a queue with thousands of partitions probes the newest of them", async () => {
  const first = await list({ queue: queueId });
  assert.equal(offsets(first).length, 200);
  assert.ok(first.segments < 40, `${first.segments} segments`);
  const end = first.rows.at(-1)!;
  assert.equal(end.header, null, "more may follow");
  const second = await list({
    queue: queueId,
    before: [end.created_us as string, end.partition_id as number, end.at_offset as number],
  });
  assert.equal(offsets(second).length, 200);
  assert.ok(second.segments < 5_000, `${second.segments} segments`);
  const deep = await list({ queue: queueId, offset: 10_000 });
  assert.equal(offsets(deep).length, 200);
  assert.ok(deep.segments < 1_000, `${deep.segments} segments`);
});

test("pages go on through more partitions than are merged at a time, and show each message once", async () => {
  const { queueId: wide } = await openLane(client, "wide");
  const fragments = ["a", "b"].map((transactionId) => fragmentOf({ transactionId }));
  await client.query(
    `insert into queen.partitions (queue_id, name, next_offset, last_at, created_at)
     select $1, 'w' || n, 2, now() - n / 3 * interval '1 second', now() - interval '1 day' from generate_series(1, 2500) as n`,
    [wide],
  );
  await client.query(
    `insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
     select p.id, 0, 2, p.last_at, $2, $3, $4 from queen.partitions p where p.queue_id = $1 and p.last_at is not null`,
    [
      wide,
      Buffer.alloc(16, 7),
      Buffer.from([0, 0, 0, fragments[0]!.length, 0, 0, 0, fragments.join("").length]),
      Buffer.from(fragments.join("")),
    ],
  );
  for (const status of [undefined, "pending"]) {
    const seen = new Set<string>();
    let pages = 0;
    for (let end: Page["before"]; ; pages++) {
      const page = await list({
        queue: wide,
        limit: 1_000,
        ...(status ? { status } : {}),
        ...(end ? { before: end } : {}),
      });
      for (const row of page.rows) {
        if (row.header === null) continue;
        const id = `${row.partition_id}/${row.at_offset}`;
        assert.ok(!seen.has(id), `${id} comes twice`);
        seen.add(id);
      }
      const last = page.rows.at(-1);
      if (last?.header !== null) break;
      end = [last.created_us as string, last.partition_id as number, last.at_offset as number];
    }
    assert.equal(seen.size, 5_000);
    assert.ok(pages < 12);
  }
});

test("groups' figures come from offsets, with one probe per lane that lags", async () => {
  const groups = await reading("select * from queen.list_groups($1)", ["large"]);
  const figures = groups.rows.map((row) => [row.name, row.members, row.lagging, row.pending]);
  const pending = 499_950 + SMALL_LANES * PER_SEGMENT;
  assert.deepEqual(figures, [
    ["__QUEUE_MODE__", 1, SMALL_LANES + 1, pending],
    ["audit", 1, SMALL_LANES + 1, pending],
  ]);
  assert.ok(groups.segments <= 2 * (SMALL_LANES + 1), `${groups.segments} segments`);

  const lanes = await reading("select * from queen.list_group_lanes('audit', null, 100, 0)", []);
  assert.equal(lanes.rows.length, 100);
  assert.deepEqual([lanes.rows[0]!.pending, lanes.rows[0]!.finished], [499_950, 500_050]);
  assert.ok(lanes.segments <= 100, `${lanes.segments} segments`);

  const lagging = await reading("select * from queen.list_lagging_lanes(4000, 10)", []);
  assert.deepEqual(
    lagging.rows.map((row) => row.partition_name),
    ["large", "large"],
  );
  assert.ok(lagging.segments <= 2 * (SMALL_LANES + 1), `${lagging.segments} segments`);
});

test("a message is read, and found by its key, without touching other bodies", async () => {
  const one = await reading("select * from queen.read_message($1, $2)", [large, 123_456]);
  assert.equal(one.rows.length, 1);
  assert.ok(one.segments <= 2, `${one.segments} segments`);
  const found = await reading("select * from queen.find_in_lane($1, $2, $3, $4)", [
    large,
    Buffer.alloc(8, 9),
    NEXT - 50_000,
    NEXT,
  ]);
  assert.deepEqual([found.rows.length, found.segments <= 502], [0, true]);
});

test("a seek of a queue halves its way in each lane", async () => {
  const sought = await reading(
    "select * from queen.seek('large', 'audit', null, now() - interval '5000 seconds')",
    [],
  );
  assert.equal(sought.rows[0]!.lanes, 1);
  assert.ok(sought.segments < 40, `${sought.segments} segments`);
});

test("dead letters are found by index, whatever the filter is", async () => {
  await client.query("begin");
  try {
    await client.query(
      `insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                       transaction_id, fragment, error_message, retry_count, created_at, failed_at)
       select $1, $2, 'p' || n % 50, 1, 'g' || n % 10, n, 't' || n, '', 'e', 0, now(), now() - n * interval '1 second'
         from generate_series(1, 20000) as n`,
      [queueId, large],
    );
    await client.query("analyze queen.dead_letters");
    const read = async (): Promise<number> => {
      const { rows } = await client.query(
        `select seq_tup_read + coalesce(idx_tup_fetch, 0) as touched from pg_stat_xact_user_tables
          where schemaname = 'queen' and relname = 'dead_letters'`,
      );
      return Number(rows[0].touched);
    };
    for (const [queue, group, partition, from] of [
      [null, null, null, null],
      ["large", null, null, null],
      ["large", "g3", null, null],
      ["large", null, "p7", null],
      ["large", null, null, "1 hour"],
    ]) {
      const before = await read();
      const { rows } = await client.query(
        `select * from queen.dead_letters_matching($1, $2, $3, null, now() - $4::interval, null, null, null, 50, 100)`,
        [queue, group, partition, from],
      );
      assert.equal(rows.length, 50);
      const touched = (await read()) - before;
      assert.ok(touched <= 200, `${touched} rows for ${[queue, group, partition, from]}`);
    }
  } finally {
    await client.query("rollback");
  }
});

test("counts of queues come from offsets: the log is not read at all", async () => {
  const { rows, segments } = await reading(
    "select f.* from queen.queues q cross join lateral queen.queue_figures(q.id) f where q.name = 'large'",
    [],
  );
  const total = PER_SEGMENT * (SEGMENTS + SMALL_LANES);
  assert.equal(segments, 0);
  assert.deepEqual(
    rows.map(({ name, partitions, total, pending, processing }) => [
      name,
      partitions,
      total,
      Number(pending) + Number(processing),
    ]),
    [["large", SMALL_LANES + 1, total, total - 500_000 - 50]],
  );
});
