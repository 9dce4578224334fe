/** A line chart: values over sizes that grow by powers of ten. */
import { number, short } from "./format.ts";
import { linearScale, logScale } from "./scale.ts";
import { circle, line, type Panel, polyline, rectangle, type Series, text } from "./svg.ts";

export interface Curve {
  readonly name: string;
  readonly series: Series;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface LineChart {
  readonly title: string;
  readonly xTitle: string;
  readonly curves: readonly Curve[];
  /** Linear shows whether something is flat, logarithmic whether it grows in proportion. */
  readonly yScale: "linear" | "log";
}

const WIDTH = 348;
const HEIGHT = 240;
const LEFT = 48;
const RIGHT = WIDTH - 14;
const TOP = 48;
const BOTTOM = HEIGHT - 42;

export function lineChart(chart: LineChart): Panel {
  const points = chart.curves.flatMap((curve) => curve.points);
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y).filter((y) => y > 0);
  const xScale = logScale(Math.min(...xs), Math.max(...xs), LEFT, RIGHT);
  const largest = Math.max(1e-9, ...ys);
  const yScale =
    chart.yScale === "log"
      ? logScale(Math.min(largest, ...ys), largest, BOTTOM, TOP)
      : linearScale(largest, BOTTOM, TOP);
  const grid = yScale.ticks.flatMap((tick) => [
    line(LEFT, yScale.at(tick), RIGHT, yScale.at(tick), "grid"),
    text(LEFT - 6, yScale.at(tick) + 4, number(tick), { anchor: "end", style: "faint" }),
  ]);
  const sizes = [...new Set(xs)].sort((a, b) => a - b);
  const foot = sizes.map((x) =>
    text(xScale.at(x), BOTTOM + 16, short(x), { anchor: "middle", style: "faint" }),
  );
  const keys = chart.curves.flatMap(({ name, series }, index) => [
    rectangle(LEFT + index * 105, 24, 10, 10, `s${series}`),
    text(LEFT + index * 105 + 15, 33, name, { style: "faint" }),
  ]);
  const curves = chart.curves.flatMap(({ series, points: own }) => {
    const placed = own.map(({ x, y }) => [xScale.at(x), yScale.at(y)] as const);
    return [polyline(placed, `line l${series}`), ...placed.map(([x, y]) => circle(x, y, 3, `s${series}`))];
  });
  const titles = [
    text(0, 14, chart.title, { style: "title" }),
    text((LEFT + RIGHT) / 2, BOTTOM + 34, chart.xTitle, { anchor: "middle", style: "faint" }),
  ];
  return { width: WIDTH, height: HEIGHT, body: [...titles, ...keys, ...grid, ...foot, ...curves].join("\n") };
}
