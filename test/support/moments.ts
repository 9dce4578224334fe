/** Waiting for a moment: something that becomes true by itself, seen by asking again and again. */
import { setTimeout as sleep } from "node:timers/promises";

// Far above what any moment takes on a busy machine: a test that gets here has found its mistake.
const MOMENT_MS_MAX = 30_000;
const ASK_EVERY_MS = 10;

/** Returns the first answer that is not false, undefined or null; an error of `probe` is no answer either. */
export async function until<T>(
  moment: string,
  probe: () => Promise<T> | T,
  limitMs = MOMENT_MS_MAX,
): Promise<Exclude<NonNullable<T>, false>> {
  const startedMs = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== false && answer !== undefined && answer !== null)
        return answer as Exclude<NonNullable<T>, false>;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (performance.now() - startedMs > limitMs) {
      throw new Error(`${moment}: this did not come true within ${limitMs} ms`, { cause: last });
    }
    await sleep(ASK_EVERY_MS);
  }
}
