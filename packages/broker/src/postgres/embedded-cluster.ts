/**
 * The cluster is the embedded PostgreSQL's data on disk. The data folder holds it and what belongs to it:
 *
 *   postgres/       the cluster, owned by the account, as initdb made it
 *   socket/         the folder of the Unix socket
 *   password        the password of the superuser "postgres"
 *   port            the TCP port of the last start, used again if it is free
 *   owner.json      the broker process that runs the server
 *   server.log      what the server wrote; server.log.1 is the part before
 *   binaries-…/     PostgreSQL's programs, where a copy was needed
 *
 * initdb works in a folder of another name, which is renamed when it is complete and on disk: a folder
 * named postgres/ is always a whole cluster.
 */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { type Account, folderClosedTo, giveTo, runAs } from "./embedded-account.ts";
import type { Binaries } from "./embedded-binaries.ts";

export interface DataFolder {
  readonly path: string;
  readonly cluster: string;
  readonly socket: string;
  readonly password: string;
  readonly port: string;
  readonly log: string;
}

const UNFINISHED = "postgres.unfinished-";

/** The data folder where none is chosen. */
export function defaultDataDir(): string {
  return process.getuid?.() === 0 ? "/var/lib/queen" : resolve("queen-data");
}

/** Makes the data folder if there is none; only its owner can look into it. */
export function openDataFolder(dataDir: string): DataFolder {
  try {
    mkdirSync(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
    if (lstatSync(join(dataDir, "PG_VERSION"), { throwIfNoEntry: false }) !== undefined)
      throw new Error("it is the data of another PostgreSQL");
    const path = realpathSync(dataDir);
    writeFileSync(join(path, ".writable"), "");
    rmSync(join(path, ".writable"));
    const inside = (name: string): string => join(path, name);
    return {
      path,
      cluster: inside("postgres"),
      socket: inside("socket"),
      password: inside("password"),
      port: inside("port"),
      log: inside("server.log"),
    };
  } catch (cause) {
    throw new Error(
      `The data folder ${dataDir} cannot be used (${(cause as Error).message}): set QUEEN_DATA_DIR to a ` +
        "folder that this user may write to, or DATABASE_URL to a PostgreSQL 15 or later.",
      { cause },
    );
  }
}

/** Lets the account into the data folder, and gives it what must be its own. */
export function openToAccount(folder: DataFolder, account: Account): void {
  if (account.ids === undefined) return;
  const { mode, uid } = statSync(folder.path);
  if (uid !== account.ids.uid && (mode & 0o001) === 0) chmodSync(folder.path, mode | 0o011);
  const closed = folderClosedTo(account, folder.path);
  if (closed !== undefined)
    throw new Error(
      `The built-in PostgreSQL runs as user ${account.name}, who may not enter ${closed}: set ` +
        "QUEEN_DATA_DIR to a folder that user can reach, such as /var/lib/queen, " +
        "or DATABASE_URL to a PostgreSQL 15 or later.",
    );
  if (statSync(folder.cluster, { throwIfNoEntry: false })?.uid === 0) giveTo(account, folder.cluster);
}

/** Makes the cluster if there is none, checks it if there is, and returns the superuser's password. */
export async function prepareCluster(
  folder: DataFolder,
  binaries: Binaries,
  account: Account,
  log: (line: string) => void,
): Promise<string> {
  for (const name of readdirSync(folder.path)) {
    if (name.startsWith(UNFINISHED))
      rmSync(join(folder.path, name), { recursive: true, force: true, maxRetries: 5 });
  }
  const isNew = !existsSync(folder.cluster) || readdirSync(folder.cluster).length === 0;
  if (!isNew) checkVersion(folder, binaries);

  const known = readPassword(folder.password);
  if (known !== undefined && !isNew) return known;
  const password = known ?? randomBytes(24).toString("hex");
  if (isNew) {
    log(`Making a new database with PostgreSQL ${binaries.version} in ${folder.cluster}.`);
    writePassword(folder.password, password);
    giveTo(account, folder.password);
    await makeCluster(folder, binaries, account);
  } else {
    log(`The file ${folder.password} is missing: giving the database a new password.`);
    await changePassword(folder, binaries, account, password);
    writePassword(folder.password, password);
  }
  return password;
}

function checkVersion(folder: DataFolder, binaries: Binaries): void {
  const file = join(folder.cluster, "PG_VERSION");
  if (!existsSync(file))
    throw new Error(
      `${folder.cluster} holds files but no PostgreSQL database (PG_VERSION is missing): move it away, ` +
        "or set QUEEN_DATA_DIR to another folder.",
    );
  const found = readFileSync(file, "utf8").trim();
  if (found === String(binaries.versionMajor)) return;
  throw new Error(
    `${folder.cluster} was made by PostgreSQL ${found}, and this is PostgreSQL ${binaries.versionMajor}: ` +
      `move the data with pg_upgrade or pg_dump, set QUEEN_DATA_DIR to another folder, or run ` +
      `PostgreSQL ${found} yourself and set DATABASE_URL to it.`,
  );
}

async function makeCluster(folder: DataFolder, binaries: Binaries, account: Account): Promise<void> {
  const unfinished = join(folder.path, UNFINISHED + randomBytes(6).toString("hex"));
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(account, unfinished);
  // initdb puts all it wrote on disk before it ends, which costs little: one folder of some 40 MB.
  const result = await runAs(account, binaries.initdb, [
    `--pgdata=${unfinished}`,
    "--username=postgres",
    `--pwfile=${folder.password}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
  ]);
  if (result.code !== 0) {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error(
      `PostgreSQL could not make a database in ${folder.path} (initdb ended with ${result.code}): correct ` +
        "what it says, set QUEEN_DATA_DIR to another folder, or set DATABASE_URL to a PostgreSQL 15 or later.\n" +
        result.stderr.trim(),
    );
  }
  renameSync(unfinished, folder.cluster);
  syncFolder(folder.path);
}

/** PostgreSQL without a network: the way in when nobody knows the password. */
async function changePassword(
  folder: DataFolder,
  binaries: Binaries,
  account: Account,
  password: string,
): Promise<void> {
  const args = ["--single", "-D", folder.cluster, "postgres"];
  const statement = `alter role postgres password '${password}'\n`;
  const result = await runAs(account, binaries.postgres, args, statement);
  if (result.code === 0 && !result.stderr.includes("ERROR")) return;
  throw new Error(
    `The database in ${folder.cluster} could not be given a new password: put back the file ` +
      `${folder.password}, or correct what PostgreSQL says.\n${result.stderr.trim()}`,
  );
}

function readPassword(file: string): string | undefined {
  return (existsSync(file) && readFileSync(file, "utf8").trim()) || undefined;
}

function writePassword(file: string, password: string): void {
  rmSync(file, { force: true });
  const fd = openSync(file, "wx", 0o600);
  writeFileSync(fd, `${password}\n`);
  fsyncSync(fd);
  closeSync(fd);
}

function syncFolder(path: string): void {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}

/** What postmaster.pid says: pid, folder, start, port, socket, address, shared memory and status, in lines. */
export function readPostmaster(clusterDir: string): { pid: number; status: string } | undefined {
  try {
    const lines = readFileSync(join(clusterDir, "postmaster.pid"), "utf8").split("\n");
    return { pid: Number(lines[0]), status: lines[7]?.trim() ?? "starting" };
  } catch {
    return undefined;
  }
}
