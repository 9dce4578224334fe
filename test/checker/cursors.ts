/** The state that a drained system is left in. */
import type { FinalState } from "./final-state.ts";
import { laneOf } from "./history.ts";
import type { Report } from "./rules.ts";

export function checkState(state: FinalState, report: Report): void {
  for (const cursor of state.cursors ?? []) {
    const { group, committed, nextOffset, acked, leased } = cursor;
    const name = `${group} in ${laneOf(cursor)}`;
    if (committed > nextOffset) report("state", `${name} is at ${committed}, behind the end ${nextOffset}`);
    for (const [from, to] of acked) {
      if (from <= committed || to > nextOffset || from >= to)
        report(
          "state",
          `${name} has finished [${from},${to}), which is not between ${committed} and ${nextOffset}`,
        );
    }
    if (leased) report("state", `${name} is leased`);
  }
  if (state.spooled) report("state", `${state.spooled} messages are left in spools`);
  if (state.preparedTransactions) report("state", `${state.preparedTransactions} transactions are prepared`);
}
