/**
 * Children are the processes that a run starts: brokers, floors, generators, servers of peers.
 *
 * Each is stopped by whoever started it, in a `finally`. A server runs in a session of its own, so that Ctrl-C
 * reaches only the orchestrator, which ends the others in order. What does not end on SIGTERM is killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const START_MS_MAX = 60_000;
// A broker itself waits 10 s for requests in flight.
const STOP_MS_MAX = 20_000;
const TMPFS_MAGIC = 0x0102_1994;
const LOG_TAIL_BYTES = 4_096;

/** What has been started and must not outlive this process, whatever happens to it. */
const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) killGroup(child);
});

/** Makes the child end with this process; `stopChild` ends it earlier. */
export function adopt<T extends ChildProcess>(child: T): T {
  children.add(child);
  return child;
}

export interface LoggedChild {
  readonly child: ChildProcess;
  /** The end of what it has written. */
  logTail(): string;
}

/** Starts a server in a session of its own that writes to a file in the folder. */
export function startLogged(
  program: string,
  args: readonly string[],
  options: { folder: string; env?: NodeJS.ProcessEnv; cwd?: string },
): LoggedChild {
  const logFile = join(options.folder, "output.log");
  const log = openSync(logFile, "a");
  const child = spawn(program, args, {
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  // A program that cannot be started is noticed by whoever waits for it.
  child.on("error", () => undefined);
  adopt(child);
  return { child, logTail: () => readFileSync(logFile).subarray(-LOG_TAIL_BYTES).toString() };
}

export async function stopChild(child: ChildProcess): Promise<void> {
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

/** Asks until the answer is true. Throws if the child ends before, or after a minute. */
export async function waitUntil(
  what: string,
  child: ChildProcess,
  isReady: () => Promise<boolean>,
): Promise<void> {
  const giveUpAtMs = performance.now() + START_MS_MAX;
  while (performance.now() < giveUpAtMs) {
    if (child.pid === undefined) throw new Error(`${what} cannot be started`);
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${what} ended with ${child.signalCode ?? child.exitCode}`);
    }
    if (await isReady()) return;
    await sleep(50);
  }
  throw new Error(`${what} was not ready within ${START_MS_MAX / 1000} s`);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

export interface TemporaryFolder {
  readonly path: string;
  remove(): void;
}

/** A folder on a disk: in memory fsync costs nothing, and every rate would be wrong. */
export function temporaryFolder(name: string): TemporaryFolder {
  if (statfsSync(tmpdir()).type === TMPFS_MAGIC) {
    throw new Error(`${tmpdir()} is in memory, where fsync costs nothing: set TMPDIR to a folder on a disk`);
  }
  const path = mkdtempSync(join(tmpdir(), `queen-bench-${name}-`));
  // PostgreSQL refuses to run as root and must then reach its data as another user.
  chmodSync(path, 0o755);
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
}
