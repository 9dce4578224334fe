/**
 * The packages of this folder are clients of peers. The product does not depend on them: they have a lock file of
 * their own and are installed when the bench first needs them.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../peers/", import.meta.url));
const require = createRequire(`${FOLDER}package.json`);

/** Whether what the lock file names is there. */
const areInstalled = (): boolean => {
  try {
    const wanted = readFileSync(`${FOLDER}package.json`, "utf8");
    const { dependencies } = JSON.parse(wanted) as { dependencies: Record<string, string> };
    return Object.entries(dependencies).every(([name, version]) => versionOf(name) === version);
  } catch {
    return false;
  }
};

export function installPackages(log: (line: string) => void): void {
  if (areInstalled()) return;
  log("installing the clients of the peers (npm ci in bench/peers)");
  execFileSync("npm", ["ci", "--loglevel", "error"], { cwd: FOLDER, stdio: ["ignore", "ignore", "inherit"] });
}

/** The module, as far as the caller describes it. */
export function load<T>(name: string): T {
  return require(name) as T;
}

export function versionOf(name: string): string {
  const text = readFileSync(`${FOLDER}node_modules/${name}/package.json`, "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

export const fileIn = (name: string, path: string): string => `${FOLDER}node_modules/${name}/${path}`;

/** A program on PATH or in one of the folders, or null. */
export function findProgram(name: string, folders: readonly string[] = ["/usr/sbin"]): string | null {
  const places = [...(process.env.PATH ?? "").split(":"), ...folders];
  return places.map((folder) => `${folder}/${name}`).find((path) => existsSync(path)) ?? null;
}
