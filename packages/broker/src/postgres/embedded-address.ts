/**
 * The address is where the embedded server listens: always a port on 127.0.0.1, and also a Unix socket where
 * the path is short enough and the file system takes one. The broker uses the socket then: a call over it
 * takes about a fifth less time.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Account, giveTo } from "./embedded-account.ts";
import type { DataFolder } from "./embedded-cluster.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
  /** What tells PostgreSQL to listen there. */
  readonly settings: Readonly<Record<string, string>>;
}

// Linux takes 107 bytes, macOS 103.
const SOCKET_PATH_BYTES_MAX = 103;

/** The chosen port, else the port of the last start if it is free, else any free one. */
export async function chooseAddress(
  folder: DataFolder,
  account: Account,
  portChosen: number | undefined,
): Promise<Address> {
  const port = await choosePort(portChosen || undefined, folder.port);
  writeFileSync(folder.port, `${port}\n`);
  const hasSocket = await prepareSocket(folder.socket, account);
  return {
    host: hasSocket ? folder.socket : "127.0.0.1",
    port,
    settings: {
      port: String(port),
      // A list, in which quotes keep spaces and commas of a path.
      unix_socket_directories: hasSocket ? `"${folder.socket.replaceAll('"', '""')}"` : "",
    },
  };
}

async function choosePort(chosen: number | undefined, portFile: string): Promise<number> {
  if (chosen !== undefined) {
    if ((await freePort(chosen)) === chosen) return chosen;
    throw new Error(`Port ${chosen} on 127.0.0.1 is taken: choose another one, or none to get a free one.`);
  }
  const last = existsSync(portFile) ? Number(readFileSync(portFile, "utf8")) : 0;
  const isPort = Number.isInteger(last) && last >= 0 && last <= 65_535;
  const port = (isPort ? await freePort(last) : undefined) ?? (await freePort(0));
  if (port !== undefined) return port;
  throw new Error(
    "No TCP port on 127.0.0.1 is free: free one, or set DATABASE_URL to a PostgreSQL 15 or later.",
  );
}

/** The port if it is free, any free one for 0, or undefined. */
function freePort(port: number): Promise<number | undefined> {
  return listenOnce({ port, host: "127.0.0.1" });
}

/** Whether PostgreSQL can have its socket in this folder; some shared file systems do not take sockets. */
async function prepareSocket(dir: string, account: Account): Promise<boolean> {
  if (Buffer.byteLength(join(dir, ".s.PGSQL.65535.lock")) > SOCKET_PATH_BYTES_MAX) return false;
  // No server runs now. What a killed one left here could keep the next one from starting.
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { mode: 0o700 });
  giveTo(account, dir);
  return (await listenOnce({ path: join(dir, "try") })) !== undefined;
}

function listenOnce(where: { port: number; host: string } | { path: string }): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(undefined));
    probe.listen(where, () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
