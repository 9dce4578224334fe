/**
 * The embedded server is the PostgreSQL that the broker starts for itself when it is given none. It is a
 * full and durable one: its data survives the broker, a crash of either, and the loss of power.
 *
 *   claim the folder ──▶ stop a server left behind ──▶ make the cluster, if new ──▶ start ──▶ ready
 *                                                                                               │
 *   release the folder ◀── fast shutdown, or immediate if that hangs ◀── stop() ────────────────┤
 *                                                            it ends by itself ──▶ `exited` ◀───┘
 *
 * It listens on 127.0.0.1 and, where the path is short enough, on a Unix socket, which is faster and then
 * the one the broker uses. Both ask for the password in the data folder, so other local users stay out.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type DatabaseSettings, databaseSettings } from "./database-settings.ts";
import { type Account, accountFor, PROGRAM_ENV } from "./embedded-account.ts";
import { chooseAddress } from "./embedded-address.ts";
import { type Binaries, findInstalledBinaries, prepareBinaries } from "./embedded-binaries.ts";
import {
  type DataFolder,
  openDataFolder,
  openToAccount,
  prepareCluster,
  readPostmaster,
} from "./embedded-cluster.ts";
import { claimFolder, type Ownership, serverProcesses } from "./embedded-owner.ts";

export { defaultDataDir } from "./embedded-cluster.ts";

export interface EmbeddedServerOptions {
  readonly dataDir: string;
  /** The TCP port on 127.0.0.1. Without it, the port of the last start, or any free one. */
  readonly port?: number;
  readonly log: (line: string) => void;
  /** PostgreSQL settings that replace the defaults, such as { shared_buffers: "1GB" }. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedServer {
  readonly settings: DatabaseSettings;
  readonly dataDir: string;
  readonly pid: number;
  /** Ends the server and frees the folder. A second call gets the promise of the first. */
  stop(): Promise<void>;
  /** Resolves with the reason if the server ends without stop(). stop() is still due then. */
  readonly exited: Promise<string>;
}

const SETTINGS_DEFAULT: Readonly<Record<string, string>> = {
  shared_buffers: "256MB",
  max_connections: "100",
  // Twice the default: a queue writes much and keeps little, and each checkpoint makes it write pages whole.
  max_wal_size: "2GB",
  jit: "off",
};

// What makes a commit durable, and what the rest of this file relies on.
const SETTINGS_FIXED: Readonly<Record<string, string>> = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  listen_addresses: "127.0.0.1",
  logging_collector: "off",
  log_destination: "stderr",
};

const LOG_BYTES_MAX = 10 * 1024 * 1024;
const PROGRESS_EVERY_MS = 3_000;
// Longer than the last checkpoint takes on a slow disk. An immediate shutdown loses nothing committed, but
// the next start has to read it from the log.
const FAST_STOP_MS = 20_000;
// PostgreSQL itself kills its processes 5 s after an immediate shutdown.
const IMMEDIATE_STOP_MS = 15_000;
const START_ATTEMPTS_MAX = 5;

/** Starts PostgreSQL on the data folder and returns when it takes connections, even after a long recovery. */
export async function startEmbeddedServer(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
  const installed = findInstalledBinaries();
  const settings = mergeSettings(options.settings ?? {});
  const folder = openDataFolder(options.dataDir);
  const ownership = await claimFolder(folder.path, options.log);
  try {
    await stopServerLeftBehind(folder, ownership.tookOver, options.log);
    const account = accountFor(folder.cluster);
    openToAccount(folder, account);
    const binaries = await prepareBinaries(installed, account, folder.path, options.log);
    const password = await prepareCluster(folder, binaries, account, options.log);
    const { running, host, port } = await startOnFreePort(options, folder, binaries, account, settings);
    return {
      settings: databaseSettings({
        hosts: [{ host, port }],
        database: "postgres",
        user: "postgres",
        password,
        ssl: false,
        source: "embedded",
      }),
      dataDir: folder.path,
      pid: running.pid,
      ...stopOnce(running, folder.cluster, ownership),
    };
  } catch (error) {
    // A server left behind that would not end still needs its note for the next start.
    if (ownership.tookOver && serverProcesses(folder.cluster).length > 0) ownership.leave();
    else ownership.release();
    throw error;
  }
}

