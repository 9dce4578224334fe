/** Result lines for tests. */
import { NO_COST } from "../accounting.ts";
import type { ResultLine } from "../results.ts";

/** A valid line of S1 with 1,000 messages a second, or what the parts say. */
export function resultLine(parts: Partial<ResultLine> = {}, perSecond = 1_000, p50 = 2): ResultLine {
  return {
    at: "2026-01-02T03:04:06.000Z",
    session: "2026-01-02T03:04:05.000Z",
    suite: "scenarios",
    commit: "0123456789abcdef",
    isDirty: false,
    scenario: "S1",
    round: 1,
    isValid: true,
    figures: {
      messages: 100,
      perSecond,
      latencyMs: { count: 100, p50, p90: p50, p99: 2 * p50, p999: 2 * p50, max: 3 * p50 },
      cost: { ...NO_COST, cpuSecondsPerMillion: { generator: 10, broker: 20, postgres: 30 } },
      verdict: null,
      extra: {},
      errors: {},
    },
    load: { kind: "push", producers: 64, batch: 1, partitions: 100, spread: "request" },
    settings: {
      seconds: 8,
      warmupSeconds: 2,
      workers: null,
      padding: "plain",
      isQuick: false,
      database: "embedded",
    },
    node: "v20.20.0",
    postgres: { version: "18.0", fsync: "on" },
    machine: { cores: 2, cpu: "a processor", memoryGb: 8 },
    ...parts,
  };
}
