/** A pipe acks in one queue and pushes to another in one transaction: each message gets there exactly once. */
import type { FinalState } from "./final-state.ts";
import type { Report } from "./rules.ts";

export function checkPipes(state: FinalState, report: Report): void {
  for (const { source, sink } of state.pipes ?? []) {
    const counts = new Map<string, number>();
    for (const { queue, value } of state.log) if (queue === source) counts.set(value, 0);
    for (const { queue, value } of state.log) {
      if (queue !== sink) continue;
      const count = counts.get(value);
      if (count === undefined) report("exactly once", `${value} is in ${sink} and not in ${source}`);
      else counts.set(value, count + 1);
    }
    for (const [value, count] of counts)
      if (count !== 1) report("exactly once", `${value} of ${source} is ${count} times in ${sink}`);
  }
}
