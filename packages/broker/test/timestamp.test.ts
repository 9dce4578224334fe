import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isoMicroseconds, isoMilliseconds } from "../src/operations/timestamp.ts";

const EPOCH_2000_MS = Date.UTC(2000, 0, 1);

test("PostgreSQL's microseconds since 2000 are shown as UTC", () => {
  assert.equal(isoMicroseconds(0), "2000-01-01T00:00:00.000000Z");
  assert.equal(isoMicroseconds(1), "2000-01-01T00:00:00.000001Z");
  assert.equal(isoMicroseconds(-1), "1999-12-31T23:59:59.999999Z");
  assert.equal(isoMilliseconds(847_999_417_452_917), "2026-11-14T19:23:37.452Z");
  assert.equal(isoMicroseconds(847_999_417_452_917), "2026-11-14T19:23:37.452917Z");
});

test("microseconds follow the milliseconds, in any order of calls", () => {
  const times = fc.array(fc.integer({ min: -(10 ** 14), max: 3 * 10 ** 15 }), { maxLength: 20 });
  fc.assert(
    fc.property(times, (times) => {
      for (const us of times) {
        const text = isoMicroseconds(us);
        assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        const micros = Number(text.slice(23, 26));
        assert.equal((Date.parse(`${text.slice(0, 23)}Z`) - EPOCH_2000_MS) * 1000 + micros, us);
        assert.equal(isoMilliseconds(us), `${text.slice(0, 23)}Z`);
      }
    }),
  );
});
