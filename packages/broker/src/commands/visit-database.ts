/**
 * A visit to the database, by a command that needs it for a moment: to the one that is given, to the embedded
 * one of a broker that runs, or to the embedded one of a broker that does not, which is started meanwhile.
 */
import type { Config } from "../config.ts";
import { type DatabaseSettings, describe } from "../postgres/database-settings.ts";
import { FolderInUseError } from "../postgres/embedded-owner.ts";
import { defaultDataDir, startEmbeddedServer } from "../postgres/embedded-server.ts";
import { holdsCluster, runningServer } from "../postgres/embedded-visit.ts";
import { PostgresError } from "../postgres/errors.ts";
import { Session } from "../postgres/session.ts";

export type UseSession = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

/** The message says what is wrong and what to do. */
export class VisitError extends Error {
  override readonly name = "VisitError";
}

// Undefined schema, table, column and function: what a broker's start would make.
const SCHEMA_MISSING = ["3F000", "42P01", "42703", "42883"];
// A command has a person waiting: patience for a busy server, no more.
const CALL_TIMEOUT_MS = 15_000;

export async function visitDatabase<T>(
  config: Config,
  given: DatabaseSettings | undefined,
  work: (use: UseSession) => Promise<T>,
): Promise<T> {
  if (given) return useServer(given, config, work);
  const dataDir = config.dataDir ?? defaultDataDir();
  const running = findRunning(dataDir);
  if (running) return useServer(running, config, work);
  if (!holdsCluster(dataDir)) {
    throw new VisitError(
      `There is no database in ${dataDir}: start the broker there once, or say where it is with ` +
        "QUEEN_DATA_DIR or DATABASE_URL.",
    );
  }
  // Through "exit", where the server is stopped; a signal by itself would leave it behind.
  const interrupted = (): void => process.exit(130);
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  try {
    const server = await startEmbeddedServer({ dataDir, log: () => undefined });
    try {
      return await useServer(server.settings, config, work);
    } finally {
      await server.stop();
    }
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw error;
    throw new VisitError(
      `A broker uses ${dataDir}, and its PostgreSQL cannot be reached from here: run this command where that ` +
        "broker runs, in the same container, or ask it by HTTP (/api/v1/system/keys).",
      { cause: error },
    );
  } finally {
    process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
  }
}

function findRunning(dataDir: string): DatabaseSettings | undefined {
  try {
    return runningServer(dataDir);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    throw new VisitError(
      `${path} cannot be read (${code}): run this command as the user that runs the broker.`,
    );
  }
}

async function useServer<T>(
  database: DatabaseSettings,
  config: Config,
  work: (use: UseSession) => Promise<T>,
): Promise<T> {
  const session = await connect(database, config);
  try {
    return await work((each) => each(session));
  } catch (error) {
    if (!(error instanceof PostgresError) || !SCHEMA_MISSING.includes(error.sqlstate)) throw error;
    throw new VisitError(
      `${describe(database)} has no tables of this version of Queen: start a broker of it there once.`,
      { cause: error },
    );
  } finally {
    await session.close();
  }
}

async function connect(database: DatabaseSettings, config: Config): Promise<Session> {
  try {
    return await Session.connect(database, {
      applicationName: "queen command",
      connectTimeoutMs: config.connectTimeoutMs,
      callTimeoutMs: CALL_TIMEOUT_MS,
      statementTimeoutMs: CALL_TIMEOUT_MS,
      lockTimeoutMs: config.lockTimeoutMs,
      idleInTransactionTimeoutMs: config.idleInTransactionTimeoutMs,
    });
  } catch (error) {
    throw new VisitError(
      `${describe(database)} cannot be used (${(error as Error).message}): start it, or correct ` +
        (database.source === "embedded" ? "QUEEN_DATA_DIR." : `${database.source}.`),
      { cause: error },
    );
  }
}
