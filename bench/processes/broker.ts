/** A target is what the generator sends its requests to: one broker or several on one database, or the HTTP floor. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Address } from "../http-connection.ts";
import {
  adopt,
  freePort,
  START_MS_MAX,
  startLogged,
  stopChild,
  temporaryFolder,
  waitUntil,
} from "./children.ts";

export interface Target {
  readonly addresses: readonly Address[];
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

/** How many brokers share the database, and how many workers each of them has; null is the broker's default. */
export interface Topology {
  readonly brokers: number;
  readonly workers: number | null;
}

export async function startBrokers(databaseUrl: string, topology: Topology): Promise<Target> {
  const targets: Target[] = [];
  const stop = async (): Promise<void> => {
    for (const target of targets) await target.stop();
  };
  try {
    // One after the other: the first migrates the schema.
    for (let index = 0; index < topology.brokers; index += 1) {
      targets.push(await startBroker(databaseUrl, topology.workers));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    addresses: targets.flatMap(({ addresses }) => addresses),
    pids: targets.flatMap(({ pids }) => pids),
    stop,
  };
}

async function startBroker(databaseUrl: string, workers: number | null): Promise<Target> {
  const program = fileURLToPath(new URL("../../../packages/broker/dist/src/main.js", import.meta.url));
  const folder = temporaryFolder("broker");
  const address: Address = { host: "127.0.0.1", port: await freePort() };
  const { child, logTail } = startLogged(process.execPath, ["--enable-source-maps", program], {
    folder: folder.path,
    env: {
      PORT: String(address.port),
      HOST: address.host,
      DATABASE_URL: databaseUrl,
      // Its spool goes beside this folder.
      QUEEN_DATA_DIR: `${folder.path}/data`,
      ...(workers === null ? {} : { NUM_WORKERS: String(workers) }),
    },
  });
  const stop = async (): Promise<void> => {
    await stopChild(child);
    folder.remove();
  };
  try {
    await waitUntil("the broker", child, () => isHealthy(address));
    return { addresses: [address], pids: [child.pid!], stop };
  } catch (error) {
    const tail = logTail();
    await stop();
    throw new Error(`the broker did not become ready; its log ends with:\n${tail}`, { cause: error });
  }
}

async function isHealthy(address: Address): Promise<boolean> {
  const url = `http://${address.host}:${address.port}/readyz`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await answer?.arrayBuffer().catch(() => undefined);
  return answer?.status === 200;
}

/** The HTTP floor, which answers every push as a broker answers one with so many messages. */
export async function startHttpFloor(batch: number): Promise<Target> {
  const program = fileURLToPath(new URL("../floors/http-floor.js", import.meta.url));
  const child = adopt(fork(program, [String(batch)], { stdio: "inherit" }));
  const stop = (): Promise<void> => stopChild(child);
  try {
    const [message] = (await once(child, "message", { signal: AbortSignal.timeout(START_MS_MAX) })) as [
      { port: number },
    ];
    return { addresses: [{ host: "127.0.0.1", port: message.port }], pids: [child.pid!], stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
