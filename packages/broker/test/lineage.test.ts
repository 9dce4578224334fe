/** Servers of the past are refused, and a fail-over is noticed before anything is asked of the new primary. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lineage } from "../src/postgres/lineage.ts";

function lineage(): { lineage: Lineage; changes: () => number } {
  let changes = 0;
  return {
    lineage: new Lineage(() => {
      changes++;
    }),
    changes: () => changes,
  };
}

test("connections to one primary change nothing", () => {
  const { lineage: own, changes } = lineage();
  for (let time = 0; time < 3; time++) own.admit({ system: "1", timeline: 1 });
  assert.equal(changes(), 0);
});

test("a new timeline is a change, once", () => {
  const { lineage: own, changes } = lineage();
  own.admit({ system: "1", timeline: 1 });
  for (let time = 0; time < 3; time++) own.admit({ system: "1", timeline: 2 });
  assert.equal(changes(), 1);
});

test("a server on an older timeline is refused, and the newest one still counts", () => {
  const { lineage: own, changes } = lineage();
  own.admit({ system: "1", timeline: 2 });
  assert.throws(() => own.admit({ system: "1", timeline: 1 }), /timeline 1, and timeline 2 was seen/);
  own.admit({ system: "1", timeline: 2 });
  assert.equal(changes(), 0);
});

test("another cluster is a change, whatever its timeline", () => {
  const { lineage: own, changes } = lineage();
  own.admit({ system: "1", timeline: 5 });
  own.admit({ system: "2", timeline: 1 });
  assert.equal(changes(), 1);
});
