/** Processes of a run that must not outlive it, and what can be seen of them in /proc. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const owned = new Set<number>();
process.on("exit", () => {
  for (const pid of owned) signal(pid, "SIGKILL");
});

/** Ends with this process, whatever happens to it, until it is disowned. */
export const own = (pid: number): Set<number> => owned.add(pid);
export const disown = (pid: number): boolean => owned.delete(pid);

/** A process that is gone already needs no signal. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The process, its children, their children, and so on, the oldest first. */
export function familyOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (state !== "Z")
        children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(name)]);
    } catch {} // it ended meanwhile
  }
  const family = [pid];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2)[0] !== "Z";
  } catch {
    return false;
  }
}

export async function untilGone(pids: readonly number[], msMax: number): Promise<boolean> {
  const endMs = performance.now() + msMax;
  while (pids.some(isAlive)) {
    if (performance.now() > endMs) return false;
    await sleep(10);
  }
  return true;
}

/** Megabytes of memory that the process has in RAM. */
export function memoryMb(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) / 1024;
  } catch {
    return 0;
  }
}
