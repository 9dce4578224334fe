/**
 * No statement of the control plane scans the log: each one that the broker has is run on a log of a million
 * messages, as the broker runs it, with plans made for its values and with generic ones. PostgreSQL counts the
 * scans, so that it does not matter how deep inside a procedure one is.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type Session, type TestDatabase } from "../support/database.ts";
import { openGroup, openLane } from "../support/procedures.ts";
import { fragmentOf, keysOf } from "../support/segments.ts";

type Statement = Parameters<Session["run"]>[0];

const STATEMENTS = new URL("../../../packages/broker/dist/src/postgres/statements/", import.meta.url);
/** What the data plane runs names its lanes; its procedures forbid scans themselves. */
const DATA_PLANE = ["data-plane", "hints", "lanes", "server"];

const PER_SEGMENT = 100;
const LONG_SEGMENTS = 2_000;
const LANES_PER_QUEUE = 250;
const SEGMENTS_PER_LANE = 8;
const QUEUES = ["shop.orders", "shop.mails", "bus.events", "unread"];
const SEGMENTS = LONG_SEGMENTS + QUEUES.length * LANES_PER_QUEUE * SEGMENTS_PER_LANE;

let database: TestDatabase;
let client: pg.Client;
let session: Session;
/** The long lane of the first queue, a short one of the second. */
let long: number;
let short: number;
let queues: number[];
let letter: number;
let key: Buffer;

before(async () => {
  database = await createDatabase();
  client = await database.client();
  session = await database.session();
  const transactionIds = Array.from({ length: PER_SEGMENT }, (_, place) => `t${place}`);
  const fragments = transactionIds.map((transactionId, n) =>
    fragmentOf({ transactionId, data: `{"n":${n}}` }),
  );
  const ends = Buffer.alloc(PER_SEGMENT * 4);
  let end = 0;
  for (const [place, fragment] of fragments.entries()) {
    end += fragment.length;
    ends.writeUInt32BE(end, place * 4);
  }
  const keys = await keysOf(client, transactionIds);
  key = keys[5]!;
  queues = [];
  for (const queue of QUEUES) {
    const { queueId } = await openLane(client, queue);
    queues.push(queueId);
    await client.query(
      `insert into queen.partitions (queue_id, name, next_offset, last_at, created_at)
       select $1, 'lane-' || n, $2, now() - n * interval '1 second', now() - interval '1 day' from generate_series(1, $3) as n`,
      [queueId, SEGMENTS_PER_LANE * PER_SEGMENT, LANES_PER_QUEUE],
    );
  }
  ({ partition: long } = await openLane(client, QUEUES[0]!, "long"));
  ({ partition: short } = await openLane(client, QUEUES[1]!, "lane-7"));
  await client.query(
    "update queen.partitions set next_offset = $2, last_at = now(), created_at = now() - interval '1 day' where id = $1",
    [long, LONG_SEGMENTS * PER_SEGMENT],
  );
  await client.query(
    `insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
     select p.id, n * $1, $1, p.last_at - (p.next_offset / $1 - 1 - n) * interval '1 second', $2, $3, $4
       from queen.partitions p cross join lateral generate_series(0, p.next_offset / $1 - 1) as n`,
    [PER_SEGMENT, Buffer.concat(keys), ends, Buffer.from(fragments.join(""))],
  );
  for (const [queue, group] of [
    ["shop.orders", "__QUEUE_MODE__"],
    ["shop.orders", "audit"],
    ["shop.mails", "__QUEUE_MODE__"],
    ["bus.events", "audit"],
    ["bus.events", "search"],
  ] as const) {
    await openGroup(client, queue, group);
  }
  await client.query(
    `insert into queen.partition_consumers (partition_id, group_id, committed, lease_token, lease_expires_at, lease_until)
     select p.id, g.id, p.next_offset / 2, 1, now() + interval '1 hour', p.next_offset / 2 + 10
       from queen.partitions p join queen.consumer_groups g on g.queue_id = p.queue_id
      where p.id % 2 = 0 or p.id = $1`,
    [long],
  );
  await client.query(
    `insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group, message_offset,
                                     transaction_id, fragment, error_message, retry_count, created_at, failed_at)
     select p.queue_id, p.id, p.name, g.id, g.name, n, 't' || n, $1, 'e', 0, now(), now() - n * interval '1 second'
       from queen.partitions p join queen.consumer_groups g on g.queue_id = p.queue_id and g.name <> 'search'
      cross join generate_series(1, 20) as n`,
    [Buffer.from(fragments[0]!)],
  );
  await client.query(
    `insert into queen.message_traces (partition_id, message_offset, transaction_id, consumer_group, event_type, data, worker_id)
     select p.id, n, 't' || n, 'g', 'info', '{}', '0' from queen.partitions p cross join generate_series(1, 20) as n`,
  );
  await client.query(
    `insert into queen.message_trace_names (trace_name, trace_id)
     select 'name-' || id % 500, id from queen.message_traces union select 'all', id from queen.message_traces`,
  );
  await client.query("analyze");
  const { rows } = await client.query(
    `select (select count(*)::int4 from queen.segments) as segments, (select sum(count)::int4 from queen.segments) as messages,
            (select id from queen.dead_letters where partition_id = $1 limit 1) as letter`,
    [short],
  );
  assert.deepEqual([rows[0].segments, rows[0].messages], [SEGMENTS, 1_000_000]);
  letter = rows[0].letter;
});
after(() => database.drop());

