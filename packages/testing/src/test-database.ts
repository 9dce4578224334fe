/**
 * The database of a test: a new one on a PostgreSQL server that is given, or a server of its own in a temporary
 * folder. Both are gone after `stop`.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDatabaseSettings, Session, startEmbeddedServer } from "@queen/broker";

export interface TestDatabase {
  readonly url: string;
  /** Runs SQL, also several statements. */
  run(sql: string): Promise<void>;
  stop(): Promise<void>;
}

// Several brokers with a few connections for each of their workers.
const SERVER_SETTINGS = { max_connections: "200", shared_buffers: "64MB" };
const PATIENCE_MS = 30_000;

export async function startTestDatabase(serverUrl: string | undefined): Promise<TestDatabase> {
  const server =
    serverUrl === undefined ? await startServer() : { url: serverUrl, stop: async () => undefined };
  const name = `queen_testing_${process.pid}_${randomBytes(4).toString("hex")}`;
  try {
    await withSession(server.url, (session) => session.simple(`create database ${name}`));
  } catch (error) {
    await server.stop();
    throw error;
  }
  const own = new URL(server.url);
  own.pathname = `/${name}`;
  let session: Promise<Session> | undefined;
  return {
    url: own.href,
    async run(sql) {
      session ??= connect(own.href);
      await (await session).simple(sql);
    },
    async stop() {
      await (await session?.catch(() => undefined))?.close();
      // A server of its own is removed as a whole.
      if (serverUrl !== undefined)
        await withSession(server.url, (admin) =>
          admin.simple(`drop database if exists ${name} with (force)`),
        );
      await server.stop();
    },
  };
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "queen-testing-"));
  chmodSync(folder, 0o711); // as root, the server runs as another user, who must get in
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const server = await startEmbeddedServer({
      dataDir: join(folder, "data"),
      log: () => undefined,
      settings: SERVER_SETTINGS,
    });
    const { hosts, user, password, database } = server.settings;
    return {
      url: `postgres://${user}:${encodeURIComponent(password ?? "")}@127.0.0.1:${hosts[0]!.port}/${database}`,
      stop: () => server.stop().finally(remove),
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function connect(url: string): Promise<Session> {
  return Session.connect(readDatabaseSettings({ DATABASE_URL: url })!, {
    applicationName: "queen-testing",
    connectTimeoutMs: PATIENCE_MS,
    callTimeoutMs: PATIENCE_MS,
    statementTimeoutMs: PATIENCE_MS,
    lockTimeoutMs: 0,
    idleInTransactionTimeoutMs: 0,
  });
}

async function withSession<T>(url: string, work: (session: Session) => Promise<T>): Promise<T> {
  const session = await connect(url);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
