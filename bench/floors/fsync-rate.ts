/**
 * The fsync rate is how often a second one process can have a write of 8 KB on the disk for good: what bounds
 * commits that come one after the other. PostgreSQL's own program measures it where Debian's package is installed
 * (the embedded PostgreSQL has none); otherwise a loop of our own does the same.
 */
import { execFile } from "node:child_process";
import { closeSync, existsSync, fdatasyncSync, openSync, readdirSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { temporaryFolder } from "../processes/children.ts";

export interface FsyncRate {
  readonly perSecond: number;
  readonly by: "pg_test_fsync" | "own loop of fdatasync";
}

const DEBIAN = "/usr/lib/postgresql";
const SECONDS_PER_TEST = 1;
const WRITE_BYTES = 8_192;

export async function measureFsync(seconds: number): Promise<FsyncRate> {
  const folder = temporaryFolder("fsync");
  try {
    const program = findProgram();
    if (program === null)
      return { perSecond: loop(`${folder.path}/file`, seconds), by: "own loop of fdatasync" };
    const args = ["-s", String(SECONDS_PER_TEST), "-f", `${folder.path}/file`];
    const { stdout } = await promisify(execFile)(program, args);
    return { perSecond: parseFdatasync(stdout), by: "pg_test_fsync" };
  } finally {
    folder.remove();
  }
}

/** The newest one that Debian's packages brought. */
function findProgram(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const programs = versions.map((version) => `${DEBIAN}/${version}/bin/pg_test_fsync`);
  return programs.find((program) => existsSync(program)) ?? null;
}

/** The first rate of fdatasync, which is that of one write. */
export function parseFdatasync(output: string): number {
  const match = /^\s*fdatasync\s+([\d.]+) ops\/sec/m.exec(output);
  if (!match) throw new Error(`pg_test_fsync told no rate of fdatasync:\n${output}`);
  return Math.round(Number(match[1]));
}

export function loop(path: string, seconds: number): number {
  const file = openSync(path, "w");
  const block = Buffer.alloc(WRITE_BYTES);
  const startedAtMs = performance.now();
  let writes = 0;
  try {
    while (performance.now() - startedAtMs < seconds * 1000) {
      writeSync(file, block, 0, block.length, 0);
      fdatasyncSync(file);
      writes += 1;
    }
    return Math.round((writes * 1000) / (performance.now() - startedAtMs));
  } finally {
    closeSync(file);
  }
}
