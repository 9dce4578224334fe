import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  FINAL_POP_STATES,
  isFinal,
  LIVE_POP_STATES,
  nextPopState,
  POP_EVENTS,
  POP_TRANSITIONS,
  type PopEvent,
  type PopState,
} from "../src/operations/pop-state.ts";

/** Every transition there is, written out a second time. What is not here cannot happen. */
const EXPECTED: readonly (readonly [PopState, PopEvent, PopState])[] = [
  ["PENDING", "accepted", "RESOLVING"],
  ["PENDING", "deadline", "EMPTY"],
  ["PENDING", "hang-up", "ABANDONED"],
  ["PENDING", "error", "FAILED"],

  ["RESOLVING", "lanes", "LEASING"],
  ["RESOLVING", "nothing", "EMPTY"],
  ["RESOLVING", "park", "PARKED"],
  ["RESOLVING", "woken", "RESOLVING"],
  ["RESOLVING", "deadline", "EMPTY"],
  ["RESOLVING", "hang-up", "ABANDONED"],
  ["RESOLVING", "error", "FAILED"],

  ["LEASING", "leased", "FETCHING"],
  ["LEASING", "nothing", "RESOLVING"],
  ["LEASING", "woken", "LEASING"],
  ["LEASING", "deadline", "LATE"],
  ["LEASING", "hang-up", "ORPHANED"],
  ["LEASING", "error", "FAILED"],

  ["FETCHING", "woken", "FETCHING"],
  ["FETCHING", "assembled", "COMPLETED"],
  ["FETCHING", "deadline", "FETCHING"],
  ["FETCHING", "hang-up", "RELEASED"],
  ["FETCHING", "error", "FAILED"],

  ["PARKED", "woken", "RESOLVING"],
  ["PARKED", "deadline", "EMPTY"],
  ["PARKED", "hang-up", "ABANDONED"],
  ["PARKED", "error", "FAILED"],

  ["LATE", "leased", "FETCHING"],
  ["LATE", "nothing", "EMPTY"],
  ["LATE", "woken", "LATE"],
  ["LATE", "deadline", "LATE"],
  ["LATE", "hang-up", "ORPHANED"],
  ["LATE", "error", "FAILED"],

  ["ORPHANED", "leased", "RELEASED"],
  ["ORPHANED", "nothing", "ABANDONED"],
  ["ORPHANED", "woken", "ORPHANED"],
  ["ORPHANED", "deadline", "ORPHANED"],
  ["ORPHANED", "hang-up", "ORPHANED"],
  ["ORPHANED", "error", "ABANDONED"],
];

const expected = new Map(EXPECTED.map(([state, event, next]) => [`${state} ${event}`, next]));
const ALL_STATES: readonly PopState[] = [...LIVE_POP_STATES, ...FINAL_POP_STATES];

for (const state of ALL_STATES) {
  for (const event of POP_EVENTS) {
    const next = expected.get(`${state} ${event}`);
    test(`a pop that is ${state} and gets ${event} ${next ? `is ${next}` : "is a mistake"}`, () => {
      if (next) assert.equal(nextPopState(state, event), next);
      else assert.throws(() => nextPopState(state, event), { message: `pop: ${event} while ${state}` });
    });
  }
}

test("the table is total: a row for every live state, a cell for every event", () => {
  assert.deepEqual(Object.keys(POP_TRANSITIONS).sort(), [...LIVE_POP_STATES].sort());
  for (const row of Object.values(POP_TRANSITIONS)) assert.equal(row.length, POP_EVENTS.length);
});

test("a state is live or final, never both", () => {
  assert.equal(new Set(ALL_STATES).size, ALL_STATES.length);
  for (const state of LIVE_POP_STATES) assert.equal(isFinal(state), false, state);
  for (const state of FINAL_POP_STATES) assert.equal(isFinal(state), true, state);
});

test("every live state can be ended by an error and by a client that hangs up", () => {
  for (const state of LIVE_POP_STATES) {
    assert.ok(isFinal(nextPopState(state, "error")), state);
    let next = nextPopState(state, "hang-up");
    if (!isFinal(next)) next = nextPopState(next, "leased"); // the call that leases ends first
    assert.ok(isFinal(next), state);
  }
});

test("a client that hung up is never answered, and what was leased for it is given back", () => {
  for (const state of LIVE_POP_STATES) {
    const gone = nextPopState(state, "hang-up");
    assert.ok(["ABANDONED", "RELEASED", "ORPHANED"].includes(gone), `${state} goes to ${gone}`);
  }
  assert.equal(nextPopState("ORPHANED", "leased"), "RELEASED");
});

test("any sequence of events leads through live states to a final one and never out of it", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...POP_EVENTS), { maxLength: 200 }), (events) => {
      let state: PopState = "PENDING";
      for (const event of events) {
        if (isFinal(state)) {
          assert.throws(() => nextPopState(state, event), /^Error: pop: .+ while [A-Z]+$/);
          continue;
        }
        const next = expected.get(`${state} ${event}`);
        if (next === undefined) continue; // nobody sends it then
        state = nextPopState(state, event);
        assert.ok(ALL_STATES.includes(state));
      }
    }),
    { numRuns: 500 },
  );
});

test("every state can be reached from PENDING, and a final one from every state", () => {
  const reachable = (from: PopState): Set<PopState> => {
    const seen = new Set<PopState>([from]);
    for (const state of seen) for (const [at, , next] of EXPECTED) if (at === state) seen.add(next);
    return seen;
  };
  assert.deepEqual([...reachable("PENDING")].sort(), [...ALL_STATES].sort());
  for (const state of LIVE_POP_STATES) assert.ok([...reachable(state)].some(isFinal), state);
});
