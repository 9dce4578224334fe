/** The number of lanes that a worker remembers follows its heap. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lanesThatFit } from "../src/wiring/memory.ts";

const MB = 1024 * 1024;
// What --max-old-space-size says, and the young generation of a worker.
const heap = (oldMb: number): number => (oldMb + 192) * MB;

test("a large heap holds a million lanes, a small one as many as leave room for the caches, and ten thousand at least", () => {
  assert.equal(lanesThatFit(heap(4_096), 64 * MB), 1_005_568);
  assert.equal(lanesThatFit(heap(256), 64 * MB), 22_528);
  assert.equal(lanesThatFit(heap(256), 0), 38_912);
  assert.equal(lanesThatFit(heap(64), 64 * MB), 10_000);
});
