/** What is wrong: with one lane, or with the server and the broker as a whole. */
import { BrokerError } from "@queen/protocol";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { BrokerFacts, Finding } from "./doctor/finding.ts";
import { queenFindings } from "./doctor/queen.ts";
import { serverFindings } from "./doctor/server.ts";
import { type LaneFacts, type LaneName, type LaneRule, laneRules } from "./lane-rules.ts";

export interface DiagnosisOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** What only the broker knows. */
  readonly brokerFacts: () => Omit<BrokerFacts, "clockAheadMs">;
  /** The wall clock, in milliseconds. */
  readonly clock: () => number;
}

export class Diagnosis {
  readonly #options: DiagnosisOptions;

  constructor(options: DiagnosisOptions) {
    this.#options = options;
  }

  async lane(name: LaneName): Promise<{ facts: LaneFacts; rules: readonly LaneRule[] }> {
    const { queue, partition, group } = name;
    const [facts] = await this.#options.use((session) =>
      session.run(statements.explainLane, [queue, partition, group]),
    );
    if (!facts) throw new BrokerError("NOT_FOUND", "Queue or partition not found");
    return { facts, rules: laneRules(facts, name) };
  }

  async doctor(oldTransactionSeconds: number): Promise<{ now: string; findings: readonly Finding[] }> {
    const { use, brokerFacts, clock } = this.#options;
    return use(async (session) => {
      const sentAtMs = clock();
      const [facts] = await session.run(statements.doctorFacts, [oldTransactionSeconds]);
      const answeredAtMs = clock();
      // The server read its clock between the two; only what lies outside of them is a difference.
      const nowMs = Date.parse(facts!.now);
      const clockAheadMs = Math.max(0, sentAtMs - nowMs) || Math.min(0, answeredAtMs - nowMs);
      const broker = { ...brokerFacts(), clockAheadMs };
      return {
        now: facts!.now,
        findings: [...serverFindings(facts!, broker), ...queenFindings(facts!, broker)],
      };
    });
  }
}
