import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseExactly, protect, restore } from "../src/exact-json.ts";

test("numbers come out as they went in, in any text", () => {
  for (const text of [
    "12345678901234567890",
    "1e400",
    "-0",
    "1.10",
    "0.1",
    "7",
    "[1.0,-1E+2]",
    '{"a":{"b":[1e400]}}',
  ]) {
    assert.equal(restore(JSON.stringify(parseExactly(text))), text);
  }
  assert.equal(restore(`n: ${(parseExactly('{"n":1.10}') as { n: string }).n}\n`), "n: 1.10\n");
});

test("what looks like a number inside a string stays a string", () => {
  const text = '{"12345678901234567890":"1e400, \\"12345678901234567890\\" and \\\\"}';
  assert.equal(protect(text), text);
  assert.equal(restore(JSON.stringify(parseExactly(text))), text);
});

test("any JSON value is the same after the way through", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      assert.equal(restore(JSON.stringify(parseExactly(text))), text);
    }),
  );
});

test("what is no JSON is refused", () => {
  for (const text of ["", "01", "{", '{"a":1.}', "1e", "nul"])
    assert.throws(() => parseExactly(text), SyntaxError);
});
