import assert from "node:assert/strict";
import { test } from "node:test";
import { rememberingLast } from "../src/remembering-last.ts";

test("neighbours that are the same are read once, and others each time", () => {
  const read: string[] = [];
  const upper = rememberingLast((text) => {
    read.push(text);
    return text.toUpperCase();
  });
  const texts = ["a", "a", "b", "b", "a", "", ""];
  assert.deepEqual(
    texts.map(upper),
    texts.map((text) => text.toUpperCase()),
  );
  assert.deepEqual(read, ["a", "b", "a", ""]);
});

test("undefined is a result, too; a failure is none", () => {
  let calls = 0;
  const odd = rememberingLast((text) => {
    calls++;
    if (text === "bad") throw new Error("bad");
    return undefined;
  });
  assert.equal(odd("x"), undefined);
  assert.equal(odd("x"), undefined);
  assert.equal(calls, 1);
  assert.throws(() => odd("bad"), /bad/);
  assert.throws(() => odd("bad"), /bad/);
  assert.equal(calls, 3);
});
