/**
 * A crash point is a named moment between two steps. `QUEEN_CRASH_AT=<name>` kills the process there, without a
 * word, the first time it comes by; `<name>:3` the third time. Tests use it to crash a broker between any two steps.
 *
 *   <kind>-unsent   a batch of pushes, pops, acks, … was made, PostgreSQL knows nothing of it
 *   <kind>-sent     the call is on its way
 *   <kind>-done     it is committed, nobody was told
 *   answer-half     the first half of an answer has left
 *   spool-…         around the write, the sync and the removal of a spool's file
 *   drain-…         around the append of what was spooled, and the note that it was
 */
export type CrashPoint =
  | `${string}-${"unsent" | "sent" | "done"}`
  | "answer-half"
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
  if (isCrashPoint(name)) crash();
}

/** Whether the process is to crash now, where something must be done before. */
export const isCrashPoint = (name: CrashPoint): boolean => wanted === name && --left === 0;

export function crash(): void {
  process.kill(process.pid, "SIGKILL");
}
