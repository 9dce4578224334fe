/** A loopback server is a peer's own server, started for one run on a free port of 127.0.0.1. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import type { Address } from "../http-connection.ts";
import { startLogged, stopChild, waitUntil } from "../processes/children.ts";

export interface LoopbackServer {
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** Starts the program and returns when it takes connections at the address. */
export async function startLoopbackServer(
  program: string,
  args: readonly string[],
  options: { folder: string; address: Address; env?: NodeJS.ProcessEnv },
): Promise<LoopbackServer> {
  const { child, logTail } = startLogged(program, args, { ...options, cwd: options.folder });
  const stop = (): Promise<void> => stopChild(child);
  try {
    await waitUntil(program, child, () => takesConnections(options.address));
    return { child, stop };
  } catch (error) {
    const tail = logTail();
    await stop();
    throw new Error(`${program} did not become ready; its log ends with:\n${tail}`, { cause: error });
  }
}

export async function takesConnections(address: Address): Promise<boolean> {
  const socket = connect(address);
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(1_000) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
