/** A fault test breaks something on purpose, and says what must hold all the same. */
import type { FaultRun } from "./fault-run.ts";

export interface FaultTest {
  readonly id: string;
  readonly title: string;
  /** Starts what it needs, breaks it, and reports to the run what did not hold. */
  run(run: FaultRun): Promise<void>;
}
