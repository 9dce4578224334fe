/**
 * Placement decides which workers of a broker get new connections, and who turns clients away.
 *
 * Workers that work on the same lanes pay for it: their calls to PostgreSQL are smaller, each has to read what the other
 * appended, and a message for a consumer of the other takes a hop more. So the first worker gets all connections until it
 * has no time left. Then the next one gets them and, if the machine has a processor to spare, the first turns some of its
 * clients away: they come back by a new connection. When all workers together have little to do, the first gets everybody
 * back.
 */
export interface Placement {
  readonly isAccepting: boolean;
  /** How many of its clients the worker turns away, from 0 to 1. */
  readonly turnedAway: number;
}

/** So often workers tell how busy they are, and are placed anew. */
export const PLACED_EVERY_MS = 1_000;

// Shares of a processor. A worker that uses more of one soon waits for itself.
const FULL = 0.9;
const CALM_IN_ALL = 0.5;
// With less to spare, a second worker takes its time from the first, or from PostgreSQL.
const SPARE_MIN = 1;
const RELIEF = 0.25;

/** `busy`: the processors that each worker uses, in their order; `spare`: those that nobody uses. */
export function place(busy: readonly number[], spare: number): Placement[] {
  const chosen = busy.findIndex((share) => share < FULL);
  if (chosen < 0) return busy.map(() => ({ isAccepting: true, turnedAway: 0 }));
  const isCalm = busy.reduce((sum, share) => sum + share, 0) < CALM_IN_ALL;
  return busy.map((share, index) => {
    const isAccepting = index === chosen;
    if (isAccepting) return { isAccepting, turnedAway: 0 };
    if (share >= FULL) return { isAccepting, turnedAway: spare >= SPARE_MIN ? RELIEF : 0 };
    return { isAccepting, turnedAway: isCalm ? 1 : 0 };
  });
}
