/** Where the database is: each way to say it, what is left out, and every mistake as a sentence. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DatabaseSettings, describe, readDatabaseSettings } from "../src/postgres/database-settings.ts";

const url = (text: string): Record<string, string> => ({ DATABASE_URL: text });
const one = (host: string, port = 5432): DatabaseSettings["hosts"] => [{ host, port }];

const READ: { name: string; env: Record<string, string>; expected: Partial<DatabaseSettings> }[] = [
  {
    name: "a whole URL",
    env: url("postgres://alice:secret@db.example:6000/orders?sslmode=verify-full"),
    expected: {
      hosts: one("db.example", 6000),
      database: "orders",
      user: "alice",
      password: "secret",
      ssl: { rejectUnauthorized: true },
      source: "DATABASE_URL",
    },
  },
  {
    name: "a URL with a host only",
    env: url("postgresql://db.example"),
    expected: { hosts: one("db.example"), database: "postgres", user: "postgres", ssl: false },
  },
  {
    name: "several hosts",
    env: url("postgres://u:p@h1:5432,h2:5433,h3/db"),
    expected: { hosts: [...one("h1"), ...one("h2", 5433), ...one("h3")], database: "db" },
  },
  { name: "an IPv6 address", env: url("postgres://u@[::1]:5433/db"), expected: { hosts: one("::1", 5433) } },
  {
    name: "percent-encoded parts",
    env: url("postgres://a%40b:p%2Fq%3A%25@h/d%20b"),
    expected: { user: "a@b", password: "p/q:%", database: "d b" },
  },
  {
    name: "a plain @ # and : in the password",
    env: url("postgres://u:p@s#s:w@h/db"),
    expected: { user: "u", password: "p@s#s:w", hosts: one("h") },
  },
  {
    name: "a socket folder as a parameter",
    env: url("postgres://u@/db?host=/run/postgresql&port=5433&sslmode=require"),
    expected: { hosts: one("/run/postgresql", 5433), ssl: false },
  },
  {
    name: "a socket folder in place of the host",
    env: url("postgres://u@%2Frun%2Fmy%20pg:5433/db"),
    expected: { hosts: one("/run/my pg", 5433) },
  },
  {
    name: "user, password and database as parameters",
    env: url("postgres:///?user=u&password=p&dbname=d&host=h1,h2&port=1,2"),
    expected: { user: "u", password: "p", database: "d", hosts: [...one("h1", 1), ...one("h2", 2)] },
  },
  {
    name: "a URL completed by libpq's variables, and stronger than PG_HOST",
    env: { ...url("postgres://h/db"), PGUSER: "u", PGPASSWORD: "p", PGPORT: "7", PG_HOST: "other" },
    expected: { hosts: one("h", 7), user: "u", password: "p", database: "db", source: "DATABASE_URL" },
  },
  {
    name: "PG_HOST with nothing else",
    env: { PG_HOST: "h", PGHOST: "other" },
    expected: {
      hosts: one("h"),
      database: "postgres",
      user: "postgres",
      password: "postgres",
      ssl: false,
      source: "PG_HOST",
    },
  },
  {
    name: "PG_HOST with everything",
    env: {
      PG_HOST: "h",
      PG_PORT: "6000",
      PG_DB: "d",
      PG_USER: "u",
      PG_PASSWORD: "p",
      PG_USE_SSL: "true",
      PG_SSL_REJECT_UNAUTHORIZED: "false",
    },
    expected: {
      hosts: one("h", 6000),
      database: "d",
      user: "u",
      password: "p",
      ssl: { rejectUnauthorized: false },
    },
  },
  {
    name: "PG_USE_SSL checks certificates unless told otherwise",
    env: { PG_HOST: "h", PG_USE_SSL: "1" },
    expected: { ssl: { rejectUnauthorized: true } },
  },
  {
    name: "libpq's variables",
    env: { PGHOST: "h1,h2", PGPORT: "6000", PGUSER: "u", PGPASSWORD: "p", PGSSLMODE: "require" },
    expected: {
      hosts: [...one("h1", 6000), ...one("h2", 6000)],
      database: "u",
      user: "u",
      password: "p",
      ssl: { rejectUnauthorized: false },
      source: "PGHOST",
    },
  },
  { name: "a socket folder in PGHOST", env: { PGHOST: "/run/pg" }, expected: { hosts: one("/run/pg") } },
  {
    name: "empty variables as if not set",
    env: { DATABASE_URL: "", PG_HOST: "", PGHOST: "h", PGPORT: "" },
    expected: { source: "PGHOST", hosts: one("h") },
  },
  ...Object.entries({
    disable: false,
    prefer: false,
    "no-verify": { rejectUnauthorized: false },
  } as const).map(([mode, ssl]) => ({
    name: `sslmode ${mode}`,
    env: url(`postgres://h/d?sslmode=${mode}`),
    expected: { ssl },
  })),
  { name: "ssl=true", env: url("postgres://h/d?ssl=true"), expected: { ssl: { rejectUnauthorized: true } } },
];

for (const { name, env, expected } of READ) {
  test(`reads ${name}`, () => {
    const settings = readDatabaseSettings(env);
    assert(settings !== undefined);
    for (const [key, value] of Object.entries(expected))
      assert.deepEqual(settings[key as keyof DatabaseSettings], value, key);
    assert(
      Object.isFrozen(settings) && Object.isFrozen(settings.hosts) && Object.isFrozen(settings.hosts[0]),
    );
  });
}

test("says nothing where no variable names a database", () => {
  assert.equal(readDatabaseSettings({}), undefined);
  assert.equal(readDatabaseSettings({ PGUSER: "u", PG_PASSWORD: "p", DATABASE_URL: "" }), undefined);
});

const MISTAKES: { env: Record<string, string>; says: RegExp }[] = [
  { env: url("mysql://u:hunter2@h/db"), says: /^DATABASE_URL must look like postgres:\/\// },
  { env: url("h:5432"), says: /^DATABASE_URL must look like/ },
  {
    env: url("postgres://u:hun/ter2@h/db"),
    says: /^DATABASE_URL must name .*percent-encode|^DATABASE_URL must name a port/,
  },
  { env: url("postgres://u:hunter2%@h/db"), says: /^DATABASE_URL has a "%"/ },
  { env: url("postgres://u:hunter2@h:99999/db"), says: /^DATABASE_URL must name a port from 1 to 65535/ },
  { env: url("postgres://u:hunter2@h:x/db"), says: /^DATABASE_URL must name a port from 1 to 65535/ },
  { env: url("postgres://u:hunter2@::1/db"), says: /^DATABASE_URL must name hosts/ },
  {
    env: url("postgres://u:hunter2@h/db?sslmode=on"),
    says: /^sslmode in DATABASE_URL must be one of disable,/,
  },
  { env: url("postgres://u:hunter2@h/db?sslrootcert=/ca.pem"), says: /NODE_EXTRA_CA_CERTS/ },
  { env: { PG_HOST: "h", PG_PORT: "many" }, says: /^PG_PORT must be a port from 1 to 65535, got "many"\.$/ },
  { env: { PG_HOST: "h", PG_USE_SSL: "maybe" }, says: /^PG_USE_SSL must be true or false, got "maybe"\.$/ },
  { env: { PG_HOST: "h", PG_SSL_REJECT_UNAUTHORIZED: "x" }, says: /^PG_SSL_REJECT_UNAUTHORIZED must be/ },
  { env: { PG_HOST: "a b" }, says: /^PG_HOST must be a host name/ },
  { env: { PGHOST: "h", PGPORT: "0" }, says: /^PGPORT must be a port/ },
  { env: { PGHOST: "h", PGSSLMODE: "yes" }, says: /^PGSSLMODE must be one of/ },
  {
    env: { PGHOST: "a,b,c", PGPORT: "1,2" },
    says: /^PGPORT must hold one port, or one port for each of the 3 hosts/,
  },
  { env: { PGHOST: "a,,c" }, says: /^PGHOST must be a host name/ },
];

for (const { env, says } of MISTAKES) {
  test(`refuses ${Object.entries(env)
    .map((pair) => pair.join("="))
    .join(" ")}`, () => {
    assert.throws(
      () => readDatabaseSettings(env),
      (error: Error) => says.test(error.message) && !error.message.includes("hunter2"),
    );
  });
}

test("is described with the password hidden", () => {
  const said = (env: Record<string, string>): string => describe(readDatabaseSettings(env)!);
  assert.equal(
    said(url("postgres://a%40b:hunter2@h1,[::1]:5433/d?sslmode=require")),
    "postgresql://a%40b:***@h1:5432,[::1]:5433/d?sslmode=require",
  );
  assert.equal(said({ PGHOST: "/run/pg" }), "postgresql://postgres@%2Frun%2Fpg:5432/postgres");
  assert.deepEqual(readDatabaseSettings(url(said({ PGHOST: "/run/pg" })))?.hosts, one("/run/pg"));
});
