/**
 * The owner of a data folder is the one broker process that may run PostgreSQL on it. Its name stands in
 * the file owner.json, which is removed only after the server has stopped: a file whose owner is dead
 * means that a server may still be running without one.
 *
 * A process is named by its id and its start time, because ids are used again. That can be checked only on
 * the same machine, between two starts of it, and in the same container. Elsewhere the owner is alive if it
 * keeps touching its file.
 */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  constants,
  copyFileSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Ownership {
  /** Whether a dead process owned the folder before, so that its server may still be running. */
  readonly tookOver: boolean;
  /** Frees the folder: no server runs on it. */
  release(): void;
  /** Lets go of the folder while a server runs on it: the next owner takes that over. */
  leave(): void;
}

/** A process that lives owns the folder. The message says what to do. */
export class FolderInUseError extends Error {
  override readonly name = "FolderInUseError";
}

interface Owner {
  readonly pid: number;
  readonly started: string;
  readonly place: string;
}

const UNKNOWN = "unknown";
const TOUCH_EVERY_MS = 1_000;
// Several missed touches: a busy process may be late with one, and a dead one should not cost a long wait.
const TOUCHES_MISSED_MS = 6_000;

/**
 * Makes this process the owner of the folder, or throws a FolderInUseError that names the process that is. `inUse` is what
 * that says: who uses the folder, and what to do.
 */
export async function claimFolder(
  dataDir: string,
  log: (line: string) => void,
  inUse: (dataDir: string, who: string) => string = dataInUse,
): Promise<Ownership> {
  const file = join(dataDir, "owner.json");
  const mine = JSON.stringify({ pid: process.pid, started: startOf(process.pid) ?? UNKNOWN, place: place() });
  let tookOver = false;
  while (!createFile(file, mine)) {
    const found = readText(file);
    if (found === undefined) continue; // released meanwhile
    const owner = parseOwner(found);
    if (await isAlive(owner, file, dataDir, log)) throw new FolderInUseError(inUse(dataDir, nameOf(owner)));
    tookOver = removeIfStill(file, found) || tookOver;
  }
  const touching = setInterval(() => {
    if (readText(file) === mine) attempt(() => utimesSync(file, new Date(), new Date()));
  }, TOUCH_EVERY_MS);
  touching.unref();
  return {
    tookOver,
    leave() {
      clearInterval(touching);
    },
    release() {
      clearInterval(touching);
      if (readText(file) === mine) rmSync(file, { force: true });
    },
  };
}

function nameOf(owner: Owner | undefined): string {
  const where = owner?.place === place() ? "" : " in another container or on another machine";
  return owner === undefined ? "Another process" : `Process ${owner.pid}${where}`;
}

const dataInUse = (dataDir: string, who: string): string =>
  `${who} is using the data folder ${dataDir}: stop it, set QUEEN_DATA_DIR to another folder, ` +
  "or set DATABASE_URL to a PostgreSQL that several brokers share.";

async function isAlive(
  owner: Owner | undefined,
  file: string,
  dataDir: string,
  log: (line: string) => void,
): Promise<boolean> {
  if (owner?.place === place() && owner.started !== UNKNOWN) return startOf(owner.pid) === owner.started;
  log(`Watching for ${TOUCHES_MISSED_MS / 1_000} s whether another process still uses ${dataDir}.`);
  const before = touchedAt(file);
  await sleep(TOUCHES_MISSED_MS);
  const after = touchedAt(file);
  return after !== undefined && after !== before;
}

/**
 * Removes the file of a dead owner. Another starting broker may have replaced it since it was read, so the
 * file is moved aside, looked at once more, and put back if it is not the same.
 */
function removeIfStill(file: string, content: string): boolean {
  const aside = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    renameSync(file, aside);
  } catch {
    return false; // another broker removed it first
  }
  const same = readText(aside) === content;
  if (!same) attempt(() => copyFileSync(aside, file, constants.COPYFILE_EXCL));
  rmSync(aside, { force: true });
  return same;
}

/** The processes of a PostgreSQL server on the cluster folder: its postmaster and all that it started. */
export function serverProcesses(clusterDir: string): number[] {
  if (process.platform !== "linux") {
    const lines = execFileSync("ps", ["-axo", "pid=,command="], { encoding: "utf8" }).split("\n");
    return lines.filter((line) => line.includes(`postgres -D ${clusterDir} `)).map(Number.parseFloat);
  }
  const folder = attempt(() => realpathSync(clusterDir));
  if (folder === undefined) return [];
  // Every PostgreSQL process works in the cluster folder, whatever its title says.
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => attempt(() => readlinkSync(`/proc/${pid}/cwd`)) === folder)
    .filter((pid) => readText(`/proc/${pid}/comm`)?.startsWith("postgres"))
    .map(Number);
}

/** When a process started, as a text to compare; undefined if there is none, or only a zombie. */
function startOf(pid: number): string | undefined {
  if (process.platform !== "linux") {
    const ps = (): string => execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return attempt(ps)?.trim() || undefined;
  }
  // After the name in parentheses, which may hold anything: state, 18 more fields, start in clock ticks.
  const fields = readText(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ");
  return fields === undefined || /[ZX]/.test(fields[0]!) ? undefined : fields[19];
}

/** Where process ids and start times can be compared: this start of this machine, in this container. */
function place(): string {
  const boot = readText("/proc/sys/kernel/random/boot_id")?.trim() ?? hostname();
  return `${boot} ${attempt(() => readlinkSync("/proc/self/ns/pid")) ?? ""}`;
}

function createFile(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function parseOwner(content: string): Owner | undefined {
  const owner = attempt(() => JSON.parse(content) as Owner);
  return typeof owner?.pid === "number" ? owner : undefined;
}

const readText = (path: string): string | undefined => attempt(() => readFileSync(path, "utf8"));
const touchedAt = (file: string): number | undefined => attempt(() => statSync(file).mtimeMs);

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
