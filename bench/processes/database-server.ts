/** The database server is one for all runs; each run gets a fresh database of it. */
import { startEmbeddedServer } from "@queen/broker";
import pg from "pg";
import { findPostmaster } from "../accounting.ts";
import { temporaryFolder } from "./children.ts";

// The rules of the comparison: these two, and everything else as PostgreSQL has it by default.
const SERVER_SETTINGS = { shared_buffers: "2GB", max_connections: "300", max_wal_size: "1GB", jit: "on" };
const DURABILITY_SETTINGS = ["fsync", "synchronous_commit", "full_page_writes"] as const;
const RECORDED_SETTINGS = [...DURABILITY_SETTINGS, ...Object.keys(SERVER_SETTINGS), "wal_level"];

export interface DatabaseServer {
  readonly version: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly postmasterPid: number | null;
  /** Creates an empty database and returns its URL. */
  createDatabase(name: string): Promise<string>;
  dropDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** The server at the URL, or an embedded one in a temporary folder that goes away with it. */
export async function startDatabaseServer(
  url: string | null,
  log: (line: string) => void,
): Promise<DatabaseServer> {
  if (url !== null) return useServer(url, async () => undefined);
  const folder = temporaryFolder("postgres");
  try {
    const embedded = await startEmbeddedServer({
      dataDir: `${folder.path}/postgres`,
      log,
      settings: SERVER_SETTINGS,
    });
    const stop = async (): Promise<void> => {
      await embedded.stop();
      folder.remove();
    };
    return await useServer(urlOf(embedded.settings), stop).catch(async (error: unknown) => {
      await stop();
      throw error;
    });
  } catch (error) {
    folder.remove();
    throw error;
  }
}

async function useServer(url: string, stop: () => Promise<void>): Promise<DatabaseServer> {
  const client = new pg.Client({ connectionString: url });
  // A server that ends takes its sessions with it; whoever asks next is told.
  client.on("error", () => undefined);
  await client.connect();
  try {
    const rows = await client.query<{ name: string; value: string }>(
      "select name, current_setting(name) as value from pg_settings where name = any($1)",
      [RECORDED_SETTINGS],
    );
    const settings = Object.fromEntries(rows.rows.map(({ name, value }) => [name, value]));
    for (const name of DURABILITY_SETTINGS) {
      if (settings[name] !== "on") {
        throw new Error(`the server runs with ${name}=${settings[name]}: its rates would mean nothing`);
      }
    }
    const version = await client.query<{ server_version: string }>("show server_version");
    return {
      version: version.rows[0]!.server_version,
      settings,
      postmasterPid: await findPostmaster(client),
      createDatabase: async (name) => {
        await client.query(`drop database if exists ${name} with (force)`);
        await client.query(`create database ${name}`);
        const target = new URL(url);
        target.pathname = `/${name}`;
        return target.href;
      },
      dropDatabase: async (name) => {
        await client.query(`drop database if exists ${name} with (force)`);
      },
      stop: async () => {
        await client.end().catch(() => undefined);
        await stop();
      },
    };
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

type EmbeddedServer = Awaited<ReturnType<typeof startEmbeddedServer>>;

function urlOf(settings: EmbeddedServer["settings"]): string {
  const { host, port } = settings.hosts[0]!;
  const login = `${encodeURIComponent(settings.user)}:${encodeURIComponent(settings.password ?? "")}`;
  return `postgresql://${login}@${encodeURIComponent(host)}:${port}/${encodeURIComponent(settings.database)}`;
}
