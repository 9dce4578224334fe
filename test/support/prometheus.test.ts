/** The reader of Prometheus' text format refuses what is not right. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { metricsIn, parsePrometheus, seriesValue } from "./prometheus.ts";

const family = (name: string, type: string, ...lines: string[]): string =>
  `# HELP ${name} Words\n# TYPE ${name} ${type}\n${lines.map((line) => `${line}\n`).join("")}`;

test("what is right is read", () => {
  const text = family("a_total", "counter", 'a_total{q="x\\"\\\\y",r=""} 3', "a_total 2.5e-7");
  const families = parsePrometheus(text);
  assert.deepEqual([...families.keys()], ["a_total"]);
  assert.equal(seriesValue(families, "a_total", { q: 'x"\\y', r: "" }), 3);
  assert.equal(seriesValue(families, "a_total"), 2.5e-7);
  assert.equal(seriesValue(families, "a_total", { q: "z" }), undefined);
});

test("what is wrong is refused", () => {
  for (const [text, complaint] of [
    ["a 1\n", /not of the family/],
    [family("a", "gauge", "b 1"), /not of the family/],
    [family("a", "gauge", "a 1", "a 2"), /comes twice/],
    [family("a", "gauge", 'a{x="1",y="2"} 1', 'a{y="2",x="1"} 2'), /comes twice/],
    [family("a", "gauge", 'a{x="1"y="2"} 1'), /labels/],
    [family("a", "gauge", "a NaN"), /no number/],
    [family("a", "thing", "a 1"), /wrong TYPE/],
    [family("a", "gauge") + family("a", "gauge"), /wrong HELP/],
    ["# TYPE a gauge\na 1\n", /wrong TYPE/],
    [
      family("h", "histogram", 'h_bucket{le="1"} 2', 'h_bucket{le="+Inf"} 1', "h_sum 1", "h_count 1"),
      /order/,
    ],
    [family("h", "histogram", 'h_bucket{le="1"} 1', "h_sum 1", "h_count 1"), /order/],
    [family("h", "histogram", 'h_bucket{le="+Inf"} 1', "h_sum 1", "h_count 2"), /add up/],
    ["# HELP a b", /newline/],
  ] as const)
    assert.throws(() => parsePrometheus(text), complaint, text);
});

test("names of metrics are found in expressions, and not in texts", () => {
  assert.deepEqual(metricsIn('sum by (queue) (rate(queen_a_total{job="queen_b"}[5m])) > queen_c'), [
    "queen_a_total",
    "queen_c",
  ]);
});
