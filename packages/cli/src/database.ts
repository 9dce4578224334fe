/** The database of a command that works without a broker: the one of the environment, or the broker's own PostgreSQL. */
import {
  DatabaseRefusedError,
  type DatabaseSettings,
  defaultDataDir,
  environmentWithSecrets,
  type Log,
  prepareDatabase,
  readDatabaseSettings,
  startEmbeddedServer,
} from "@queen/broker";
import type { Call } from "./command.ts";
import { ServerError, UsageError } from "./exit-codes.ts";
import { Progress } from "./output/progress.ts";

export interface OpenedDatabase {
  readonly settings: DatabaseSettings;
  /** Files of the schema that were applied just now. */
  readonly applied: readonly string[];
}

// A broker waits for its database for ever; a person wants to know.
const AWAY_MS_MAX = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Reads a URL as the broker does. */
export const databaseAt = (url: string): DatabaseSettings => readSettings({ DATABASE_URL: url })!;

/** The database that is named, or that of the environment; undefined: the broker would start its own. */
export function givenDatabase(call: Call, url: string | undefined): DatabaseSettings | undefined {
  return url === undefined ? readSettings(call.env) : databaseAt(url);
}

function readSettings(env: NodeJS.ProcessEnv): DatabaseSettings | undefined {
  try {
    return readDatabaseSettings(environmentWithSecrets(env));
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
}

/** Runs `work` with a database whose schema is up to date. */
export async function withDatabase(
  call: Call,
  url: string | undefined,
  work: (database: OpenedDatabase) => Promise<void>,
): Promise<void> {
  const given = givenDatabase(call, url);
  const embedded = given === undefined ? await startOwn(call) : undefined;
  const settings = given ?? embedded!.settings;
  try {
    await work({ settings, applied: await prepare(call, settings) });
  } finally {
    await embedded?.stop();
  }
}

async function startOwn(call: Call) {
  const dataDir = call.env.QUEEN_DATA_DIR || defaultDataDir();
  call.output.note(`No database is given: using the broker's own PostgreSQL in ${dataDir}`);
  try {
    return await startEmbeddedServer({ dataDir, log: () => {} });
  } catch (error) {
    throw new ServerError((error as Error).message, { cause: error });
  }
}

async function prepare(call: Call, settings: DatabaseSettings): Promise<readonly string[]> {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), AWAY_MS_MAX);
  let reason = "it cannot be reached";
  let progress: Progress | undefined;
  const log: Log = {
    trace: () => {},
    debug: () => {},
    info: () => {},
    warn: ({ message }) => {
      reason = String(message);
    },
    error: () => {},
    writes: () => false,
    child: () => log,
  };
  try {
    const applied = await prepareDatabase({
      database: settings,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      log,
      signal: end.signal,
      applied: (_file, done, total) => {
        clearTimeout(timer); // the database is there, and works
        progress ??= new Progress({ label: "migrate", unit: "files", total });
        progress.to(done, total);
      },
    });
    progress?.finish();
    call.output.note(applied.length === 0 ? "The schema is up to date" : "The schema is up to date now");
    return applied;
  } catch (error) {
    progress?.clear();
    if (error instanceof DatabaseRefusedError) throw new ServerError(error.message, { cause: error });
    if (end.signal.aborted) throw new ServerError(`The database is away: ${reason}`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
