/** Waiting for a moment: something that becomes true by itself, seen by asking again and again. */
import { setTimeout as sleep } from "node:timers/promises";

// Far above what any moment takes on a busy machine: a test that gets here has found its mistake.
const MOMENT_MS_MAX = 30_000;
const ASK_EVERY_MS = 5;

export async function until(moment: string, isNow: () => Promise<boolean> | boolean): Promise<void> {
  const startedMs = performance.now();
  while (!(await isNow())) {
    if (performance.now() - startedMs > MOMENT_MS_MAX)
      throw new Error(`${moment}: this did not come true within ${MOMENT_MS_MAX} ms`);
    await sleep(ASK_EVERY_MS);
  }
}
