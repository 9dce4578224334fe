/**
 * The processes of a run: a database server for all runs, and for each run a fresh database, a target (the
 * broker, or the HTTP floor) and a generator.
 *
 * Each is stopped by whoever started it, in a `finally`. A target runs in a session of its own, so that Ctrl-C
 * reaches only the orchestrator, which ends the others in order. What does not end on SIGTERM is killed.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEmbeddedServer } from "@queen/broker";
import pg from "pg";
import { findPostmaster } from "./accounting.ts";
import type { Job, Report } from "./generator.ts";
import type { Address } from "./http-connection.ts";
import type { Phase } from "./load.ts";
import type { Figures } from "./measure.ts";

// The rules of the comparison: these two, and everything else as PostgreSQL has it by default.
const SERVER_SETTINGS = { shared_buffers: "2GB", max_connections: "300", max_wal_size: "1GB", jit: "on" };
const DURABILITY_SETTINGS = ["fsync", "synchronous_commit", "full_page_writes"] as const;
const RECORDED_SETTINGS = [...DURABILITY_SETTINGS, ...Object.keys(SERVER_SETTINGS), "wal_level"];

const START_MS_MAX = 60_000;
// The broker itself waits 10 s for requests in flight.
const STOP_MS_MAX = 20_000;
const TMPFS_MAGIC = 0x0102_1994;
const LOG_TAIL_BYTES = 4_096;

/** What has been started and must not outlive this process, whatever happens to it. */
const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) killGroup(child);
});

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
  if (statfsSync(tmpdir()).type === TMPFS_MAGIC) {
    throw new Error(`${tmpdir()} is in memory, where fsync costs nothing: set TMPDIR to a folder on a disk`);
  }
  const folder = mkdtempSync(join(tmpdir(), "queen-bench-"));
  // PostgreSQL refuses to run as root and must then reach its data as another user.
  chmodSync(folder, 0o755);
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const embedded = await startEmbeddedServer({
      dataDir: join(folder, "postgres"),
      log,
      settings: SERVER_SETTINGS,
    });
    const stop = async (): Promise<void> => {
      await embedded.stop();
      removeFolder();
    };
    return await useServer(urlOf(embedded.settings), stop).catch(async (error: unknown) => {
      await stop();
      throw error;
    });
  } catch (error) {
    removeFolder();
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

/** What the generator sends its requests to. */
export interface Target {
  readonly address: Address;
  readonly pid: number;
  stop(): Promise<void>;
}

export async function startBroker(databaseUrl: string, workers: number | null): Promise<Target> {
  const program = fileURLToPath(new URL("../../packages/broker/dist/src/main.js", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "queen-bench-broker-"));
  const logFile = join(folder, "broker.log");
  const address: Address = { host: "127.0.0.1", port: await freePort() };
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, ["--enable-source-maps", program], {
    env: {
      ...process.env,
      PORT: String(address.port),
      HOST: address.host,
      DATABASE_URL: databaseUrl,
      QUEEN_DATA_DIR: folder,
      ...(workers === null ? {} : { NUM_WORKERS: String(workers) }),
    },
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  children.add(child);
  const stop = async (): Promise<void> => {
    await stopChild(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await waitUntilReady(child, address);
    return { address, pid: child.pid!, stop };
  } catch (error) {
    const tail = readFileSync(logFile).subarray(-LOG_TAIL_BYTES).toString();
    await stop();
    throw new Error(`the broker did not become ready; its log ends with:\n${tail}`, { cause: error });
  }
}

export async function startFloor(): Promise<Target> {
  const child = fork(fileURLToPath(new URL("./http-floor.js", import.meta.url)), { stdio: "inherit" });
  children.add(child);
  const stop = (): Promise<void> => stopChild(child);
  try {
    const [message] = (await once(child, "message", { signal: AbortSignal.timeout(START_MS_MAX) })) as [
      { port: number },
    ];
    return { address: { host: "127.0.0.1", port: message.port }, pid: child.pid!, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs the job in a process of its own and returns its figures. It is killed when the signal aborts. */
export async function runGenerator(
  job: Job,
  onPhase: (phase: Phase) => void,
  signal: AbortSignal,
): Promise<Figures> {
  const child = fork(fileURLToPath(new URL("./generator.js", import.meta.url)), {
    stdio: "inherit",
    // Bodies and answers die young; with V8's default they are copied first, and the generator is the limit.
    execArgv: ["--max-semi-space-size=64"],
  });
  children.add(child);
  try {
    return await new Promise<Figures>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      child.once("error", reject);
      child.once("exit", (code, by) => reject(new Error(`the generator ended early (${by ?? code})`)));
      child.on("message", (report: Report) => {
        if (report.kind === "phase") onPhase(report.phase);
        else if (report.kind === "figures") resolve(report.figures);
        else reject(new Error(report.message));
      });
      child.send(job);
    });
  } finally {
    if (child.connected) child.disconnect();
    await stopChild(child);
  }
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const isOut = await Promise.race([exited.then(() => true), sleep(STOP_MS_MAX, false, { ref: false })]);
    if (!isOut) {
      killGroup(child);
      await exited;
    }
  }
  children.delete(child);
}

/** Kills a child that leads a process group together with its own children, any other child alone. */
function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

async function waitUntilReady(child: ChildProcess, address: Address): Promise<void> {
  const giveUpAtMs = performance.now() + START_MS_MAX;
  const url = `http://${address.host}:${address.port}/readyz`;
  while (performance.now() < giveUpAtMs) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`it ended with ${child.signalCode ?? child.exitCode}`);
    }
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
    await answer?.arrayBuffer().catch(() => undefined);
    if (answer?.status === 200) return;
    await sleep(50);
  }
  throw new Error(`GET /readyz did not answer 200 within ${START_MS_MAX / 1000} s`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
