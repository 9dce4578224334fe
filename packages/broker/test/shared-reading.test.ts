/** A shared reading is made once for all who ask within a while. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedReading } from "../src/control/shared-reading.ts";

test("who asks meanwhile or soon after gets the same reading; later, or for something else, a new one", async () => {
  let nowMs = 0;
  const asked: string[] = [];
  const reading = new SharedReading(
    1_000,
    () => nowMs,
    async (key) => {
      asked.push(key);
      return asked.length;
    },
  );
  assert.deepEqual(await Promise.all([reading.get("a"), reading.get("a"), reading.get("b")]), [1, 1, 2]);
  nowMs = 999;
  assert.equal(await reading.get("a"), 1);
  nowMs = 1_000;
  assert.equal(await reading.get("a"), 3);
  assert.deepEqual(asked, ["a", "b", "a"]);
});

test("a reading that failed is not kept", async () => {
  let times = 0;
  const reading = new SharedReading(
    1_000,
    () => 0,
    async () => {
      if (++times === 1) throw new Error("away");
      return times;
    },
  );
  await assert.rejects(reading.get(), /away/);
  assert.equal(await reading.get(), 2);
});
