/** Charts are SVG that a browser can read, on light and on dark pages, and what they show is in proportion. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { barChart, shareChart } from "../report/bar-chart.ts";
import { chartsOf } from "../report/charts.ts";
import { lineChart } from "../report/line-chart.ts";
import { linearScale, logScale } from "../report/scale.ts";
import { document, text } from "../report/svg.ts";
import { resultLine } from "./lines.ts";

/** The names of the elements, if every one is closed in its turn. */
function elementsOf(svg: string): string[] {
  const open: string[] = [];
  const names: string[] = [];
  for (const [, closing, name, rest] of svg.matchAll(/<(\/?)([a-z]+)((?:[^<>"]|"[^"]*")*)>/g)) {
    if (closing === "/") {
      assert.equal(open.pop(), name);
      continue;
    }
    names.push(name!);
    if (!rest!.endsWith("/")) open.push(name!);
  }
  assert.deepEqual(open, []);
  return names;
}

const widths = (svg: string): number[] =>
  [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));

const alone = (value: number) => ({ median: value, min: value, max: value });

test("a document is well-formed, escaped, and has colours for both kinds of pages", () => {
  const svg = document('a < b & "c"', { width: 10, height: 10, body: text(0, 0, "<script>") });
  assert.deepEqual(elementsOf(svg), ["svg", "title", "style", "text"]);
  assert.match(svg, /a &lt; b &amp; &quot;c&quot;/);
  assert.match(svg, /prefers-color-scheme: dark/);
  const [light, dark] = svg.split("prefers-color-scheme: dark");
  for (const name of ["text", ".grid", ".s0", ".s1", ".s2", ".l0", ".l1", ".l2"]) {
    assert.ok(light!.includes(`${name} {`) && dark!.includes(`${name} {`), name);
  }
});

test("bars are as long as their values, and what has no value says why", () => {
  const panel = barChart({
    title: "t",
    scale: "linear",
    bars: [
      { label: "a", value: alone(100), series: 0 },
      { label: "b", value: alone(50), series: 1 },
      { label: "c", value: null, remark: "not available here", series: 1 },
    ],
  });
  const [a, b, ...others] = widths(panel.body);
  assert.ok(Math.abs(a! - 2 * b!) < 0.2);
  assert.deepEqual(others, []);
  assert.match(panel.body, /not available here/);
  elementsOf(panel.body);
});

test("shares fill their row, whatever their sum", () => {
  const panel = shareChart({
    title: "t",
    legend: ["a", "b"],
    rows: [
      { label: "x", parts: [1, 3] },
      { label: "y", parts: [100, 300] },
    ],
  });
  const [, , x1, x2, y1, y2] = widths(panel.body);
  assert.deepEqual([x1, x2], [y1, y2]);
  assert.ok(Math.abs(x2! - 3 * x1!) < 0.3);
});

test("scales hold every value and begin where they say", () => {
  const linear = linearScale(230, 0, 100);
  assert.deepEqual(linear.ticks, [0, 100, 200, 300]);
  assert.equal(linear.at(0), 0);
  assert.equal(linear.at(300), 100);
  const log = logScale(1, 1_000_000, 0, 60);
  assert.deepEqual(log.ticks, [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]);
  assert.equal(Math.round(log.at(1_000)), 30);
  assert.equal(log.at(0), 0);
  assert.deepEqual(logScale(5, 5, 0, 1).ticks, [1, 10]);
});

test("a line has a point for each size", () => {
  const points = [1, 100, 10_000].map((x) => ({ x, y: 3 }));
  const panel = lineChart({
    title: "t",
    xTitle: "x",
    yScale: "linear",
    curves: [{ name: "c", series: 0, points }],
  });
  assert.equal(elementsOf(panel.body).filter((name) => name === "circle").length, 3);
});

test("the chart beside the C++ server says whether the machine's speed is taken into account", () => {
  const push = resultLine({}, 29_000);
  const [alone] = chartsOf("scenarios", [push]);
  assert.equal(alone?.title, "Times the C++ server (logarithmic)");
  assert.match(alone.svg, />10 x</);
  const [beside] = chartsOf("scenarios", [push, resultLine({ scenario: "HTTP" }, 45_000)]);
  assert.equal(beside?.title, "Times the C++ server at equal speed of the machine (logarithmic)");
  assert.match(beside.svg, />5 x</);
});

test("each suite draws what it has lines for, and nothing without", () => {
  const growth = [1, 100].map((size) =>
    resultLine({
      suite: "growth",
      scenario: `partitions-${size}`,
      load: { kind: "sparse", partitions: size },
    }),
  );
  const peers = ["queen-one", "nats-one"].map((scenario) => resultLine({ suite: "peers", scenario }));
  const names = (charts: { name: string; svg: string }[]): string[] => {
    for (const { svg } of charts) elementsOf(svg);
    return charts.map(({ name }) => name);
  };
  assert.deepEqual(names(chartsOf("scenarios", [resultLine()])), ["upstream", "cpu"]);
  assert.deepEqual(names(chartsOf("growth", growth)), ["growth-partitions"]);
  assert.deepEqual(names(chartsOf("growth", growth.slice(1))), []);
  assert.deepEqual(names(chartsOf("peers", peers)), ["peers"]);
  for (const suite of ["scenarios", "peers", "growth", "memory"] as const) {
    assert.deepEqual(chartsOf(suite, []), []);
  }
});
