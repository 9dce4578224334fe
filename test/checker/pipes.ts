/** A pipe acks in one queue and pushes to another in one transaction: each message gets there exactly once. */
import type { FinalState } from "./final-state.ts";
import type { Report } from "./rules.ts";

export function checkPipes(state: FinalState, report: Report): void {
  for (const { source, sink } of state.pipes ?? []) {
    // By value: entries of the source without one in the sink. A value may be in the source twice where its push
    // was in doubt and had no transactionId.
    const missing = new Map<string, number>();
    for (const { queue, value } of state.log) {
      if (queue === source) missing.set(value, (missing.get(value) ?? 0) + 1);
      if (queue === sink) missing.set(value, (missing.get(value) ?? 0) - 1);
    }
    for (const [value, count] of missing) {
      if (count > 0) report("exactly once", `${value} of ${source} is not in ${sink}`);
      if (count < 0) report("exactly once", `${value} is in ${sink} ${-count} times more than in ${source}`);
    }
  }
}
