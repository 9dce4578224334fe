/** Several releases on one database: the newest decides about the schema, older brokers work with it. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { compareVersions, migrate, migrations, procedures, type Release, release } from "@queen/schema";
import { takenAway } from "../support/compatibility.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";

const SCHEMA = new URL("../../../packages/schema/", import.meta.url);
const RELEASED = new URL("released/", SCHEMA);
const PRESENT = readFileSync(new URL("snapshot.txt", SCHEMA), "utf8");

async function emptyDatabase(t: TestContext): Promise<TestDatabase> {
  const database = await createDatabase({ empty: true });
  t.after(() => database.drop());
  return database;
}

const ANSWER = { name: "procedures/answer.sql", text: "" };
const answering = (answer: number) => ({
  ...ANSWER,
  text: `create or replace function queen.answer() returns int4 language sql return ${answer};`,
});
const of = (version: string, answer: number, more: Partial<Release> = {}): Release => ({
  ...release(),
  version,
  procedures: [...procedures(), answering(answer)],
  ...more,
});
const answerOf = async (database: TestDatabase) => (await database.query("select queen.answer()"))[0]!.answer;
const versionOf = async (database: TestDatabase) =>
  (await database.query("select version, oldest_broker from queen.schema_version"))[0];

test("a newer release replaces procedures; an older one that starts later leaves them as they are", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  await migrate(client, of("1.9.0", 19));
  assert.deepEqual(await migrate(client, of("1.10.0", 110)), { files: [ANSWER.name], version: "1.10.0" });
  assert.deepEqual(await migrate(client, of("1.9.0", 19)), { files: [], version: "1.10.0" });
  assert.equal(await answerOf(database), 110);
  assert.deepEqual(await versionOf(database), { version: "1.10.0", oldest_broker: "0.1.0" });
});

test("an older release applies no migration of its own to a newer schema, and does not mind unknown ones", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  const added = {
    name: "migrations/9999_more.sql",
    text: "alter table queen.partitions add column color text",
  };
  await migrate(client, of("2.0.0", 2, { migrations: [...migrations(), added] }));
  const own = { name: "migrations/9998_own.sql", text: "create table queen.own ()" };
  await migrate(client, of("1.0.0", 1, { migrations: [...migrations(), own] }));
  const [row] = await database.query("select to_regclass('queen.own') is null as absent");
  assert.equal(row!.absent, true);
});

test("a release that a newer schema leaves behind is refused, with what to do, and changes nothing", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  await migrate(client, of("3.0.0", 3, { oldestBroker: "2.5.0" }));
  await assert.rejects(migrate(client, of("2.4.9", 2)), (error: Error) => {
    assert.match(error.message, /schema of Queen 3\.0\.0, for brokers from 2\.5\.0 on; this one is 2\.4\.9/);
    assert.match(error.message, /Start a broker of version 2\.5\.0 or later/);
    return true;
  });
  assert.equal(await answerOf(database), 3);
  assert.equal((await migrate(client, of("2.5.0", 2))).version, "3.0.0", "the connection is usable");
});

test("a schema from before versions were noted is brought up to date and gets one", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  const before = migrations().filter(({ name }) => name < "migrations/0012");
  // As the migrator did it then.
  await client.query(`create schema queen;
    create table queen.applied
      (name text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp())`);
  await client.query("begin");
  for (const { name, text } of before) {
    await client.query(text);
    await client.query(
      "insert into queen.applied values ($1, encode(sha256(convert_to($2, 'UTF8')), 'hex'))",
      [name, text],
    );
  }
  await client.query("commit");
  const { version, files } = await migrate(client);
  assert.equal(version, release().version);
  assert.ok(
    files.includes("migrations/0012_schema_version.sql") && !files.includes("migrations/0001_tables.sql"),
  );
  assert.deepEqual(await versionOf(database), {
    version: release().version,
    oldest_broker: release().oldestBroker,
  });
});

test("a migration that meets a table in use gives up, so that nobody waits behind it for long", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  await migrate(client);
  const reader = await database.client();
  await reader.query("begin; select count(*) from queen.partitions");
  const added = {
    name: "migrations/9999_more.sql",
    text: "alter table queen.partitions add column color text",
  };
  const next = of("1.0.0", 1, { migrations: [...migrations(), added] });
  await assert.rejects(migrate(client, next), /9999_more\.sql: canceling statement due to lock timeout/);
  assert.equal((await versionOf(database))!.version, release().version);
  await reader.query("commit");
  assert.equal((await migrate(client, next)).version, "1.0.0");
});

test("versions are compared by their numbers", () => {
  const sorted = ["0.1.0", "0.9.12", "0.10.0", "1.0.0-rc.1", "1.2.3", "1.10.0", "10.0.0"];
  assert.deepEqual([...sorted].reverse().sort(compareVersions), sorted);
  assert.equal(compareVersions("1.0.0", "1.0.0"), 0);
});

test("everything that brokers of earlier releases use is still there", () => {
  const { oldestBroker } = release();
  for (const name of readdirSync(RELEASED).filter((each) => each.endsWith(".txt"))) {
    if (compareVersions(name.slice(0, -".txt".length), oldestBroker) < 0) continue;
    const missing = takenAway(readFileSync(new URL(name, RELEASED), "utf8"), PRESENT);
    assert.deepEqual(missing, [], `${name}: keep it, or raise OLDEST_BROKER (docs/upgrades.md)`);
  }

  const without = (line: RegExp): string => PRESENT.replace(line, "");
  assert.deepEqual(takenAway(PRESENT, PRESENT), []);
  assert.equal(takenAway(PRESENT, without(/^queues\.priority .*\n/m)).length, 1, "a column");
  assert.equal(takenAway(PRESENT, without(/^take\(.*\n/m)).length, 1, "a function");
  assert.equal(
    takenAway(PRESENT, PRESENT.replace("take(p_pop integer[], ", "take(")).length,
    1,
    "an argument",
  );
  assert.equal(
    takenAway(PRESENT, PRESENT.replace("queues.priority integer", "queues.priority bigint")).length,
    1,
  );
  assert.equal(
    takenAway(PRESENT, `${PRESENT}\n`.replace("queues.priority integer not null", "queues.priority integer"))
      .length,
    0,
    "a column may lose its not null",
  );
});
