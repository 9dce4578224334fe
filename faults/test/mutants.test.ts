/** A mutant that breaks nothing any more would prove nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { procedures } from "@queen/schema";
import { brokenProcedures } from "../mutants.ts";

test("every mutant still finds what it breaks", () => {
  const whole = new Set(procedures().map(({ text }) => text));
  const broken = brokenProcedures();
  assert.ok(broken.length > 10);
  assert.ok(broken.every((text) => !whole.has(text)));
});
