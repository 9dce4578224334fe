/** What processes use, as /proc shows it. */
import { readdirSync, readFileSync } from "node:fs";

const LOOK_EVERY_MS = 200;

/** Resident memory of all of them, in MB. */
export function rssMb(pids: readonly number[]): number {
  const kb = pids.map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0));
  return Math.round(kb.reduce((sum, each) => sum + each, 0) / 1024);
}

/** Files and connections that they have open. */
export const openHandles = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    try {
      return sum + readdirSync(`/proc/${pid}/fd`).length;
    } catch {
      return sum;
    }
  }, 0);

/** Watches until it is asked how much memory there was at most. */
export function watchMemory(pids: readonly number[]): () => number {
  let most = rssMb(pids);
  const timer = setInterval(() => {
    most = Math.max(most, rssMb(pids));
  }, LOOK_EVERY_MS);
  return () => {
    clearInterval(timer);
    return Math.max(most, rssMb(pids));
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
