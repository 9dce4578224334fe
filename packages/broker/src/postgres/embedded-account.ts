/**
 * The account is the operating-system user that the embedded PostgreSQL runs as: the broker's own user, or,
 * because PostgreSQL refuses root, another one when the broker is root.
 */
import { execFile } from "node:child_process";
import { chownSync, lchownSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Account {
  readonly name: string;
  /** Only where the account is not the broker's own user; it goes into the options of `spawn` as it is. */
  readonly ids?: { readonly uid: number; readonly gid: number };
}

/** What a finished program left: `code` is its exit code, or the reason why it could not be started. */
export interface ProgramResult {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

// What PostgreSQL's programs see: nothing of the broker's variables, so no PGPORT or PGDATA misleads them.
export const PROGRAM_ENV = Object.freeze({ PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" });

/** The account for a cluster folder: as root, the folder's owner, or else a user made for such work. */
export function accountFor(clusterDir: string): Account {
  if (process.getuid?.() !== 0) return { name: process.env.USER ?? `uid ${process.getuid?.()}` };
  const users = readUsers();
  const owner = statSync(clusterDir, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) {
    const name = users.find((user) => user.uid === owner.uid)?.name ?? `uid ${owner.uid}`;
    return { name, ids: { uid: owner.uid, gid: owner.gid } };
  }
  for (const name of ["postgres", "nobody", "daemon"]) {
    const user = users.find((candidate) => candidate.name === name && candidate.uid > 0);
    if (user !== undefined) return { name, ids: { uid: user.uid, gid: user.gid } };
  }
  return { name: "uid 65534", ids: { uid: 65_534, gid: 65_534 } };
}

function readUsers(): { name: string; uid: number; gid: number }[] {
  try {
    return readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .map((line) => line.split(":"))
      .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }));
  } catch {
    return [];
  }
}

/** Runs a program to its end as the account. A failure is a result, not an exception. */
export function runAs(account: Account, file: string, args: string[], input = ""): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const options = { ...account.ids, cwd: "/", env: PROGRAM_ENV, maxBuffer: 1 << 24 };
    try {
      const child = execFile(file, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? "unknown"), stdout, stderr });
      });
      child.stdin?.on("error", () => undefined); // a program that ends early does not read its input
      child.stdin?.end(input);
    } catch (error) {
      const { code = "unknown", message } = error as NodeJS.ErrnoException;
      resolve({ code, stdout: "", stderr: message });
    }
  });
}

/** The first folder on the way to `path`, itself included, that the account may not enter. */
export function folderClosedTo(account: Account, path: string): string | undefined {
  if (account.ids === undefined) return undefined;
  const { uid, gid } = account.ids;
  const stat = statSync(path);
  const bit = stat.uid === uid ? 0o100 : stat.gid === gid ? 0o010 : 0o001;
  const above = dirname(path) === path ? undefined : folderClosedTo(account, dirname(path));
  return above ?? ((stat.mode & bit) === 0 ? path : undefined);
}

/** Gives a file, or a folder with all it holds, to the account. */
export function giveTo(account: Account, path: string): void {
  if (account.ids === undefined) return;
  const { uid, gid } = account.ids;
  if (statSync(path).isDirectory()) {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) giveTo(account, inside);
      else lchownSync(inside, uid, gid);
    }
  }
  chownSync(path, uid, gid);
}
