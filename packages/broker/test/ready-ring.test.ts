/** In which order ready lanes are served. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupLane } from "../src/popping/group-lane.ts";
import { ReadyRing } from "../src/popping/ready-ring.ts";

/** A ring in which lanes of even numbers are at home. */
function newRing() {
  const clock = { nowMs: 0 };
  const ring = new ReadyRing({ isHome: ({ lane }) => lane.id % 2 === 0, now: () => clock.nowMs });
  const lanes = new Map<number, GroupLane>();
  const push = (...ids: number[]): void => {
    for (const id of ids) {
      const lane = lanes.get(id) ?? ({ lane: { id }, inRing: false, readyAtMs: 0 } as GroupLane);
      lanes.set(id, lane);
      lane.state = "ready";
      ring.push(lane);
    }
  };
  const served = (): number[] => {
    const ids: number[] = [];
    for (let lane = ring.shift(); lane; lane = ring.shift()) ids.push(lane.lane.id);
    return ids;
  };
  return { clock, ring, lanes, push, served };
}

test("lanes that are at home come first, each kind in the order in which it got ready", () => {
  const { push, served } = newRing();
  push(1, 2, 3, 4, 1, 2);
  assert.deepEqual(served(), [2, 4, 1, 3]);
});

test("a lane of another worker waits a second at most behind those that got ready after it", () => {
  const { clock, push, served } = newRing();
  push(1, 3);
  clock.nowMs = 900;
  push(2, 5);
  clock.nowMs = 1_001;
  push(4);
  assert.deepEqual(served(), [2, 1, 3, 4, 5]);
});

test("a lane that is not ready any more is passed over, and may come again", () => {
  const { lanes, ring, push, served } = newRing();
  push(1, 2, 4);
  lanes.get(2)!.state = "taking";
  lanes.get(1)!.state = "idle";
  assert.deepEqual(served(), [4]);
  push(2);
  assert.deepEqual(served(), [2]);
  push(1, 2);
  ring.clear();
  assert.deepEqual(served(), []);
  push(1, 2);
  assert.deepEqual(served(), [2, 1], "what was cleared may stand there again");
});
