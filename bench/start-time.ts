/** The start time is how long a user waits from `npm start`, with the PostgreSQL built in, to the first push answered. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort, startLogged, stopChild, temporaryFolder } from "./processes/children.ts";

const START_MS_MAX = 120_000;
const STOP_MS_MAX = 20_000;
const RETRY_MS = 10;
// What would name another PostgreSQL than the one built in.
const DATABASE_VARIABLES = /^(DATABASE_URL|PG)/;

/** In milliseconds. Cold: in a new folder. Warm: the second start in it. */
export async function measureStart(from: "cold" | "warm", signal: AbortSignal): Promise<number> {
  const folder = temporaryFolder("start");
  try {
    const cold = await startOnce(folder.path, signal);
    return from === "cold" ? cold : await startOnce(folder.path, signal);
  } finally {
    folder.remove();
  }
}

async function startOnce(folder: string, signal: AbortSignal): Promise<number> {
  const port = await freePort();
  const others = Object.keys(process.env).filter((name) => DATABASE_VARIABLES.test(name));
  const startedAtMs = performance.now();
  const { child, logTail } = startLogged("npm", ["start"], {
    folder,
    cwd: fileURLToPath(new URL("../../", import.meta.url)),
    env: {
      ...Object.fromEntries(others.map((name) => [name, undefined])),
      PORT: String(port),
      HOST: "127.0.0.1",
      QUEEN_DATA_DIR: `${folder}/data`,
    },
  });
  try {
    while (performance.now() - startedAtMs < START_MS_MAX) {
      signal.throwIfAborted();
      if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}:\n${logTail()}`);
      if (await isPushed(port)) return performance.now() - startedAtMs;
      await sleep(RETRY_MS);
    }
    throw new Error(`no push was answered within ${START_MS_MAX / 1000} s of npm start:\n${logTail()}`);
  } finally {
    await stopChild(child);
    // The broker ends its PostgreSQL before itself; npm may be gone a moment before the broker.
    const giveUpAtMs = performance.now() + STOP_MS_MAX;
    while (existsSync(`${folder}/data/postgres/postmaster.pid`) && performance.now() < giveUpAtMs) {
      await sleep(RETRY_MS);
    }
  }
}

async function isPushed(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/push`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ items: [{ queue: "first", payload: { first: true } }] }),
      signal: AbortSignal.timeout(5_000),
    });
    const results = (await answer.json()) as { status?: string }[];
    return answer.status === 201 && results[0]?.status === "queued";
  } catch {
    return false;
  }
}
