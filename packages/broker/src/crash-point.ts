/**
 * A crash point is a named moment between two steps. `QUEEN_CRASH_AT=<name>` kills the process there, without a
 * word, the first time it comes by; `<name>:3` the third time. Tests use it to crash a broker between any two steps.
 */
export type CrashPoint =
  | "push-before-append"
  | "push-after-append"
  | "pop-after-take"
  | "spool-before-write"
  | "spool-before-sync"
  | "spool-after-sync"
  | "drain-before-append"
  | "drain-after-append"
  | "drain-after-settle"
  | "spool-before-unlink";

const [wanted = "", count = "1"] = (process.env.QUEEN_CRASH_AT ?? "").split(":");
let left = Number(count);

export function crashPoint(name: CrashPoint): void {
  if (wanted === name && --left === 0) process.kill(process.pid, "SIGKILL");
}
