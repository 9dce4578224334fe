import assert from "node:assert/strict";
import { test } from "node:test";
import { givenRequestId, newRequestId } from "../src/http/request-id.ts";

test("a client's id counts if it is 1 to 128 characters of visible ASCII", () => {
  for (const id of ["a", "7f3e-01/x=~!", "x".repeat(128)]) assert.equal(givenRequestId(id), id);
  const bad = ["", "x".repeat(129), "a b", "a\tb", "a\nb", "é", "a, b", undefined, ["a", "b"]];
  for (const id of bad) assert.equal(givenRequestId(id), undefined, JSON.stringify(id));
});

test("made ids differ, and would be taken back from a client", () => {
  const ids = Array.from({ length: 1_000 }, newRequestId);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.equal(givenRequestId(id), id);
});