function mergeSettings(chosen: Readonly<Record<string, string>>): Record<string, string> {
  const settings: Record<string, string> = { ...SETTINGS_DEFAULT };
  for (const [name, value] of Object.entries(chosen)) {
    const key = name.toLowerCase();
    if (!/^[a-z_][a-z0-9_.]*$/.test(key))
      throw new Error(`"${name}" is no PostgreSQL setting: a name has letters, digits and "_".`);
    const fixed =
      key === "port" || key === "unix_socket_directories" ? "chosen by Queen" : SETTINGS_FIXED[key];
    if (fixed !== undefined && fixed !== value)
      throw new Error(
        `The PostgreSQL setting ${key} is ${fixed} in the built-in server: leave it out, ` +
          "or set DATABASE_URL to a server of your own.",
      );
    settings[key] = value;
  }
  return { ...settings, ...SETTINGS_FIXED };
}

/** Ends a server whose broker died. A new one starts faster than doubts about an old one are cleared. */
async function stopServerLeftBehind(
  folder: DataFolder,
  tookOver: boolean,
  log: (line: string) => void,
): Promise<void> {
  const pid = readPostmaster(folder.cluster)?.pid;
  const left = serverProcesses(folder.cluster);
  if (left.length > 0) {
    if (!tookOver)
      throw new Error(
        `PostgreSQL runs on ${folder.cluster} as process ${pid ?? left[0]}, and Queen did not start it: ` +
          "stop it with pg_ctl stop, set QUEEN_DATA_DIR to another folder, or set DATABASE_URL to use it as it is.",
      );
    log(`A broker ended without stopping its PostgreSQL (process ${pid ?? left[0]}): stopping it first.`);
    const targets = pid !== undefined && left.includes(pid) ? [pid] : left;
    const isGone = (): boolean => serverProcesses(folder.cluster).length === 0;
    for (const target of targets) signal(target, "SIGINT");
    if (!(await isTrueWithin(FAST_STOP_MS, isGone))) {
      for (const target of targets) signal(target, "SIGQUIT");
      if (!(await isTrueWithin(IMMEDIATE_STOP_MS, isGone)))
        throw new Error(
          `PostgreSQL process ${targets[0]} on ${folder.cluster} does not end: end it with kill -9.`,
        );
    }
  }
  // No process works on the folder, so whatever process has the id in this file, it is not the server.
  rmSync(join(folder.cluster, "postmaster.pid"), { force: true });
}

async function startOnFreePort(
  options: EmbeddedServerOptions,
  folder: DataFolder,
  binaries: Binaries,
  account: Account,
  settings: Readonly<Record<string, string>>,
): Promise<{ running: RunningServer; host: string; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const address = await chooseAddress(folder, account, options.port);
    const { host, port } = address;
    const all = { ...settings, ...address.settings };
    const args = [
      "-D",
      folder.cluster,
      ...Object.entries(all).flatMap(([key, value]) => ["-c", `${key}=${value}`]),
    ];
    const running = new RunningServer(binaries.postgres, args, account, folder);
    if (await running.isReady(options.log)) {
      options.log(
        `PostgreSQL ${binaries.version} is ready on 127.0.0.1:${port} with its data in ${folder.path}.`,
      );
      return { running, host, port };
    }
    const reason = await running.ended;
    // The port was taken since it was looked at, or processes of a killed server are still about to end.
    if (!/Address already in use|shared memory block/.test(reason) || attempt >= START_ATTEMPTS_MAX)
      throw new Error(
        "The built-in PostgreSQL did not start: correct what it says, set QUEEN_DATA_DIR to another folder, " +
          `or set DATABASE_URL to a PostgreSQL 15 or later. ${reason}`,
      );
    await sleep(1_000);
  }
}