/** By the name of the statement, values with which it is run. */
const runs = (): Record<string, readonly (readonly unknown[])[]> => {
  const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const [orders, mails, events] = queues;
  const lists = [
    { queue: orders },
    { queue: orders, partition: long },
    { queue: mails, partition: short, offset: 300 },
    { queue: orders, partition: long, offset: 150_000 },
    { namespace: "shop" },
    { task: "orders" },
    {},
    { queue: orders, from: anHourAgo, to: anHourAgo },
    { queue: orders, partition: long, from: anHourAgo },
    ...["pending", "processing", "completed", "dead_letter"].flatMap((status) => [
      { queue: orders, partition: long, status },
      { queue: events, status },
    ]),
    { queue: orders, before: [800_000_000_000_000, long, 1_000] },
  ].map((filter: Record<string, unknown>) => [
    filter.queue ?? null,
    filter.partition ?? null,
    filter.namespace ?? null,
    filter.task ?? null,
    filter.status ?? null,
    filter.from ?? null,
    filter.to ?? null,
    ...((filter.before as unknown[]) ?? [null, null, null]),
    200,
    filter.offset ?? 0,
  ]);
  const letters = [
    [null, null, null, null, null, null],
    ["shop.orders", null, null, null, null, null],
    ["shop.orders", "audit", null, null, null, null],
    ["shop.orders", null, "lane-3", null, null, null],
    ["shop.orders", null, null, "e", null, null],
    [null, null, null, null, anHourAgo, anHourAgo],
  ];
  return {
    queen_list_groups: [[null], ["shop.orders"]],
    queen_list_lagging_lanes: [
      [0, 100],
      [3_600, 100],
    ],
    queen_list_group_lanes: [
      ["audit", null, 100, 0],
      ["audit", "bus.events", 100, 100],
    ],
    queen_lag_series: [["-infinity", "infinity", 1, "shop.orders", "audit"]],
    queen_read_clock: [[]],
    queen_save_minutes: [["00000000-0000-0000-0000-000000000001", "host", 1, 0, 1, "[]", "[]"]],
    queen_worker_series: [["-infinity", "infinity", 1, null, null]],
    queen_worker_list: [["-infinity", "infinity", null, null]],
    queen_queue_series: [["-infinity", "infinity", 1, null, null, null]],
    queen_parked_series: [["-infinity", "infinity", 1, null]],
    queen_system_series: [["-infinity", "infinity", 1, null, null]],
    queen_lease_counts: [
      [null, null, null],
      ["shop.orders", null, null],
    ],
    queen_dead_letter_counts: [[null, null, null]],
    queen_metric_totals: [[]],
    queen_recent_minutes: [[]],
    queen_read_throughput: [[]],
    queen_metrics_age: [[]],
    queen_postgres_stats: [[]],
    queen_read_api_key: [[1]],
    queen_make_api_key: [["name", Buffer.alloc(32), "produce", null, "somebody", null]],
    queen_list_api_keys: [[]],
    queen_revoke_api_key: [[1]],
    queen_read_user: [["somebody"]],
    queen_read_user_session: [[1]],
    queen_start_user_session: [[1, "a hash", Buffer.alloc(32), 60]],
    queen_end_user_session: [[1, Buffer.alloc(32)]],
    queen_add_user: [["name", "a hash", "produce", null, "somebody", null]],
    queen_list_users: [[]],
    queen_remove_user: [["somebody"]],
    queen_change_password: [["somebody", "a hash"]],
    queen_write_audit: [["[]"]],
    queen_list_audit: [[null, 10]],
    queen_doctor_facts: [[60]],
    queen_retention_series: [["-infinity", "infinity", 1, null]],
    queen_list_sweeps: [[]],
    queen_queue_depths: [[queues]],
    queen_sweep: ["leases", "eviction", "retention", "partitions", "metrics", "lag"].map((name) => [
      name,
      "a worker",
      0,
      1_000,
      86_400,
    ]),
    queen_explain_lane: [["shop.orders", "Default", "__QUEUE_MODE__"]],
    queen_read_maintenance: [["maintenance_mode", "pop_maintenance_mode"]],
    queen_set_maintenance: [["maintenance_mode", false]],
    queen_pause: [["unread", "lane-1", null, "a test", "somebody"]],
    queen_list_pauses: [["unread"]],
    queen_resume: [["unread", "lane-1", null]],
    queen_seek: [
      ["shop.orders", "audit", null, null],
      ["shop.orders", "audit", null, anHourAgo],
      ["shop.orders", "audit", "long", anHourAgo],
    ],
    queen_preview_seek: [
      ["shop.orders", "audit", null, null],
      ["shop.orders", "audit", null, anHourAgo],
      ["shop.orders", "audit", "long", anHourAgo],
    ],
    queen_set_subscription: [["audit", anHourAgo]],
    queen_delete_group: [
      ["audit", null, true],
      ["audit", "bus.events", false],
    ],

    queen_list_messages: lists,
    queen_find_place: [["shop.orders", "long"]],
    queen_readers_of: [
      [null, null, null],
      [orders, null, null],
      [null, "shop", "orders"],
    ],
    queen_find_in_lane: [
      [long, key, 190_000, 200_000],
      [short, key, 0, 800],
    ],
    queen_find_letter_offset: [[short, "t3"]],
    queen_count_stored: [
      [null, null],
      [queues[0], short],
    ],
    queen_search_messages: [
      [null, null, "t3", key, 1, 0, 0, null, 10, 100],
      [queues[0], null, "t3", key, 2, 0, 0, null, 10, 100],
      [queues[0], short, "t3", key, 3, queues[0], short, 500, 10, 100],
    ],
    queen_read_message: [
      [long, 123_456],
      [short, 1],
    ],
    queen_delete_message: [[long, 123_456]],
    queen_retry_message: [
      [long, 5, "audit"],
      [long, 150_000, "audit"],
    ],
    queen_bury_message: [[long, 150_000, "audit", "e"]],

    queen_list_dead_letters: letters.map((filter) => [...filter, null, null, 100, 50, 1_000_000]),
    queen_count_dead_letters: letters,
    queen_match_dead_letters: letters.map((filter) => [...filter, 100]),
    queen_letters_of_messages: [
      [[short], [3], ""],
      [[long], [4], "audit"],
    ],
    queen_list_dead_letter_errors: [
      [null, null, 100],
      ["shop.orders", "audit", 100],
    ],
    queen_requeue: [[[letter]]],
    queen_purge_dead_letters: [[[letter]]],

    queen_configure_queue: [["shop.orders", null, null, "{}", true]],
    queen_delete_queue: [["unread"]],
    queen_find_queue: [["shop.orders"]],
    queen_clear_lanes: [
      [mails, short, 0, null, 100_000],
      [orders, long, 0, null, 100_000],
      [events, null, 0, null, 100_000],
    ],

    queen_show_lane: [
      ["shop.orders", "long"],
      ["bus.events", "lane-7"],
    ],
    queen_queue_figures: [[null], [orders]],
    queen_list_lanes: [
      ...["name", "depth", "age", "trouble"].flatMap((sort) => [
        [orders, null, sort, 100, 0],
        [null, "lane-1", sort, 100, 50],
      ]),
    ],

    queen_find_leased: [[long, "audit", key]],
    queen_add_trace: [[long, 7, "t7", "g", "info", "{}", "0", ["a", "b"]]],
    queen_list_traces: [[long, "t7", 100, 0]],
    queen_list_named_traces: [
      ["all", 100, 0],
      ["name-3", 100, 10],
    ],
    queen_list_trace_names: [
      [50, 0],
      [50, 100],
    ],
  };
};

