/** The way to an embedded server that another process, a broker, runs: by what it left in its data folder. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type DatabaseSettings, databaseSettings } from "./database-settings.ts";
import { serverProcesses } from "./embedded-owner.ts";

/** Whether there is a database in the folder, be it running or not. */
export const holdsCluster = (dataDir: string): boolean =>
  existsSync(join(resolve(dataDir), "postgres", "PG_VERSION"));

/** Undefined: no server runs on the folder, as far as can be seen from here. Throws where it may not be used. */
export function runningServer(dataDir: string): DatabaseSettings | undefined {
  const folder = resolve(dataDir);
  const cluster = join(folder, "postgres");
  // postmaster.pid: pid, folder, start, port, socket's folder, address, shared memory and status, in lines.
  const [pid, , , port, socket] = readOrEmpty(join(cluster, "postmaster.pid")).split("\n");
  if (!pid || !port || !serverProcesses(cluster).includes(Number(pid))) return undefined;
  return databaseSettings({
    hosts: [{ host: socket || "127.0.0.1", port: Number(port) }],
    database: "postgres",
    user: "postgres",
    password: readFileSync(join(folder, "password"), "utf8").trim(),
    ssl: false,
    source: "embedded",
  });
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
