import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Lane } from "../src/lanes/lane.ts";
import { Queue, type QueueOptions } from "../src/lanes/queue.ts";
import { endOf, SegmentCache, startOf } from "../src/lanes/segment-cache.ts";
import type { Segment } from "../src/operations/segment.ts";

const MEGABYTE = 1024 * 1024;
const queue = new Queue(1, "q", {} as QueueOptions);
let laneCount = 0;
const newLane = (): Lane => new Lane(++laneCount, queue, `p${laneCount}`, 0);
const newCache = (bytesMax: number): SegmentCache => new SegmentCache(bytesMax, () => true);

const segment = (firstOffset: number, count: number, bytes = 10): Segment => ({
  firstOffset,
  count,
  createdAtUs: 0,
  ends: "\0".repeat(count * 4),
  body: "x".repeat(bytes),
});

/** The first offsets of what the cache holds of a lane. */
const held = (cache: SegmentCache, lane: Lane): number[] => cache.hold(lane).map((each) => each.firstOffset);

test("neighbouring segments are held together", () => {
  const cache = newCache(MEGABYTE);
  const lane = newLane();
  assert.deepEqual([startOf(cache.hold(lane)), endOf(cache.hold(lane))], [0, 0]);
  cache.keep(lane, [segment(10, 5), segment(15, 5)]);
  cache.keep(lane, [segment(20, 5)]);
  assert.deepEqual(held(cache, lane), [10, 15, 20]);
  assert.deepEqual([startOf(cache.hold(lane)), endOf(cache.hold(lane))], [10, 25]);
});

test("what does not join on replaces what was there; what is there already changes nothing", () => {
  const cache = newCache(MEGABYTE);
  const lane = newLane();
  cache.keep(lane, [segment(0, 5), segment(5, 5)]);
  const before = cache.bytes;
  cache.keep(lane, [segment(0, 5), segment(5, 5)]);
  assert.equal(cache.bytes, before);
  cache.keep(lane, [segment(20, 5)]);
  assert.deepEqual(held(cache, lane), [20]);
});

test("what was taken in hand stays as it is, whatever the cache does meanwhile", () => {
  const cache = newCache(MEGABYTE);
  const lane = newLane();
  cache.keep(lane, [segment(0, 5)]);
  const inHand = cache.hold(lane);
  cache.keep(lane, [segment(5, 5)]);
  cache.drop(lane);
  assert.deepEqual(
    inHand.map((each) => each.firstOffset),
    [0],
  );
});

test("nothing is given out while what others did is not known, and everything again afterwards", () => {
  let isCurrent = true;
  const cache = new SegmentCache(MEGABYTE, () => isCurrent);
  const lane = newLane();
  cache.keep(lane, [segment(0, 5)]);
  isCurrent = false;
  assert.deepEqual(held(cache, lane), []);
  isCurrent = true;
  assert.deepEqual(held(cache, lane), [0]);
});

test("a lane that was written anew is dropped, and says so to those who read it before", () => {
  const cache = newCache(MEGABYTE);
  const lane = newLane();
  cache.keep(lane, [segment(0, 5)]);
  const { rewrites } = lane;
  cache.invalidate(lane);
  assert.deepEqual(held(cache, lane), []);
  assert.equal(cache.bytes, 0);
  assert.ok(lane.rewrites > rewrites);
});

test("a lane keeps its newest segments within its share", () => {
  const cache = newCache(100 * MEGABYTE);
  const lane = newLane();
  for (let n = 0; n < 20; n++) cache.keep(lane, [segment(n * 5, 5, 65_000)]);
  assert.equal(endOf(cache.hold(lane)), 100);
  assert.ok(startOf(cache.hold(lane)) > 0);
  assert.ok(cache.bytes <= 512 * 1024);
});

test("the lane used longest ago goes first", () => {
  const cache = newCache(1_000);
  const lanes = [newLane(), newLane(), newLane()];
  for (const lane of lanes.slice(0, 2)) cache.keep(lane, [segment(0, 1, 300)]);
  cache.keep(lanes[0]!, [segment(1, 1, 1)]); // used again
  cache.keep(lanes[2]!, [segment(0, 1, 300)]);
  assert.deepEqual(held(cache, lanes[1]!), []);
  assert.deepEqual(held(cache, lanes[2]!), [0]);
});

test("nothing is kept of a lane that is gone, or where there is no room at all", () => {
  const gone = newLane();
  gone.gone = true;
  const cache = newCache(MEGABYTE);
  cache.keep(gone, [segment(0, 1)]);
  assert.deepEqual(held(cache, gone), []);
  const none = newCache(0);
  const lane = newLane();
  none.keep(lane, [segment(0, 1)]);
  assert.deepEqual(held(none, lane), []);
});

test("whatever is kept and dropped, what is held are neighbours and the bytes are counted", () => {
  const step = fc.record({
    which: fc.nat({ max: 3 }),
    skip: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: -3, max: 3 }) },
    ),
    count: fc.integer({ min: 1, max: 5 }),
    bytes: fc.nat({ max: 700 }),
    drop: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const cache = newCache(3_000);
      const lanes = [newLane(), newLane(), newLane(), newLane()];
      for (const { which, skip, count, bytes, drop } of steps) {
        const lane = lanes[which]!;
        if (drop && skip !== 0) cache.drop(lane);
        cache.keep(lane, [segment(Math.max(0, endOf(cache.hold(lane)) + skip), count, bytes)]);
        assert.ok(cache.bytes <= 3_000);
        assert.equal(
          cache.bytes,
          lanes.reduce((sum, each) => sum + each.cachedBytes, 0),
        );
        for (const each of lanes) {
          const all = cache.hold(each);
          for (let at = 1; at < all.length; at++) {
            assert.equal(all[at]!.firstOffset, all[at - 1]!.firstOffset + all[at - 1]!.count);
          }
        }
      }
    }),
  );
});