const controlPlane = (): Promise<Map<string, Statement>> =>
  statementsIn((file) => !DATA_PLANE.includes(file));

async function statementsIn(isMeant: (file: string) => boolean): Promise<Map<string, Statement>> {
  const statements = new Map<string, Statement>();
  for (const file of readdirSync(STATEMENTS)) {
    if (!file.endsWith(".js") || !isMeant(file.slice(0, -".js".length))) continue;
    const module = (await import(new URL(file, STATEMENTS).href)) as Record<string, Partial<Statement>>;
    for (const each of Object.values(module)) {
      if (typeof each?.text === "string") statements.set(each.name!, each as Statement);
    }
  }
  return statements;
}

const LOG_FIGURES = {
  name: "log_figures",
  text: `select seq_scan, seq_tup_read, coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables
          where schemaname = 'queen' and relname = 'segments'`,
  parameters: [],
  // biome-ignore lint/suspicious/noExplicitAny: the broker's row reader
  read: (row: any) => ({ scans: row.int8(0) as number, fetched: row.int8(2) as number }),
};

/** Runs a statement in a transaction that is rolled back; returns what it did to the log. */
async function measure(statement: Statement, values: readonly unknown[]) {
  await session.simple("begin");
  try {
    const [before] = await session.run(LOG_FIGURES, []);
    await session.run(statement, values);
    const [after] = await session.run(LOG_FIGURES, []);
    return { scans: after!.scans - before!.scans, fetched: after!.fetched - before!.fetched };
  } finally {
    await session.simple("rollback");
  }
}

