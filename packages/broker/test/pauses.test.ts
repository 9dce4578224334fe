/** Which lanes and groups the pauses of a queue cover. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Pause, Pauses } from "../src/lanes/pauses.ts";

const LANES = [1, 2];
const GROUPS = [10, 20];

const covers = (pause: Pause, lane: number, group: number): boolean =>
  (pause.lane ?? lane) === lane && (pause.group ?? group) === group;

test("a lane is stopped for a group if any pause covers both", () => {
  const all: Pause[] = [null, ...LANES].flatMap((lane) =>
    [null, ...GROUPS].map((group) => ({ lane, group })),
  );
  for (let chosen = 0; chosen < 2 ** all.length; chosen++) {
    const some = all.filter((_, index) => (chosen >> index) % 2 === 1);
    const pauses = new Pauses(some);
    for (const group of GROUPS) {
      assert.equal(
        pauses.stopGroup(group),
        some.some((pause) => pause.lane === null && covers(pause, 1, group)),
      );
      for (const lane of LANES) {
        assert.equal(
          pauses.stopLane(lane, group),
          some.some((pause) => covers(pause, lane, group)),
        );
      }
    }
  }
});
