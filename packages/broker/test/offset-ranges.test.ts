import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  formatRanges,
  inRanges,
  type OffsetSpan,
  parseRanges,
  rangesOf,
} from "../src/operations/offset-ranges.ts";

const offset = fc.nat({ max: 60 });
const span = fc
  .tuple(offset, fc.oneof(fc.constant(1), fc.nat({ max: 20 })))
  .map(([from, length]): OffsetSpan => ({ from, to: from + length }));
const spans = fc.array(span, { maxLength: 40 });
const single = (from: number): OffsetSpan => ({ from, to: from + 1 });

test("reads and writes PostgreSQL's text of an int8multirange", () => {
  assert.deepEqual(parseRanges("{[0,5),[7,9)}"), [0, 5, 7, 9]);
  assert.equal(formatRanges([0, 5, 7, 9]), "{[0,5),[7,9)}");
  assert.deepEqual(
    parseRanges("{[9007199254740000,9007199254740001)}"),
    [9007199254740000, 9007199254740001],
  );
});

test("nothing is an empty list", () => {
  assert.deepEqual(parseRanges(null), []);
  assert.deepEqual(parseRanges("{}"), []);
  assert.equal(formatRanges([]), "{}");
  assert.deepEqual(rangesOf([]), []);
  assert.equal(inRanges([], 0), false);
});

test("offsets in any order, with repetitions, become ranges that cover exactly them", () => {
  assert.deepEqual(rangesOf([3, 1, 2, 2, 9, 7, 8].map(single)), [1, 4, 7, 10]);
  assert.deepEqual(rangesOf([single(4), { from: 1, to: 9 }, { from: 2, to: 5 }]), [1, 9]);
  fc.assert(
    fc.property(spans, (spans) => {
      const ranges = rangesOf(spans);
      for (let offset = -1; offset <= 81; offset++) {
        const isGiven = spans.some(({ from, to }) => from <= offset && offset < to);
        assert.equal(inRanges(ranges, offset), isGiven, `${offset} in ${ranges}`);
      }
    }),
  );
});

test("ranges ascend, are not empty and do not touch", () => {
  fc.assert(
    fc.property(spans, (spans) => {
      const ranges = rangesOf(spans);
      assert.equal(ranges.length % 2, 0);
      for (let at = 1; at < ranges.length; at++) assert.ok(ranges[at - 1]! < ranges[at]!, String(ranges));
    }),
  );
});

test("what was written is read again", () => {
  fc.assert(
    fc.property(spans, (spans) => {
      const ranges = rangesOf(spans);
      assert.deepEqual(parseRanges(formatRanges(ranges)), ranges);
    }),
  );
});

test("the spans that were given are left as they were", () => {
  const given = [3, 1, 2].map(single);
  rangesOf(given);
  assert.deepEqual(given, [3, 1, 2].map(single));
});
