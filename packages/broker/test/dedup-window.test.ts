import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DedupWindow, type WindowLimits } from "../src/operations/dedup-window.ts";

const HOUR_US = 3_600_000_000;
const LIMITS: WindowLimits = { windowUs: HOUR_US, messagesMin: 10, messagesMax: 100 };

/** Keys that share no low bits with each other. */
const key = (n: number): number => Math.imul(n + 1, 0x9e3779b1) | 0;

function addAll(window: DedupWindow, keys: readonly number[], createdAtUs: number): void {
  for (const each of keys) window.add(each);
  window.stamp(createdAtUs);
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, n) => key(from + n));

test("a key that was added may be there; «no» is certain", () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { maxLength: 500 }), (keys) => {
      const window = new DedupWindow({ ...LIMITS, messagesMax: 1_000 }, 0);
      for (const each of keys) {
        window.add(each);
        assert.equal(window.maybeHas(each), true);
      }
      window.stamp(1);
      for (const each of keys) assert.equal(window.maybeHas(each), true);
    }),
  );
});

test("a key that was not added is not there, zero included", () => {
  const window = new DedupWindow(LIMITS, 0);
  for (const each of [0, 1, -1, 0x7fffffff, -0x80000000]) assert.equal(window.maybeHas(each), false);
  addAll(window, range(0, 50), 1);
  for (const each of range(50, 150)) assert.equal(window.maybeHas(each), false);
});

test("keys as they stand in a segment are read from their low halves", () => {
  const keys = Buffer.alloc(24);
  for (const [index, low] of [0x01020304, 0xfffefdfc, 0].entries()) keys.writeUInt32BE(low, index * 8 + 4);
  const window = new DedupWindow(LIMITS, 3);
  window.addSegment(keys.toString("latin1"), 1);
  for (const low of [0x01020304, 0xfffefdfc | 0, 0])
    assert.equal(window.maybeHas(low), true, low.toString(16));
  assert.equal(window.maybeHas(0x01020305), false);
  assert.equal(window.completeTo, 3);
});

test("messages younger than the window are kept, whatever their number up to the most", () => {
  const window = new DedupWindow(LIMITS, 0);
  for (let n = 0; n < 100; n++) addAll(window, [key(n)], n * 1_000_000);
  for (let n = 0; n < 100; n++) assert.equal(window.maybeHas(key(n)), true, `message ${n}`);
});

test("the last messages are kept however old they are", () => {
  const window = new DedupWindow(LIMITS, 0);
  addAll(window, range(0, 10), 0);
  addAll(window, [key(1000)], 100 * HOUR_US);
  for (let n = 1; n < 10; n++) assert.equal(window.maybeHas(key(n)), true, `message ${n}`);
});

test("old messages beyond the last ones are dropped", () => {
  const window = new DedupWindow(LIMITS, 0);
  addAll(window, range(0, 60), 0);
  for (let n = 60; n < 160; n++) addAll(window, [key(n)], 100 * HOUR_US + n);
  assert.equal(window.maybeHas(key(0)), false);
});

test("a message that was just stored is kept, also where it filled up what is old", () => {
  const window = new DedupWindow(LIMITS, 0);
  // A generation holds 25 keys here: these leave room for five more in it.
  addAll(window, range(0, 20), 1);
  // Much later, one append fills it and goes on in the next, with enough for the least that is kept.
  addAll(window, range(20, 45), 100 * HOUR_US);
  for (let n = 20; n < 45; n++) assert.equal(window.maybeHas(key(n)), true, `message ${n}`);
});

test("keys of others that are older do not make one's own look old", () => {
  const window = new DedupWindow(LIMITS, 0);
  for (const each of range(0, 20)) window.add(each);
  window.stamp(100 * HOUR_US);
  const missed = Buffer.alloc(8 * 30);
  for (const [index, low] of range(100, 130).entries()) missed.writeInt32BE(low, index * 8 + 4);
  window.addSegment(missed.toString("latin1"), 1);
  addAll(window, range(200, 220), 100 * HOUR_US + 1);
  for (let n = 0; n < 20; n++) assert.equal(window.maybeHas(key(n)), true, `message ${n}`);
});

test("memory is bounded: never much more than the most messages", () => {
  const window = new DedupWindow(LIMITS, 0);
  for (let n = 0; n < 10_000; n++) addAll(window, [key(n)], n);
  const kept = range(0, 10_000).filter((each) => window.maybeHas(each)).length;
  assert.ok(kept >= 100 && kept <= 100 + 25, `${kept} keys`);
  assert.ok(window.bytes < 5_000, `${window.bytes} bytes`);
});

test("whatever is appended when, the window holds what the limits promise", () => {
  const appends = fc.array(
    fc.record({ count: fc.integer({ min: 1, max: 40 }), laterUs: fc.nat({ max: 3 * HOUR_US }) }),
    {
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(appends, (appends) => {
      const window = new DedupWindow(LIMITS, 0);
      const stored: { key: number; atUs: number }[] = [];
      let nowUs = 1;
      for (const { count, laterUs } of appends) {
        nowUs += laterUs;
        const keys = range(stored.length, stored.length + count);
        addAll(window, keys, nowUs);
        for (const each of keys) stored.push({ key: each, atUs: nowUs });
        stored.forEach(({ key, atUs }, index) => {
          const fromEnd = stored.length - index;
          const isPromised = fromEnd <= 10 || (atUs > nowUs - HOUR_US && fromEnd <= 100);
          if (isPromised) assert.equal(window.maybeHas(key), true, `${fromEnd} from the end`);
        });
      }
    }),
  );
});
