/** Minutes of metrics: writing them again changes nothing, totals outlive them, and reading sums them up. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { openLane } from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;

before(async () => {
  database = await createDatabase();
  client = await database.client();
});
after(() => database.drop());
beforeEach(() =>
  client.query(
    "truncate queen.worker_minutes, queen.queue_minutes, queen.metric_totals; delete from queen.queues",
  ),
);

const MINUTE = "2026-11-15T12:00:00Z";

const GAUGES = {
  free_slots: { sum: 20, min: 1, max: 3, last: 2 },
  event_loop_lag_ms: { sum: 5, min: 0, max: 4, last: 1 },
};

const workerRow = (counts: Record<string, unknown> = {}) => ({
  minute: MINUTE,
  push_requests: 0,
  push_messages: 0,
  pop_requests: 0,
  pop_messages: 0,
  pop_empty: 0,
  ack_requests: 0,
  ack_messages: 0,
  ack_success: 0,
  ack_failed: 0,
  transactions: 0,
  dead_lettered: 0,
  database_errors: 0,
  age_ms_sum: 0,
  age_count: 0,
  age_ms_max: 0,
  samples: 10,
  gauges: GAUGES,
  ...counts,
});

const queueRow = (queueId: number, counts: Record<string, unknown> = {}) => {
  const { ack_messages: _, database_errors: __, samples: ___, gauges: ____, ...row } = workerRow();
  return { ...row, queue_id: queueId, parked: 0, ...counts };
};

interface Who {
  readonly run?: string;
  readonly host?: string;
  readonly worker?: number;
  readonly on?: pg.Client;
}

const save = (
  workers: object[],
  queues: object[] = [],
  { run = randomUUID(), host = "h", worker = 0, on = client }: Who = {},
) =>
  on.query("select queen.save_minutes($1, $2, 6632, $3, 1, $4, $5)", [
    run,
    host,
    worker,
    JSON.stringify(workers),
    JSON.stringify(queues),
  ]);

const totals = async (): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await client.query("select * from queen.metric_totals")).rows.map((row) => [row.name, row.value]),
  );

const series = async (minutes: number, from = MINUTE, to = "2026-11-15T13:00:00Z") =>
  (await client.query("select queen.worker_series($1, $2, $3, null, null) as series", [from, to, minutes]))
    .rows[0].series;

test("a minute that is written again replaces what was written, and the totals grow by what is new", async () => {
  const run = randomUUID();
  const { queueId } = await openLane(client, "q");
  await save([workerRow({ push_messages: 5 })], [queueRow(queueId, { push_messages: 5 })], { run });
  for (let times = 0; times < 2; times++) {
    await save(
      [
        workerRow({ push_messages: 7, ack_failed: 1 }),
        workerRow({ minute: "2026-11-15T12:01:00Z", push_messages: 1 }),
      ],
      [queueRow(queueId, { push_messages: 7, parked: 3 })],
      { run },
    );
  }
  await save([workerRow({ push_messages: 100 })], [], { run: randomUUID() }); // host, worker and process are the same
  assert.deepEqual(await totals(), { push_messages: 108, ack_failed: 1 });
  const { rows } = await client.query("select push_messages, parked from queen.queue_minutes");
  assert.deepEqual(rows, [{ push_messages: 7, parked: 3 }]);
  await client.query("delete from queen.worker_minutes");
  assert.deepEqual(await totals(), { push_messages: 108, ack_failed: 1 }, "they outlive the minutes");
});

test("a queue that is gone or being deleted is left out, and nobody waits", async () => {
  const [kept, deleted] = [await openLane(client, "kept"), await openLane(client, "deleted")];
  const other = await database.client();
  await other.query("begin");
  await other.query("delete from queen.queues where name = 'deleted'");
  const rows = [kept.queueId, deleted.queueId, 999_999].map((id) => queueRow(id, { push_messages: 1 }));
  await client.query("set lock_timeout = '1s'");
  await save([workerRow({ push_messages: 3 })], rows);
  await other.query("commit");
  const written = await client.query("select queue_id from queen.queue_minutes");
  assert.deepEqual(written.rows, [{ queue_id: kept.queueId }]);
  await client.query("delete from queen.queues where name = 'kept'");
  assert.deepEqual((await client.query("select 1 from queen.queue_minutes")).rows, []);
});

test("workers that write at the same moment do not hold each other up for good", async () => {
  const others = await Promise.all([0, 1, 2, 3].map(() => database.client()));
  await Promise.all(
    others.map(async (on, worker) => {
      for (let times = 1; times <= 20; times++) {
        const minute = new Date(Date.parse(MINUTE) + times * 60_000).toISOString();
        await save([workerRow({ minute, push_messages: 1, pop_messages: 2, ack_success: 3 })], [], {
          worker,
          on,
        });
      }
    }),
  );
  assert.deepEqual(await totals(), { push_messages: 80, pop_messages: 160, ack_success: 240 });
});

test("series: stretches are cut at round times; counts add up, samples are averaged over workers and time", async () => {
  const counted = { push_messages: 30, age_ms_sum: 300, age_count: 3, age_ms_max: 200 };
  await save([workerRow(counted), workerRow({ minute: "2026-11-15T12:04:00Z", push_messages: 30 })]);
  await save(
    [
      workerRow({
        push_messages: 60,
        gauges: { ...GAUGES, free_slots: { sum: 0, min: 0, max: 0, last: 0 } },
      }),
    ],
    [],
    {
      worker: 1,
    },
  );
  await save([workerRow({ minute: "2026-11-15T12:05:00Z", push_messages: 1 })]);
  const byFive = await series(5);
  assert.deepEqual(
    byFive.map((each: Record<string, unknown>) => [each.timestamp, each.pushMessages, each.pushPerSecond]),
    [
      ["2026-11-15T12:05:00Z", 1, 0],
      ["2026-11-15T12:00:00Z", 120, 0.4],
    ],
  );
  const { avgLagMs, maxLagMs, avgFreeSlots, minFreeSlots, maxEventLoopLagMs } = byFive[1];
  assert.deepEqual(
    [avgLagMs, maxLagMs, avgFreeSlots, minFreeSlots, maxEventLoopLagMs],
    [100, 200, 1.33, 0, 4],
  );
  assert.equal((await series(1, "2026-11-15T12:04:30Z")).length, 2, "from the minute that a range begins in");
  assert.equal(
    (await series(1, MINUTE, "2026-11-15T12:05:00Z")).length,
    2,
    "to before the minute that it ends with",
  );
  assert.deepEqual(await series(1, "2020-01-01", "2020-01-02"), []);
});

test("series are in UTC whatever the time zone of the session", async () => {
  await save([workerRow({ push_messages: 1 })]);
  await client.query("set timezone = 'Asia/Kathmandu'");
  const [day] = await series(1440, "2026-11-15T00:00:00Z");
  await client.query("reset timezone");
  assert.equal(day.timestamp, "2026-11-15T00:00:00Z");
});

test("postgres_stats needs no superuser, and shows the buffer cache only to whom may see it", async (t) => {
  const extensions = await client.query(
    "select 1 from pg_available_extensions where name = 'pg_buffercache'",
  );
  if (extensions.rows.length > 0) await client.query("create extension pg_buffercache");
  else t.diagnostic("this server has no pg_buffercache");
  const own = (await client.query("select queen.postgres_stats() as stats")).rows[0].stats;
  assert.equal(own.bufferUsage.length > 0, extensions.rows.length > 0);
  // Roles belong to the server, which others may be using, too.
  const role = `queen_plain_${process.pid}`;
  await client.query(
    `create role ${role}; grant usage on schema queen to ${role}; grant select on all tables in schema queen to ${role}`,
  );
  await client.query(`set role ${role}`);
  const plain = (await client.query("select queen.postgres_stats() as stats")).rows[0].stats;
  await client.query(`reset role; drop owned by ${role}; drop role ${role}`);
  assert.deepEqual(plain.bufferUsage, []);
  assert.equal(plain.tableSizes.length, own.tableSizes.length);
});

test("recent minutes: the newest whole minute of the last five", async () => {
  const { queueId } = await openLane(client, "q");
  const ago = async (minutes: number): Promise<string> =>
    (
      await client.query("select (date_trunc('minute', now()) - $1 * interval '1 minute')::text as at", [
        minutes,
      ])
    ).rows[0].at;
  const run = randomUUID();
  for (const minutes of [9, 2, 1, 0]) {
    const minute = await ago(minutes);
    await save(
      [workerRow({ minute, push_messages: minutes })],
      [queueRow(queueId, { minute, push_messages: minutes })],
      { run },
    );
  }
  await save([workerRow({ minute: await ago(8) })]);
  const { queues, workers } = (await client.query("select queen.recent_minutes() as r")).rows[0].r;
  const figures = (rows: Record<string, number>[]) => rows.map((row) => row.push_messages);
  assert.deepEqual([figures(queues), figures(workers)], [[1], [1]]);
  assert.ok(queues[0].age >= 60 && queues[0].age < 180);
});
