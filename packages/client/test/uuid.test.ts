/** Ids that sort by their time and do not repeat. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { uuidV7 } from "../src/uuid.ts";

test("an id has its time first, version 7, a variant, and is never made twice", () => {
  const time = Date.UTC(2026, 10, 17, 12, 0, 0, 7);
  const ids = new Set(Array.from({ length: 10_000 }, () => uuidV7(time)));
  assert.equal(ids.size, 10_000);
  for (const id of ids)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  for (const id of ids) assert.equal(Number.parseInt(id.replace("-", "").slice(0, 12), 16), time);
  assert.deepEqual(new Set([...ids].map((id) => id[19])), new Set("89ab"));
});

test("a later id sorts behind an earlier one, whatever was random in them", () => {
  const times = Array.from({ length: 1_000 }, (_, index) => 1_000_000_000_000 + index * 997);
  const ids = times.map((time) => uuidV7(time));
  assert.deepEqual([...ids].sort(), ids);
});
