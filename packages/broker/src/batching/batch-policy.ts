/** When a batch leaves, as a pure function: load itself makes the batches, a hold may make them larger. */
export interface BatchView {
  readonly queued: number;
  readonly oldestAgeMs: number;
  readonly freeSlots: number;
}

export type BatchDecision = "flush" | { readonly waitMs: number };

export function decideBatch(view: BatchView, limits: { sizeMax: number; holdMs: number }): BatchDecision {
  if (view.queued === 0) return { waitMs: Infinity };
  if (view.freeSlots === 0) return { waitMs: Infinity }; // a freed slot asks again
  if (view.queued >= limits.sizeMax || view.oldestAgeMs >= limits.holdMs) return "flush";
  return { waitMs: limits.holdMs - view.oldestAgeMs };
}
