/** Waiting for a moment: something that becomes true by itself, seen by asking again and again. */
import { setTimeout as sleep } from "node:timers/promises";

export interface UntilOptions {
  /** 30,000 unless said. */
  readonly timeoutMillis?: number;
  /** 20 unless said. */
  readonly everyMillis?: number;
}

/** Returns the first answer that is not false, undefined or null; an error of `probe` is no answer either. */
export async function until<T>(
  moment: string,
  probe: () => Promise<T> | T,
  { timeoutMillis = 30_000, everyMillis = 20 }: UntilOptions = {},
): Promise<NonNullable<T>> {
  const startedMillis = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== false && answer !== undefined && answer !== null) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (performance.now() - startedMillis > timeoutMillis)
      throw new Error(`this did not come true within ${timeoutMillis} ms: ${moment}`, { cause: last });
    await sleep(everyMillis);
  }
}
