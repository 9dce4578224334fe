/** Every request ends, and everything goes on after the faults. */
import type { HistoryEvent } from "./history.ts";
import type { Limits, Report } from "./rules.ts";

export function checkLiveness(history: readonly HistoryEvent[], limits: Limits, report: Report): void {
  const { requestMsMax = Infinity, healMsMax = Infinity, drainMsMax = Infinity } = limits;
  let healedAtMs: number | undefined;
  let pushesEndedAtMs: number | undefined;
  let storedAtMs: number | undefined;
  let deliveredAtMs: number | undefined;
  let isDrained = false;
  for (const event of history) {
    if (event.type === "request" && event.tookMs > event.waitMs + requestMsMax)
      report("liveness", `a ${event.operation} took ${Math.round(event.tookMs)} ms (${event.status})`);
    if (event.type === "push-answered" && event.outcome === "stored" && healedAtMs !== undefined)
      storedAtMs ??= event.atMs;
    if (event.type === "popped" && healedAtMs !== undefined) deliveredAtMs ??= event.atMs;
    if (event.type !== "mark") continue;
    if (event.what === "healed") {
      healedAtMs = event.atMs;
      storedAtMs = undefined;
      deliveredAtMs = undefined;
    }
    if (event.what === "pushes-ended") pushesEndedAtMs = event.atMs;
    if (event.what === "drained") {
      isDrained = true;
      const tookMs = event.atMs - (pushesEndedAtMs ?? event.atMs);
      if (tookMs > drainMsMax)
        report("liveness", `everything was consumed ${Math.round(tookMs)} ms after the last push`);
    }
  }
  if (healMsMax < Infinity && healedAtMs !== undefined) {
    for (const [what, atMs] of [
      ["push was stored", storedAtMs],
      ["message was delivered", deliveredAtMs],
    ] as const) {
      if (atMs === undefined) report("liveness", `no ${what} after the faults`);
      else if (atMs - healedAtMs > healMsMax)
        report("liveness", `the first ${what} ${Math.round(atMs - healedAtMs)} ms after the faults`);
    }
  }
  if (drainMsMax < Infinity && !isDrained) report("liveness", "not everything was consumed");
}
