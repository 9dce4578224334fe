/**
 * The checker reads what clients saw and what the database holds in the end, and names every promise that was
 * broken. It is a pure function: a history that breaks a promise can be written by hand, and check.test.ts
 * has one for every rule.
 */
import { checkState } from "./cursors.ts";
import { checkDeadLetters } from "./dead-letters.ts";
import { checkDeliveries } from "./deliveries.ts";
import type { FinalState } from "./final-state.ts";
import { type HistoryEvent, keyOf } from "./history.ts";
import { checkLeases } from "./leases.ts";
import { checkLiveness } from "./liveness.ts";
import { checkPipes } from "./pipes.ts";
import { checkLog, readPushes } from "./pushes.ts";
import type { Limits, Report, Rule, Violation } from "./rules.ts";

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly counts: ReadonlyMap<Rule, number>;
  /** Messages that were answered, deliveries, and those that no consumer asked for again. */
  readonly pushed: number;
  readonly delivered: number;
  readonly redelivered: number;
  /** The longest time in which no push was stored, while pushes were sent. */
  readonly longestStallMs: number;
}

export function check(history: readonly HistoryEvent[], state: FinalState, limits: Limits = {}): Verdict {
  const violations: Violation[] = [];
  const counts = new Map<Rule, number>();
  const report: Report = (rule, message) => {
    violations.push({ rule, message });
    counts.set(rule, (counts.get(rule) ?? 0) + 1);
  };
  const pushes = readPushes(history);
  const deliveredKeys = new Set<string>();
  let delivered = 0;
  for (const event of history) {
    if (event.type !== "popped") continue;
    delivered += event.messages.length;
    for (const message of event.messages) deliveredKeys.add(keyOf(message));
  }
  checkLog(state, pushes, deliveredKeys, report);
  let redelivered = 0;
  for (const reader of state.readers) {
    redelivered += checkDeliveries(history, reader, state, pushes, report);
    checkLeases(history, reader.queue, reader.group, report);
    checkDeadLetters(history, reader, state, limits, report);
  }
  const { redeliveriesMax = Infinity } = limits;
  if (redelivered > redeliveriesMax)
    report("redelivery budget", `${redelivered} messages came again, allowed are ${redeliveriesMax}`);
  checkPipes(state, report);
  checkLiveness(history, limits, report);
  checkState(state, report);
  const pushed = [...pushes.values()].filter(
    (push) => push.storedAt < Infinity || push.bufferedAt < Infinity,
  ).length;
  return { violations, counts, pushed, delivered, redelivered, longestStallMs: longestStall(history) };
}

function longestStall(history: readonly HistoryEvent[]): number {
  let lastMs: number | undefined;
  let longestMs = 0;
  for (const event of history) {
    if (event.type === "mark" && event.what === "pushes-ended") break;
    const isProgress =
      event.type === "push-answered" && (event.outcome === "stored" || event.outcome === "buffered");
    if (!isProgress && !(event.type === "push-sent" && lastMs === undefined)) continue;
    if (lastMs !== undefined) longestMs = Math.max(longestMs, event.atMs - lastMs);
    lastMs = event.atMs;
  }
  return longestMs;
}
