/**
 * The migrator brings the schema `queen` to the state of a release. Brokers of several releases may run on one
 * database: the newest that was started decides about the schema, and older ones leave it as it is.
 */
import { createHash } from "node:crypto";
import { compareVersions, type Release, release, type SqlFile } from "./release.ts";

/** What the migrator needs of a database connection; `pg`'s client fits. */
export interface SqlSession {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface Migrated {
  /** The names of the files that were applied. */
  readonly files: readonly string[];
  /** Of the schema as it is now: the release's own, or a newer one. */
  readonly version: string;
}

export type OnApplied = (name: string, done: number, total: number) => void;

export class SchemaChangedError extends Error {
  override readonly name = "SchemaChangedError";
}

const LOWEST_SERVER_VERSION = 150_000;
// A change of a table waits for transactions that use it, and everybody else waits behind it. So it gives up soon
// and is tried again.
const LOCK_TIMEOUT = "3s";

/**
 * In one transaction under one lock: of several brokers that start at once, one works, the others wait and then
 * find nothing to do. `onApplied` hears of each file that was applied, with how many of how many are done.
 */
export async function migrate(
  session: SqlSession,
  wanted: Release = release(),
  onApplied: OnApplied = () => undefined,
): Promise<Migrated> {
  const { rows: server } = await session.query("select current_setting('server_version_num')::int as number");
  if (Number(server[0]?.number) < LOWEST_SERVER_VERSION) {
    throw new SchemaChangedError(
      "Queen needs PostgreSQL 15 or later; this server is older. Upgrade it first.",
    );
  }
  await session.query("begin");
  try {
    await session.query("select pg_advisory_xact_lock(hashtextextended('queen.migrate', 0))");
    const found = await readVersion(session);
    const isNewer = found !== undefined && compareVersions(found.version, wanted.version) > 0;
    if (isNewer) {
      await session.query("rollback");
      checkUsable(found, wanted);
      return { files: [], version: found.version };
    }
    await session.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    const files = await applyAll(session, wanted, onApplied);
    if (found?.version !== wanted.version || found.oldestBroker !== wanted.oldestBroker)
      await writeVersion(session, wanted);
    await session.query("commit");
    return { files, version: wanted.version };
  } catch (error) {
    await session.query("rollback");
    throw error;
  }
}

type Version = Pick<Release, "version" | "oldestBroker">;

/** Undefined where there is no schema yet, or one from before versions were noted. */
async function readVersion(session: SqlSession): Promise<Version | undefined> {
  const { rows: table } = await session.query(
    "select to_regclass('queen.schema_version') is not null as exists",
  );
  if (table[0]?.exists !== true) return undefined;
  const { rows } = await session.query(
    'select version, oldest_broker as "oldestBroker" from queen.schema_version',
  );
  return rows[0] as Version | undefined;
}

async function writeVersion(session: SqlSession, { version, oldestBroker }: Version): Promise<void> {
  await session.query(
    `insert into queen.schema_version (version, oldest_broker) values ($1, $2)
     on conflict (is_only) do update
        set version = excluded.version, oldest_broker = excluded.oldest_broker, migrated_at = clock_timestamp()`,
    [version, oldestBroker],
  );
}

function checkUsable(schema: Version, { version }: Version): void {
  if (compareVersions(version, schema.oldestBroker) >= 0) return;
  throw new SchemaChangedError(
    `This database has the schema of Queen ${schema.version}, for brokers from ${schema.oldestBroker} on; this one ` +
      `is ${version}. Start a broker of version ${schema.oldestBroker} or later.`,
  );
}

async function applyAll(session: SqlSession, wanted: Release, onApplied: OnApplied): Promise<string[]> {
  // Asked first: where the schema is up to date, a role without the right to create can run a broker.
  const { rows: ledger } = await session.query("select to_regclass('queen.applied') is not null as exists");
  if (ledger[0]?.exists !== true) {
    await session.query(`create schema if not exists queen;
      create table queen.applied
        (name text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp())`);
  }
  const { rows } = await session.query("select name, sha256 from queen.applied");
  const applied = new Map(rows.map((row) => [row.name, row.sha256]));
  const due: SqlFile[] = [];
  for (const file of wanted.migrations) {
    if (!applied.has(file.name)) due.push(file);
    else if (applied.get(file.name) !== sha256(file)) {
      throw new SchemaChangedError(
        `${file.name} was changed after it was applied to this database. Migrations are append-only: ` +
          "restore the file and put the change into a new one.",
      );
    }
  }
  due.push(...wanted.procedures.filter((file) => applied.get(file.name) !== sha256(file)));
  const changed: string[] = [];
  for (const file of due) {
    changed.push(await apply(session, file));
    onApplied(file.name, changed.length, due.length);
  }
  return changed;
}

async function apply(session: SqlSession, file: SqlFile): Promise<string> {
  try {
    await session.query(file.text);
  } catch (error) {
    throw new Error(`${file.name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  await session.query(
    `insert into queen.applied (name, sha256) values ($1, $2)
     on conflict (name) do update set sha256 = excluded.sha256, applied_at = clock_timestamp()`,
    [file.name, sha256(file)],
  );
  return file.name;
}

const sha256 = (file: SqlFile): string => createHash("sha256").update(file.text).digest("hex");