/** One postgres process that this process started, from its start to its end. */
class RunningServer {
  /** Resolves when the process has ended, with the reason and the end of its log. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #folder: DataFolder;
  readonly #logStart: number;
  #hasEnded = false;

  constructor(postgres: string, args: string[], account: Account, folder: DataFolder) {
    this.#folder = folder;
    const logFd = openLog(folder.log);
    this.#logStart = statSync(folder.log).size;
    // A session of its own: Ctrl-C in the terminal goes to the broker, which stops PostgreSQL in its time.
    this.#child = spawn(postgres, args, {
      ...account.ids,
      cwd: "/",
      env: PROGRAM_ENV,
      detached: true,
      stdio: ["ignore", logFd, logFd],
    });
    closeSync(logFd);
    // A broker that leaves by process.exit() does not leave its server behind.
    const stopAtExit = (): void => this.signal("SIGINT");
    process.once("exit", stopAtExit);
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#hasEnded = true;
        process.off("exit", stopAtExit);
        resolve(`PostgreSQL ended with ${how}. Its log is ${folder.log} and ends so:\n${this.#logTail(20)}`);
      };
      this.#child.once("error", (error) => end(error.message));
      this.#child.once("exit", (code, by) => end(by === null ? `exit code ${code}` : `signal ${by}`));
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  signal(name: NodeJS.Signals): void {
    if (!this.#hasEnded) this.#child.kill(name);
  }

  /** Waits until the server takes connections (true) or has ended (false). */
  async isReady(log: (line: string) => void): Promise<boolean> {
    const startedMs = performance.now();
    let progressMs = startedMs;
    while (!this.#hasEnded) {
      const postmaster = readPostmaster(this.#folder.cluster);
      if (postmaster?.pid === this.#child.pid && postmaster?.status === "ready") return true;
      const nowMs = performance.now();
      if (nowMs - progressMs >= PROGRESS_EVERY_MS) {
        progressMs = nowMs;
        const seconds = Math.round((nowMs - startedMs) / 1_000);
        log(`PostgreSQL has been starting for ${seconds} s, and says: ${this.#logTail(1).trim()}`);
      }
      await sleep(20);
    }
    return false;
  }

  /** The last lines that this server wrote. */
  #logTail(linesMax: number): string {
    try {
      const text = readFileSync(this.#folder.log).subarray(this.#logStart).toString("utf8");
      return text.trimEnd().split("\n").slice(-linesMax).join("\n");
    } catch (error) {
      return `(${(error as Error).message})`;
    }
  }
}

function stopOnce(
  running: RunningServer,
  clusterDir: string,
  ownership: Ownership,
): Pick<EmbeddedServer, "stop" | "exited"> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    const hasEnded = (): boolean => running.hasEnded && serverProcesses(clusterDir).length === 0;
    running.signal("SIGINT");
    if (!(await isTrueWithin(FAST_STOP_MS, hasEnded))) {
      running.signal("SIGQUIT");
      if (!(await isTrueWithin(IMMEDIATE_STOP_MS, hasEnded)))
        throw new Error(`PostgreSQL process ${running.pid} does not end: end it with kill -9.`);
    }
    ownership.release();
  };
  return {
    stop: () => (stopping ??= stop()),
    exited: new Promise((resolve) => {
      void running.ended.then((reason) => {
        if (stopping === undefined) resolve(reason);
      });
    }),
  };
}

function openLog(file: string): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(file, `${file}.1`);
  return openSync(file, "a", 0o600);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function isTrueWithin(ms: number, condition: () => boolean): Promise<boolean> {
  const endMs = performance.now() + ms;
  while (!condition()) {
    if (performance.now() >= endMs) return false;
    await sleep(20);
  }
  return true;
}