test("a statement that scans the log is caught", async () => {
  const scanning = {
    name: "scanning",
    text: "select count(*) from queen.segments where count > 0",
    parameters: [],
    read: () => null,
  };
  assert.deepEqual(await measure(scanning, []), { scans: 1, fetched: 0 });
});

test("every statement of the control plane is run here", async () => {
  const known = new Set(Object.keys(runs()));
  const missing = [...(await controlPlane()).keys()].filter((name) => !known.has(name));
  assert.deepEqual(
    missing,
    [],
    "give each of them values above, or put its file among those of the data plane",
  );
});

for (const plans of ["auto", "force_generic_plan"]) {
  test(`no statement of the control plane scans the log (plan_cache_mode ${plans})`, async () => {
    await session.simple(`set plan_cache_mode = ${plans}`);
    const statements = await controlPlane();
    for (const [name, values] of Object.entries(runs())) {
      for (const each of values) {
        const { scans, fetched } = await measure(statements.get(name)!, each);
        const what = `${name}(${JSON.stringify(each)})`;
        assert.equal(scans, 0, `${what} scans the log`);
        // Deleting a queue and clearing remove what they touch; the others may probe lanes, not walk them.
        assert.ok(fetched <= SEGMENTS * 0.4, `${what} reads ${fetched} of ${SEGMENTS} segments`);
      }
    }
  });
}

test("the keys of a long lane are found by a few probes, not by a look at each of its segments", async () => {
  const readKeys = {
    name: "read_keys",
    text: "select lane, keys from queen.read_keys($1::int8[])",
    parameters: ["int8[]"],
    read: () => null,
  } as unknown as Statement;
  await client.query(
    "update queen.queues set dedup_window_seconds = 60, dedup_messages_min = 0 where id = $1",
    [queues[0]],
  );
  for (const plans of ["auto", "force_generic_plan"]) {
    await session.simple(`set plan_cache_mode = ${plans}`);
    const { scans, fetched } = await measure(readKeys, [[long]]);
    assert.equal(scans, 0);
    // 60 segments are in the window, 41 more may reach into it; halving 2,000 takes a dozen probes.
    assert.ok(fetched >= 60 && fetched < 130, `${fetched} of ${LONG_SEGMENTS} segments were read`);
  }
});

test("a procedure of the data plane that is called for many lanes forbids scans itself", async () => {
  const texts = [...(await statementsIn((file) => DATA_PLANE.includes(file))).values()].map(
    ({ text }) => text,
  );
  const called = new Set(
    texts.flatMap((text) => [...text.matchAll(/queen\.(\w+)\(/g)].map(([, name]) => name!)),
  );
  assert.ok(called.has("append") && called.has("take"));
  called.delete("touch_watermarks"); // reads nothing but what it writes
  // These call another for each, or for all.
  for (const [name, work] of [
    ["try_open_cursors", "open_cursors"],
    ["try_open_groups", "open_group"],
  ] as const) {
    assert.ok(called.delete(name), name);
    called.add(work);
  }
  const { rows } = await client.query(
    `select p.proname from pg_proc p
      where p.pronamespace = 'queen'::regnamespace and p.proname = any ($1)
        and (p.proname = 'open_group'
             or exists (select 1 from unnest(p.proargtypes) as t (oid) join pg_type y on y.oid = t.oid where y.typcategory = 'A'))
        and 'enable_seqscan=off' <> all (p.proconfig)`,
    [[...called]],
  );
  assert.deepEqual(rows, []);
});
