/** When a batch leaves, as a pure function: load itself makes the batches, a hold may make them larger. */
export interface BatchView {
  readonly queued: number;
  readonly oldestAgeMs: number;
  readonly freeSlots: number;
  /** Operations in batches that are under way. */
  readonly underWay: number;
}

export type BatchDecision = "flush" | { readonly waitMs: number };

// A call costs much more than one more operation in it. So while calls are under way, the next waits for twice as many
// operations, or for their end; and, lest one that is slow holds up the others, no longer than this.
const TIMES_UNDER_WAY = 2;
const BESIDE_HOLD_MS = 5;

export function decideBatch(view: BatchView, limits: { sizeMax: number; holdMs: number }): BatchDecision {
  if (view.queued === 0) return { waitMs: Infinity };
  if (view.freeSlots === 0) return { waitMs: Infinity }; // a freed slot asks again
  const isSmall = view.queued < TIMES_UNDER_WAY * view.underWay;
  const holdMs = isSmall ? Math.max(limits.holdMs, BESIDE_HOLD_MS) : limits.holdMs;
  if (view.queued >= limits.sizeMax || view.oldestAgeMs >= holdMs) return "flush";
  return { waitMs: holdMs - view.oldestAgeMs };
}
