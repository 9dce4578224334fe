import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

/** What the migrator needs of a database connection; `pg`'s client fits. */
export interface SqlSession {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface SqlFile {
  readonly name: string;
  readonly text: string;
}

const SQL = new URL("../../sql/", import.meta.url);

function readFolder(folder: string): SqlFile[] {
  return readdirSync(new URL(`${folder}/`, SQL))
    .filter((name) => name.endsWith(".sql"))
    .sort()
    .map((name) => ({
      name: `${folder}/${name}`,
      text: readFileSync(new URL(`${folder}/${name}`, SQL), "utf8"),
    }));
}

/** Tables and their changes: applied once, in order, never edited. */
export const migrations = (): SqlFile[] => readFolder("migrations");

/**
 * One function, trigger or view per file, replaced when its text changes. A function that another one names
 * in a body that is checked at once (`begin atomic`, `return`, a view) comes before it.
 */
export function procedures(): SqlFile[] {
  const first = [
    "message_id",
    "int4_at",
    "fragment_at",
    "offset_at",
    "count_failure",
    "pick_messages",
    "sql_pauses",
    "two_digits",
    "utc_seconds",
    "bury_range",
  ];
  const place = (file: SqlFile): number => {
    const index = first.indexOf(file.name.slice("procedures/".length, -".sql".length));
    return index < 0 ? first.length : index;
  };
  return readFolder("procedures").sort((a, b) => place(a) - place(b));
}

export class SchemaChangedError extends Error {
  override readonly name = "SchemaChangedError";
}

const LOWEST_SERVER_VERSION = 150_000;

/**
 * Brings the schema `queen` up to date, in one transaction under one lock: of several brokers that start at
 * once, one works, the others wait and then find nothing to do. Returns the names of the files it applied;
 * `onApplied` hears of each, with how many of how many are done.
 */
export async function migrate(
  session: SqlSession,
  files: { migrations: readonly SqlFile[]; procedures: readonly SqlFile[] } = {
    migrations: migrations(),
    procedures: procedures(),
  },
  onApplied: (name: string, done: number, total: number) => void = () => {},
): Promise<string[]> {
  const { rows: version } = await session.query(
    "select current_setting('server_version_num')::int as number",
  );
  if (Number(version[0]?.number) < LOWEST_SERVER_VERSION) {
    throw new SchemaChangedError(
      "Queen needs PostgreSQL 15 or later; this server is older. Upgrade it first.",
    );
  }
  const changed: string[] = [];
  await session.query("begin");
  try {
    await session.query("select pg_advisory_xact_lock(hashtextextended('queen.migrate', 0))");
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
    for (const file of files.migrations) {
      if (!applied.has(file.name)) due.push(file);
      else if (applied.get(file.name) !== sha256(file)) {
        throw new SchemaChangedError(
          `${file.name} was changed after it was applied to this database. Migrations are append-only: ` +
            "restore the file and put the change into a new one.",
        );
      }
    }
    due.push(...files.procedures.filter((file) => applied.get(file.name) !== sha256(file)));
    for (const file of due) {
      changed.push(await apply(session, file));
      onApplied(file.name, changed.length, due.length);
    }
    await session.query("commit");
  } catch (error) {
    await session.query("rollback");
    throw error;
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
