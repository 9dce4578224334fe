/** Migrations: applied once by whoever comes first, never changed; procedures: replaced when they change. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { migrate, migrations, procedures, release, SchemaChangedError, type SqlFile } from "@queen/schema";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { describeSchema } from "../support/schema-description.ts";

const ALL = [...migrations(), ...procedures()].map((file) => file.name);
const SNAPSHOT = new URL("../../../packages/schema/snapshot.txt", import.meta.url);

async function emptyDatabase(t: TestContext): Promise<TestDatabase> {
  const database = await createDatabase({ empty: true });
  t.after(() => database.drop());
  return database;
}

const replace = (files: readonly SqlFile[], name: string, text: (old: string) => string): SqlFile[] =>
  files.map((file) => (file.name === name ? { name, text: text(file.text) } : file));

test("of three that migrate an empty database at once, one works and two find nothing to do", async (t) => {
  const database = await emptyDatabase(t);
  const clients = await Promise.all([database.client(), database.client(), database.client()]);
  const applied = await Promise.all(clients.map(async (client) => (await migrate(client)).files));
  assert.deepEqual(
    applied.sort((a, b) => a.length - b.length),
    [[], [], ALL],
  );
});

test("a second migration changes nothing", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  assert.deepEqual((await migrate(client)).files, ALL);
  const stamps = "select name, applied_at::text, xmin::text from queen.applied order by name";
  const before = await database.query(stamps);
  assert.deepEqual((await migrate(client)).files, []);
  assert.deepEqual(await database.query(stamps), before);
});

test("a migration that was changed after it was applied is refused, and nothing else is applied", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  await migrate(client);
  const before = await database.query("select name, sha256 from queen.applied order by name");
  const changed = {
    ...release(),
    migrations: replace(migrations(), "migrations/0001_tables.sql", (old) => `${old}\n-- one more line`),
    procedures: replace(procedures(), "procedures/trim_hints.sql", (old) => `${old}\n-- one more line`),
  };
  await assert.rejects(migrate(client, changed), (error: Error) => {
    assert.ok(error instanceof SchemaChangedError);
    assert.match(error.message, /0001_tables\.sql was changed after it was applied/);
    return true;
  });
  assert.deepEqual(await database.query("select name, sha256 from queen.applied order by name"), before);
  assert.deepEqual((await migrate(client)).files, [], "the connection is usable and the lock is free");
});

test("a migration that fails leaves nothing behind and is named", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  const broken = { name: "migrations/0002_broken.sql", text: "create table queen.half (); select 1 / 0" };
  const files = { ...release(), migrations: [...migrations(), broken] };
  await assert.rejects(migrate(client, files), /0002_broken\.sql: division by zero/);
  const [schema] = await database.query("select count(*) from pg_namespace where nspname = 'queen'");
  assert.equal(schema!.count, 0);
});

test("a changed procedure is replaced, and only that one", async (t) => {
  const database = await emptyDatabase(t);
  const client = await database.client();
  await migrate(client);
  const changed = replace(procedures(), "procedures/trim_hints.sql", (old) =>
    old.replace("select count(*)::int4 from old", "select count(*)::int4 + 42 from old"),
  );
  const files = { ...release(), procedures: changed };
  assert.deepEqual((await migrate(client, files)).files, ["procedures/trim_hints.sql"]);
  assert.deepEqual(await database.query("select queen.trim_hints() as trimmed"), [{ trimmed: 42 }]);
  assert.deepEqual(
    (await migrate(client)).files,
    ["procedures/trim_hints.sql"],
    "of the same version, whoever comes last puts its own in place",
  );
});

test("the schema is as packages/schema/snapshot.txt says", async (t) => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const description = await describeSchema(database);
  if (process.env.QUEEN_UPDATE_SNAPSHOT) writeFileSync(SNAPSHOT, description);
  assert.equal(
    description,
    readFileSync(SNAPSHOT, "utf8"),
    "if the change is meant: QUEEN_UPDATE_SNAPSHOT=1 node scripts/test.mjs migrate",
  );
});
