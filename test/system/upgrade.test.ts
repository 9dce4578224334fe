/** A rolling upgrade with real brokers: one goes on while the schema of a newer release comes, and starts on it, too. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { migrate, type Release, release } from "@queen/schema";
import { startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { Load } from "../support/load.ts";
import { until } from "../support/moments.ts";

const SEED = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const PROGRESS = 100;

/** A release to come: it adds to tables, replaces every procedure, and has new ones. */
function next(more: Partial<Release> = {}): Release {
  const present = release();
  return {
    ...present,
    version: "99.0.0",
    migrations: [
      ...present.migrations,
      {
        name: "migrations/9999_next.sql",
        text: `alter table queen.partitions add column next_color text;
               alter table queen.partition_consumers add column next_count int8 not null default 0;
               create table queen.next_things (id int8 primary key)`,
      },
    ],
    procedures: [
      ...present.procedures.map(({ name, text }) => ({ name, text: `-- The next release's.\n${text}` })),
      {
        name: "procedures/next_thing.sql",
        text: "create or replace function queen.next_thing() returns int4 language sql return 1;",
      },
    ],
    ...more,
  };
}

async function newDatabase(t: TestContext): Promise<TestDatabase> {
  const database = await createDatabase();
  t.after(() => database.drop());
  return database;
}

const shaOf = async (database: TestDatabase): Promise<unknown> =>
  (await database.query("select sha256 from queen.applied where name = 'procedures/take.sql'"))[0]!.sha256;

test("a broker works through the migration to a newer release, and one of its version starts beside it", async (t) => {
  const database = await newDatabase(t);
  const old = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const urls = [old.url];
  const load = new Load({
    database,
    urls: () => urls,
    queue: "load",
    partitions: 6,
    groups: ["a", "b"],
    producers: 4,
    itemsPerPush: 10,
    consumersPerGroup: 3,
    leaseSeconds: 60,
    seed: SEED,
  });
  await load.start();
  await load.progress(PROGRESS);

  const client = await database.client();
  const { files } = await migrate(client, next());
  assert.ok(files.includes("migrations/9999_next.sql") && files.includes("procedures/take.sql"));
  const sha = await shaOf(database);
  await load.progress(PROGRESS);

  const late = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  urls[0] = late.url; // who looks for another broker finds this one
  assert.match(late.output(), /"database\.newer-schema"/);
  assert.equal(await shaOf(database), sha, "the older broker left the newer procedures in place");
  assert.equal(await old.stop(), 0);
  await load.progress(PROGRESS);

  assert.deepEqual(await load.finish(), [], `seed ${SEED}`);
  assert.deepEqual(load.surprises, [], `seed ${SEED}`);
  for (const { output } of [old, late]) assert.doesNotMatch(output(), /uncaught|http\.failed/);
  await late.stop();
});

test("a broker that a newer schema leaves behind does not start, and says which one would", async (t) => {
  const database = await newDatabase(t);
  await migrate(await database.client(), next({ oldestBroker: "98.0.0" }));
  await assert.rejects(
    startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } }),
    (error: Error) => {
      assert.match(error.message, /ended with code 1/);
      assert.match(error.message, /Start a broker of version 98\.0\.0 or later/);
      return true;
    },
  );
});

test("a migration that has to wait for a transaction gives way to others until that is over", async (t) => {
  const database = await newDatabase(t);
  const old = await startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  const client = new HttpClient(old.url);
  await client.configure("held", {});
  // Its triggers are made anew, which nobody may write to the table meanwhile.
  await database.query("update queen.applied set sha256 = '' where name = 'procedures/queues_changed.sql'");
  const holder = await database.client();
  await holder.query("begin; update queen.queues set priority = 1 where name = 'held'");
  const starting = startBrokerProcess({ databaseUrl: database.url, env: { NUM_WORKERS: "1" } });
  await until("the migration waits", async () => {
    const rows = await database.query(
      "select 1 from pg_stat_activity where application_name = 'queen migrate' and wait_event_type = 'Lock'",
    );
    return rows.length > 0;
  });
  await client.configure("other", {}); // behind the migration, until that gives up
  await holder.query("commit");
  const late = await starting;
  assert.match(late.output(), /end it, or wait until it is over/);
  client.close();
  assert.equal(await old.stop(), 0);
  assert.equal(await late.stop(), 0);
});
