import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatRanges, inRanges, parseRanges, rangesOf } from "../src/operations/offset-ranges.ts";

const offsets = fc.array(fc.nat({ max: 60 }), { maxLength: 40 });

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
  assert.deepEqual(rangesOf([3, 1, 2, 2, 9, 7, 8]), [1, 4, 7, 10]);
  fc.assert(
    fc.property(offsets, (offsets) => {
      const ranges = rangesOf(offsets);
      for (let offset = -1; offset <= 61; offset++) {
        assert.equal(inRanges(ranges, offset), offsets.includes(offset), `${offset} in ${ranges}`);
      }
    }),
  );
});

test("ranges ascend, are not empty and do not touch", () => {
  fc.assert(
    fc.property(offsets, (offsets) => {
      const ranges = rangesOf(offsets);
      assert.equal(ranges.length % 2, 0);
      for (let at = 1; at < ranges.length; at++) assert.ok(ranges[at - 1]! < ranges[at]!, String(ranges));
    }),
  );
});

test("what was written is read again", () => {
  fc.assert(
    fc.property(offsets, (offsets) => {
      const ranges = rangesOf(offsets);
      assert.deepEqual(parseRanges(formatRanges(ranges)), ranges);
    }),
  );
});

test("the offsets that were given are left as they were", () => {
  const given = [3, 1, 2];
  rangesOf(given);
  assert.deepEqual(given, [3, 1, 2]);
});
