/** A fault test breaks something on purpose, and says what must hold all the same. */
import type { FaultRun } from "./fault-run.ts";

export interface FaultTest {
  readonly id: string;
  readonly title: string;
  /** Starts what it needs, breaks it, and reports to the run what did not hold. */
  run(run: FaultRun): Promise<void>;
}

/** Whatever goes wrong is a problem of the run, and everything that was started ends. */
export async function runTest(test: FaultTest, run: FaultRun): Promise<void> {
  try {
    await test.run(run);
  } catch (error) {
    const { message, cause } = error as Error;
    run.problem(`${message}${cause instanceof Error ? ` (${cause.message})` : ""}`);
  } finally {
    run.tell("cleaning up");
    await run.dispose();
  }
}
