import assert from "node:assert/strict";
import { test } from "node:test";
import { byTest } from "../results-table.ts";

const FIGURES = { commit: "c", title: "t", seconds: 8, faults: 1, pushed: 1, delivered: 1, lost: 0 };
const line = (id: string, seed: number, at: string, verdict: "ok" | "failed" = "ok") => ({
  ...FIGURES,
  ...{ id, seed, at, verdict, duplicated: 0, reordered: 0, longestStallMs: 0 },
});

test("of each test the last runs count, one for each of the last three seeds", () => {
  const lines = [
    line("F02", 1, "05"),
    line("F01", 1, "01", "failed"),
    line("F01", 2, "02"),
    line("F01", 3, "03"),
    line("F01", 1, "06"),
    line("F01", 4, "04"),
  ];
  const shown = byTest(lines).map((test) => test.map(({ id, seed, verdict }) => `${id} ${seed} ${verdict}`));
  assert.deepEqual(shown, [["F01 3 ok", "F01 4 ok", "F01 1 ok"], ["F02 1 ok"]]);
});
