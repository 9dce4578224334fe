/** The outcome of a run is what is reported of it. */
import type { Verdict } from "@queen/test/checker/check";
import type { HistoryEvent } from "@queen/test/checker/history";
import type { Rule } from "@queen/test/checker/rules";

export interface Outcome {
  readonly load: string;
  readonly faults: number;
  readonly pushed: number;
  readonly delivered: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  readonly longestStallMs: number;
  readonly violations: Readonly<Partial<Record<Rule, number>>>;
  readonly requests: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

/** What the checker's verdict and the clients' history say of it. */
export function figuresOf(
  verdict: Verdict | undefined,
  events: readonly HistoryEvent[],
): Pick<Outcome, "lost" | "duplicated" | "reordered" | "longestStallMs" | "violations" | "requests"> {
  const counts = verdict?.counts ?? new Map<Rule, number>();
  const of = (...rules: Rule[]): number => rules.reduce((sum, rule) => sum + (counts.get(rule) ?? 0), 0);
  const requests: Record<string, number> = {};
  for (const event of events) {
    if (event.type !== "request") continue;
    const name = `${event.operation} ${event.status}`;
    requests[name] = (requests[name] ?? 0) + 1;
  }
  return {
    lost: of("lost"),
    duplicated: verdict?.redelivered ?? 0,
    reordered: of("log order", "delivery order", "skip"),
    longestStallMs: Math.round(verdict?.longestStallMs ?? 0),
    violations: Object.fromEntries(counts) as Partial<Record<Rule, number>>,
    requests,
  };
}
