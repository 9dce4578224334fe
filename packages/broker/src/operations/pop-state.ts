/**
 * The life of one pop request.
 *
 *   PENDING ──accepted──▶ RESOLVING ──lanes──▶ LEASING ──leased──▶ FETCHING ──assembled──▶ COMPLETED
 *                          ▲     │ ▲              │
 *                          │     │ └───nothing────┘
 *                          │     ├──nothing──▶ EMPTY
 *                       woken    └──park─────▶ PARKED ──deadline──▶ EMPTY
 *                          └────────────────────┘
 *
 * RESOLVING looks for lanes that may have work: in memory, and in the database where memory knows nothing
 * yet. LEASING is the call that takes the lease and reads the segments. FETCHING cuts the answer out of
 * them. A client that hangs up is ABANDONED; while its lease is being taken it is ORPHANED, and what was
 * leased is given back as soon as the call returns. A deadline that passes during LEASING is remembered as
 * LATE: the pop answers as soon as the call returns, with what it got.
 */
export const LIVE_POP_STATES = [
  "PENDING",
  "RESOLVING",
  "LEASING",
  "FETCHING",
  "PARKED",
  "LATE",
  "ORPHANED",
] as const;
export const FINAL_POP_STATES = ["COMPLETED", "EMPTY", "FAILED", "ABANDONED", "RELEASED"] as const;
export const POP_EVENTS = [
  "accepted",
  "lanes",
  "leased",
  "nothing",
  "park",
  "woken",
  "assembled",
  "deadline",
  "hang-up",
  "error",
] as const;

export type LivePopState = (typeof LIVE_POP_STATES)[number];
export type FinalPopState = (typeof FINAL_POP_STATES)[number];
export type PopState = LivePopState | FinalPopState;
export type PopEvent = (typeof POP_EVENTS)[number];

type Next = PopState | null; // null: cannot happen
type RowOf<Events extends readonly unknown[]> = { readonly [Index in keyof Events]: Next };

// biome-ignore format: a table is read by columns
export const POP_TRANSITIONS: Record<LivePopState, RowOf<typeof POP_EVENTS>> = {
  //           accepted     lanes      leased      nothing      park      woken        assembled    deadline  hang-up      error
  PENDING:   ["RESOLVING",  null,      null,       null,        null,     null,        null,        "EMPTY",  "ABANDONED", "FAILED"],
  RESOLVING: [null,         "LEASING", null,       "EMPTY",     "PARKED", "RESOLVING", null,        "EMPTY",  "ABANDONED", "FAILED"],
  LEASING:   [null,         null,      "FETCHING", "RESOLVING", null,     "LEASING",   null,        "LATE",   "ORPHANED",  "FAILED"],
  FETCHING:  [null,         null,      null,       null,        null,     "FETCHING",  "COMPLETED", "FETCHING", "RELEASED", "FAILED"],
  PARKED:    [null,         null,      null,       null,        null,     "RESOLVING", null,        "EMPTY",  "ABANDONED", "FAILED"],
  LATE:      [null,         null,      "FETCHING", "EMPTY",     null,     "LATE",      null,        "LATE",   "ORPHANED",  "FAILED"],
  ORPHANED:  [null,         null,      "RELEASED", "ABANDONED", null,     "ORPHANED",  null,        "ORPHANED", "ORPHANED", "ABANDONED"],
};

export function nextPopState(state: PopState, event: PopEvent): PopState {
  const next = (POP_TRANSITIONS as Record<string, RowOf<typeof POP_EVENTS> | undefined>)[state]?.[
    POP_EVENTS.indexOf(event)
  ];
  if (next) return next;
  throw new Error(`pop: ${event} while ${state}`);
}

export const isFinal = (state: PopState): state is FinalPopState =>
  (FINAL_POP_STATES as readonly string[]).includes(state);
