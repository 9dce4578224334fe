/**
 * A PostgreSQL server of a test's own, which can go away in all the ways that servers do: killed and started again,
 * or stopped so that its connections stand and nothing is answered.
 */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedServer } from "@queen/broker";
import pg from "pg";
import type { Row } from "./database.ts";

export interface FragileServer {
  readonly url: string;
  query(text: string, values?: unknown[], database?: string): Promise<Row[]>;
  /** SIGKILL, to all of its processes. */
  kill(): Promise<void>;
  /** After `kill`, on the same address. */
  restart(): Promise<void>;
  /** SIGSTOP, to all of its processes. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** However it was left: it runs. */
  ensure(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFragileServer(): Promise<FragileServer> {
  const folder = mkdtempSync(join(tmpdir(), "queen-fragile-"));
  chmodSync(folder, 0o711); // as root, the server runs as another user, who must get in
  const dataDir = join(folder, "data");
  const start = (port?: number): ReturnType<typeof startEmbeddedServer> =>
    startEmbeddedServer({
      dataDir,
      log: () => undefined,
      settings: { max_connections: "100" },
      ...(port === undefined ? {} : { port }),
    });
  let server = await start();
  let isDead = false;
  const { user, password, hosts } = server.settings;
  const { port } = hosts[0]!;
  const url = `postgres://${user}:${encodeURIComponent(password!)}@127.0.0.1:${port}/postgres`;
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of processesIn(join(dataDir, "postgres"))) {
      try {
        process.kill(pid, name);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  };
  return {
    url,
    async query(text, values, database = "postgres") {
      const client = new pg.Client({ connectionString: url.replace(/postgres$/, database) });
      client.on("error", () => undefined);
      await client.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        await client.end();
      }
    },
    async kill() {
      isDead = true;
      signal("SIGKILL");
      await server.exited;
      await server.stop();
    },
    async restart() {
      server = await start(port);
      isDead = false;
    },
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    async ensure() {
      signal("SIGCONT");
      if (!isDead) return;
      server = await start(port);
      isDead = false;
    },
    async stop() {
      signal("SIGCONT");
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Every PostgreSQL process works in its cluster's folder. */
function processesIn(clusterDir: string): number[] {
  const folder = realpathSync(clusterDir);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readlinkSync(`/proc/${pid}/cwd`) === folder &&
          readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("postgres")
        );
      } catch {
        return false; // it ended meanwhile
      }
    })
    .map(Number);
}
