/** Which worker gets connections, and who turns clients away, by what workers use and what the machine has to spare. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { place } from "../src/cluster/placement.ts";

const accepting = (busy: readonly number[], spare = 4): number[] =>
  place(busy, spare).flatMap(({ isAccepting }, index) => (isAccepting ? [index] : []));
const turnedAway = (busy: readonly number[], spare = 4): number[] =>
  place(busy, spare).map((each) => each.turnedAway);

test("the first worker that has time left gets new connections", () => {
  assert.deepEqual(accepting([0, 0, 0]), [0]);
  assert.deepEqual(accepting([0.89, 0, 0]), [0]);
  assert.deepEqual(accepting([0.9, 0, 0]), [1]);
  assert.deepEqual(accepting([0.95, 0.9, 0.1]), [2]);
  assert.deepEqual(accepting([0.3, 0.9, 0.1]), [0]);
});

test("where no worker has time left, all get new connections, and nobody is turned away", () => {
  assert.deepEqual(accepting([0.9, 1.2]), [0, 1]);
  assert.deepEqual(turnedAway([0.9, 1.2]), [0, 0]);
});

test("a worker without time turns some clients away, if the machine has a processor to spare for another", () => {
  assert.deepEqual(turnedAway([0.9, 0.2]), [0.25, 0]);
  assert.deepEqual(turnedAway([0.9, 0.2], 0.9), [0, 0]);
  assert.deepEqual(turnedAway([0.2, 0.9]), [0, 0.25]);
});

test("when all workers together have little to do, the others send their clients to the first", () => {
  assert.deepEqual(turnedAway([0.2, 0.1, 0]), [0, 1, 1]);
  assert.deepEqual(turnedAway([0.4, 0.3, 0]), [0, 0, 0]);
});

test("one worker keeps its clients, and no worker is no matter", () => {
  assert.deepEqual(place([0.9], 4), [{ isAccepting: true, turnedAway: 0 }]);
  assert.deepEqual(place([0.1], 4), [{ isAccepting: true, turnedAway: 0 }]);
  assert.deepEqual(place([], 4), []);
});
