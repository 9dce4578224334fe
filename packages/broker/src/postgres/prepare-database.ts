/**
 * Preparing the database brings its schema up to date before the broker works with it.
 *
 *   connect ──▶ the first host not in recovery ──▶ migrate ──▶ prepared
 *      ▲                    │ none, or lost          │
 *      └────── pause ◀──────┴────────────────────────┤
 *                              refused ◀── an answer that no repetition changes
 *
 * A database that is away, not there yet, or wants another password may be mended while the broker runs, so
 * it is tried again for ever. A migration that the server refuses is for a person to decide.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { migrate, type OnApplied, release, SchemaChangedError } from "@queen/schema";
import pg from "pg";
import type { Log } from "../telemetry.ts";
import { type DatabaseHost, type DatabaseSettings, describe } from "./database-settings.ts";

export interface PrepareOptions {
  readonly database: DatabaseSettings;
  /** For each host. */
  readonly connectTimeoutMs: number;
  readonly log: Log;
  /** Ends the attempts; the promise is then rejected with an AbortError. */
  readonly signal: AbortSignal;
  /** Hears of each file of the schema that was applied: how many of how many. */
  readonly applied?: OnApplied;
}

/** The message says what is wrong and what to do. */
export class DatabaseRefusedError extends Error {
  override readonly name = "DatabaseRefusedError";
}

const PAUSE_MS_MIN = 250;
const PAUSE_MS_MAX = 2_000;
// A database that stays away is mentioned again, but does not fill the log.
const REMIND_EVERY_MS = 60_000;

/** Resolves with the files that were applied, when the schema is up to date. Rejects with a DatabaseRefusedError, or when aborted. */
export async function prepareDatabase(options: PrepareOptions): Promise<readonly string[]> {
  const { database, log, signal } = options;
  const wanted = release();
  let toldReason = "";
  let toldMs = 0;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    signal.throwIfAborted();
    try {
      const client = await connectToPrimary(options);
      try {
        const { files, version: schema } = await migrate(client, wanted, options.applied);
        const server = database.hosts.length > 1 ? `${client.host}:${client.port}` : undefined;
        const facts = { database: describe(database), server, schema, filesApplied: files.length };
        log.info(facts, "database.prepared");
        if (schema !== wanted.version)
          log.warn({ message: newerSchema(schema, wanted.version) }, "database.newer-schema");
        return files;
      } finally {
        hangUp(client);
      }
    } catch (error) {
      const refusal = refusalOf(error, database);
      if (refusal !== undefined) throw new DatabaseRefusedError(refusal, { cause: error });
      const message = adviceOn(error, database);
      if (message !== toldReason || Date.now() - toldMs >= REMIND_EVERY_MS) {
        log.warn({ message, database: describe(database) }, "database.away");
        toldReason = message;
        toldMs = Date.now();
      }
    }
    await sleep(pauseMs, undefined, { signal });
  }
}

async function connectToPrimary(options: PrepareOptions): Promise<pg.Client> {
  const failures: Error[] = [];
  for (const host of options.database.hosts) {
    try {
      return await connectTo(host, options);
    } catch (error) {
      failures.push(error as Error);
    }
  }
  if (failures.length === 1) throw failures[0];
  throw new AggregateError(failures);
}

async function connectTo(server: DatabaseHost, options: PrepareOptions): Promise<pg.Client> {
  const { database, user, password, ssl } = options.database;
  const client = new pg.Client({
    ...server,
    database,
    user,
    ssl,
    application_name: "queen migrate",
    connectionTimeoutMillis: options.connectTimeoutMs,
    keepAlive: true,
    ...(password === undefined ? {} : { password }),
  });
  client.on("error", () => {}); // the query in flight is rejected with the same error
  try {
    await client.connect();
    const { rows } = await client.query("select pg_is_in_recovery() as standby");
    if (rows[0]?.standby === true) {
      throw new Error(`${server.host}:${server.port} is in recovery and takes no writes`);
    }
    return client;
  } catch (error) {
    hangUp(client);
    throw error;
  }
}

/** Nothing waits for the goodbye: a server that is gone does not answer it. */
function hangUp(client: pg.Client): void {
  void client.end().catch(() => {});
}

// By class of SQLSTATE: the server understood the migration and will answer the same to the next attempt.
const REFUSALS: ReadonlySet<string> = new Set([
  "0A", // feature not supported
  "22", // data exception
  "23", // integrity constraint violation
  "2B", // dependent objects still exist
  "42", // syntax error or access rule violation
]);
const INSUFFICIENT_PRIVILEGE = "42501";

/** What to print when the migration was refused; undefined when another attempt may succeed. */
function refusalOf(error: unknown, settings: DatabaseSettings): string | undefined {
  if (error instanceof SchemaChangedError) return error.message;
  const answer = answerIn(error);
  if (answer?.code === undefined || !REFUSALS.has(answer.code.slice(0, 2))) return undefined;
  const { database, user } = settings;
  const message = (error as Error).message;
  if (answer.code === INSUFFICIENT_PRIVILEGE) {
    return (
      `The role ${user} may not set up Queen's schema in the database ${database} (${message}): let the ` +
      `database's owner run  grant create on database "${database}" to "${user}";  or, if another role set ` +
      "the schema up, connect as that role."
    );
  }
  return `The database ${database} refused the migration (${answer.code} ${message}): nothing was changed in it.`;
}

const newerSchema = (schema: string, broker: string): string =>
  `the schema is of Queen ${schema} and stays as it is; this broker, ${broker}, works with it. Upgrade it, too.`;

/** Why the database cannot be used yet, with what an operator could do where that is not plain. */
function adviceOn(error: unknown, { user, database, ssl }: DatabaseSettings): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  const text = textOf(error);
  const code = answerIn(error)?.code;
  if (code === "3D000") return `${text}: create it, as in  create database "${database}";`;
  if (code === "55P03")
    return `${text}: a transaction uses a table that is to be changed; end it, or wait until it is over`;
  if (code === "28P01") return `${text}: correct the password, or the role ${user}`;
  if (code?.startsWith("28"))
    return `${text}: let pg_hba.conf admit the role ${user}${ssl ? "" : ", or set sslmode"}`;
  return text;
}

/** The answer of the server that the error is, or that it was made of. */
function answerIn(error: unknown): pg.DatabaseError | undefined {
  if (error instanceof pg.DatabaseError) return error;
  return error instanceof Error ? answerIn(error.cause) : undefined;
}

function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}
