/**
 * A test database is a fresh one with Queen's schema, for one test file or one test. It is cloned from a
 * template that is migrated once per server and per state of the SQL files, so that it costs milliseconds.
 *
 * The server is the one that QUEEN_TEST_DATABASE_URL names; scripts/test.mjs starts one and sets it.
 */
import { createHash, randomBytes } from "node:crypto";
import { type DatabaseSettings, readDatabaseSettings } from "@queen/broker";
import { migrate, migrations, procedures } from "@queen/schema";
import pg from "pg";

// biome-ignore lint/suspicious/noExplicitAny: rows of any query; a wrong column fails the assertion on it
export type Row = Record<string, any>;

/** What a test can do with a session of the broker's own kind, which speaks PostgreSQL's binary protocol. */
export interface Session {
  readonly processId: number;
  run<Result>(
    statement: {
      readonly name: string;
      readonly text: string;
      readonly parameters: readonly string[];
      // biome-ignore lint/suspicious/noExplicitAny: the broker's row reader
      read(row: any): Result;
    },
    values: readonly unknown[],
  ): Promise<Result[]>;
  simple(text: string): Promise<void>;
  close(): Promise<void>;
}

interface SessionModule {
  readonly Session: { connect(settings: DatabaseSettings, options: object): Promise<Session> };
}

export interface TestDatabase {
  readonly url: string;
  readonly settings: DatabaseSettings;
  /** Runs a statement on a connection that all callers share. */
  query(text: string, values?: unknown[]): Promise<Row[]>;
  session(): Promise<Session>;
  /** A connection of its own, for a transaction that is open while others work. int8 comes as a number. */
  client(): Promise<pg.Client>;
  /** Ends all connections, also of others, and removes the database. */
  drop(): Promise<void>;
}

// The broker keeps its sessions to itself, so that its index does not have them.
const SESSION_MODULE = new URL("../../../packages/broker/dist/src/postgres/session.js", import.meta.url).href;

// Above every wait that a test arranges, so that a test that hangs says where.
const STATEMENT_TIMEOUT_MS = 30_000;

export async function createDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `queen_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  await asAdmin(async (admin) => {
    const template = options.empty ? "template1" : await templateDatabase(admin);
    await admin.query(`create database ${name} template ${template}`);
  });

  const url = urlOf(name);
  const settings = readDatabaseSettings({ DATABASE_URL: url })!;
  const clients: pg.Client[] = [];
  const sessions: Session[] = [];
  let shared: Promise<pg.Client> | undefined;
  const client = async (): Promise<pg.Client> => {
    const connected = await connect(url);
    clients.push(connected);
    return connected;
  };
  return {
    url,
    settings,
    async query(text, values) {
      shared ??= client();
      return (await (await shared).query(text, values)).rows;
    },
    async session() {
      const { Session } = (await import(SESSION_MODULE)) as SessionModule;
      const session = await Session.connect(settings, {
        applicationName: "queen-test",
        connectTimeoutMs: 10_000,
        callTimeoutMs: STATEMENT_TIMEOUT_MS,
        statementTimeoutMs: STATEMENT_TIMEOUT_MS,
        lockTimeoutMs: 0,
        idleInTransactionTimeoutMs: 0,
      });
      sessions.push(session);
      return session;
    },
    client,
    async drop() {
      await Promise.all(sessions.map((session) => session.close()));
      await Promise.all(clients.map((each) => each.end().catch(() => undefined)));
      await asAdmin((admin) => admin.query(`drop database if exists ${name} with (force)`));
    },
  };
}

/** The name of the migrated template, which is made by whoever comes first. */
async function templateDatabase(admin: pg.Client): Promise<string> {
  const hash = createHash("sha256");
  for (const file of [...migrations(), ...procedures()]) hash.update(`${file.name}\0${file.text}\0`);
  const name = `queen_template_${hash.digest("hex").slice(0, 16)}`;
  await admin.query("select pg_advisory_lock(hashtextextended('queen.test.template', 0))");
  try {
    const { rows } = await admin.query("select 1 from pg_database where datname = $1", [name]);
    if (rows.length > 0) return name;
    const draft = `${name}_draft`; // it gets its name when it is whole
    await admin.query(`drop database if exists ${draft} with (force)`);
    await admin.query(`create database ${draft}`);
    const client = await connect(urlOf(draft));
    try {
      await migrate(client);
    } finally {
      await client.end();
    }
    await admin.query(`alter database ${draft} with allow_connections false`);
    await admin.query(`alter database ${draft} rename to ${name}`);
    return name;
  } finally {
    await admin.query("select pg_advisory_unlock(hashtextextended('queen.test.template', 0))");
  }
}

async function asAdmin<T>(work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = await connect(serverUrl());
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

function serverUrl(): string {
  const url = process.env.QUEEN_TEST_DATABASE_URL;
  if (url) return url;
  throw new Error(
    "These tests need a PostgreSQL server: run them with `node scripts/test.mjs`, which starts one, " +
      "or set QUEEN_TEST_DATABASE_URL to one on which they may create databases.",
  );
}

function urlOf(database: string): string {
  const url = new URL(serverUrl());
  url.pathname = `/${database}`;
  return url.href;
}

const INT8 = 20;
const INT8_ARRAY = 1016;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "queen-test",
    statement_timeout: STATEMENT_TIMEOUT_MS,
    types: {
      getTypeParser(oid: number, format?: string) {
        if (oid === INT8) return Number;
        if (oid === INT8_ARRAY) return (text: string) => (text.match(/\d+/g) ?? []).map(Number);
        return pg.types.getTypeParser(oid, format as "text");
      },
    } as pg.CustomTypesConfig,
  });
  client.on("error", () => undefined); // a connection that is forced off has nobody to tell
  await client.connect();
  return client;
}
