/**
 * PgBouncer in transaction mode before a PostgreSQL server: its clients share few sessions of the server, and each
 * transaction may meet another one. It runs as a process of its own, from Debian's package.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./broker.ts";

export interface PgBouncer {
  readonly port: number;
  readonly pid: number;
  /** The same database, through PgBouncer. */
  urlOf(databaseUrl: string): string;
  start(): Promise<void>;
  /** SIGKILL: all connections are cut. */
  kill(): Promise<void>;
  /** SIGINT: clients are asked to go, transactions in flight are ended first. */
  stop(): Promise<void>;
  output(): string;
  dispose(): Promise<void>;
}

const PROGRAM = "/usr/sbin/pgbouncer";
const START_MS_MAX = 10_000;
const STOP_MS_MAX = 10_000;
// Fewer than a broker has connections, so that they do share.
const SERVER_SESSIONS = 5;

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export async function startPgBouncer(
  serverUrl: string,
  settings: Record<string, string> = {},
): Promise<PgBouncer> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: apt-get install pgbouncer`);
  const folder = mkdtempSync(join(tmpdir(), "queen-pgbouncer-"));
  chmodSync(folder, 0o711); // PgBouncer refuses root, and runs as another user, who must get in
  const port = await freePort();
  const { hostname, port: serverPort, username, password } = new URL(serverUrl);
  const server = `host=${hostname} port=${serverPort || 5432} user=${username || "postgres"}`;
  const secret = password ? ` password='${decodeURIComponent(password).replaceAll("'", "''")}'` : "";
  const lines = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: "transaction",
    max_client_conn: 2_000,
    default_pool_size: SERVER_SESSIONS,
    server_login_retry: 1, // seconds; the default of 15 would be added to every outage
    ...settings,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name} = ${value}`);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, `[databases]\n* = ${server}${secret}\n\n[pgbouncer]\n${text.join("\n")}\n`);
  chmodSync(file, 0o644);

  let child: ChildProcess | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  let output = "";
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child?.kill(signal);
    const patience = setTimeout(() => child?.kill("SIGKILL"), STOP_MS_MAX);
    await ended;
    clearTimeout(patience);
  };
  const bouncer: PgBouncer = {
    port,
    get pid() {
      return child?.pid ?? -1;
    },
    urlOf: (databaseUrl) => {
      const url = new URL(databaseUrl);
      url.host = `127.0.0.1:${port}`;
      return url.href;
    },
    async start() {
      const own = spawn(PROGRAM, [file], { ...account(), cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
      child = own;
      running.add(own);
      let isOver = false;
      ended = new Promise((resolve) => {
        own.once("error", resolve);
        own.once("exit", resolve);
      }).then(() => {
        isOver = true;
        running.delete(own);
      });
      for (const stream of [own.stdout, own.stderr])
        stream.setEncoding("utf8").on("data", (chunk: string) => {
          output = (output + chunk).slice(-100_000);
        });
      const endMs = performance.now() + START_MS_MAX;
      while (!(await answers(port))) {
        if (isOver || performance.now() > endMs) throw new Error(`PgBouncer did not start:\n${output}`);
        await sleep(20);
      }
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGINT"),
    output: () => output,
    async dispose() {
      await end("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await bouncer.start();
  } catch (error) {
    await bouncer.dispose();
    throw error;
  }
  return bouncer;
}

function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const finish = (isThere: boolean): void => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
  });
}
