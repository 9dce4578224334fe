/** What the page claims is computed here: medians and spreads of the runs that count, and of no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Figures } from "../measure.ts";
import { spreadOf, summarise } from "../report/summary.ts";
import { cellsOf, ratioTo } from "../report/tables.ts";
import { isDisturbed, type Run } from "../results.ts";
import { SCENARIOS } from "../suites/scenarios.ts";
import { resultLine } from "./lines.ts";

test("rounds become a median with its spread", () => {
  const [summary] = summarise([300, 100, 200].map((rate, index) => resultLine({ round: index + 1 }, rate)));
  assert.deepEqual(summary?.rate, { median: 200, min: 100, max: 300 });
  assert.deepEqual(summary?.cpu.postgres, { median: 30, min: 30, max: 30 });
  assert.equal(summary?.valid, 3);
  assert.equal(spreadOf([]), null);
  assert.equal(spreadOf([1, 2])?.median, 1.5);
});

test("a wrong or failed run has no part in the figures and is told", () => {
  const { figures } = resultLine();
  const wrong = resultLine({ isValid: false, figures: { ...figures!, perSecond: null } });
  const { figures: _, ...failed } = resultLine({ isValid: false, failure: "it broke" });
  const [summary] = summarise([resultLine({}, 100), wrong, failed]);
  assert.deepEqual(summary?.rate, { median: 100, min: 100, max: 100 });
  assert.equal(summary?.wrong, 2);
});

test("what cannot be measured here is no failure", () => {
  const { figures: _, ...line } = resultLine({ isValid: false, missing: "no server" });
  const [summary] = summarise([line]);
  assert.equal(summary?.wrong, 0);
  assert.equal(summary?.missing, "no server");
  assert.equal(summary?.rate, null);
});

test("a run is measured again if its host gave much of the machine to others, unless it went wrong", () => {
  const { load, figures } = resultLine();
  const scenario = SCENARIOS.scenarios.find(({ id }) => id === "S1")!;
  const run = (steal: number, verdict: { correct: boolean } | null): Run => {
    const cost = { ...figures!.cost, systemPercent: { idle: 0, iowait: 0, steal, other: 0 } };
    return {
      scenario,
      round: 1,
      load,
      figures: { ...figures!, perSecond: 1, cost, verdict } as Figures,
    };
  };
  assert.equal(isDisturbed(run(40, null)), true);
  assert.equal(isDisturbed(run(4, null)), false);
  assert.equal(isDisturbed(run(40, { correct: false })), false);
  assert.equal(isDisturbed({ scenario, round: 1, load, failure: "it broke" }), false);
  // One that was disturbed again counts, and is told.
  const { figures: disturbed } = run(40, null);
  const rows = cellsOf("scenarios", [resultLine({ figures: disturbed! })]);
  assert.match(rows[1]!.at(-1)!, /up to 40 % of the machine taken by others/);
});

test("a ratio is more messages, or less time", () => {
  const [summary] = summarise([resultLine({}, 1_000, 5)]);
  const compared = (id: string) => SCENARIOS.scenarios.find((scenario) => scenario.id === id)!;
  assert.equal(ratioTo(compared("S1"), summary!, 500), 2);
  assert.equal(ratioTo(compared("S9-50"), summary!, 50), 10);
});

test("what the C++ server did counts for more on a machine that is faster than the one it ran on", () => {
  const cells = (lines: Parameters<typeof cellsOf>[1]): Record<string, string> => {
    const [head, ...rows] = cellsOf("scenarios", lines);
    const row = rows.find(([id]) => id === "S1")!;
    return Object.fromEntries(head!.map((name, column) => [name, row[column]!]));
  };
  const push = resultLine({}, 29_000);
  const alone = cells([push]);
  assert.equal(alone["x upstream"], "10");
  assert.equal(alone["at equal speed"], "");
  const beside = cells([push, resultLine({ scenario: "HTTP" }, 45_000)]);
  assert.equal(beside["x upstream"], "10");
  assert.equal(beside["at equal speed"], "5");
});
