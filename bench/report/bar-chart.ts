/** A bar chart: one bar below the other, with the spread as a whisker and the value in words. */
import { number, thousands } from "./format.ts";
import { linearScale, logScale } from "./scale.ts";
import type { Spread } from "./summary.ts";
import { line, type Panel, rectangle, type Series, text } from "./svg.ts";

export interface Bar {
  readonly label: string;
  /** Null: there is nothing to show, and `remark` says why. */
  readonly value: Spread | null;
  readonly remark?: string;
  readonly series: Series;
  /** Not comparable with the others. */
  readonly isWeak?: boolean;
}

export interface BarChart {
  readonly title: string;
  readonly bars: readonly Bar[];
  readonly scale: "linear" | "log";
  readonly width?: number;
  readonly labelWidth?: number;
}

const ROW = 22;
const BAR = 14;
const TOP = 26;
const VALUE_WIDTH = 90;

export function barChart(chart: BarChart): Panel {
  const { title, bars, width = 720, labelWidth = 150 } = chart;
  const values = bars.flatMap(({ value }) => (value ? [value.max] : []));
  const largest = Math.max(1e-9, ...values);
  const right = width - VALUE_WIDTH;
  const scale =
    chart.scale === "linear"
      ? linearScale(largest, labelWidth, right)
      : logScale(
          Math.min(1, ...bars.flatMap(({ value }) => (value ? [value.min] : []))),
          largest,
          labelWidth,
          right,
        );
  const bottom = TOP + bars.length * ROW;
  const grid = scale.ticks.flatMap((tick) => [
    line(scale.at(tick), TOP - 4, scale.at(tick), bottom, "grid"),
    text(scale.at(tick), bottom + 14, number(tick), { anchor: "middle", style: "faint" }),
  ]);
  const rows = bars.flatMap((bar, index) => row(bar, TOP + index * ROW, scale, labelWidth));
  return {
    width,
    height: bottom + 22,
    body: [text(0, 14, title, { style: "title" }), ...grid, ...rows].join("\n"),
  };
}

function row(bar: Bar, y: number, scale: { at(value: number): number }, left: number): string[] {
  const label = text(left - 8, y + BAR - 1, bar.label, { anchor: "end" });
  if (bar.value === null) return [label, text(left + 6, y + BAR - 1, bar.remark ?? "", { style: "faint" })];
  const { median, min, max } = bar.value;
  const style = `s${bar.series}${bar.isWeak ? " weak" : ""}`;
  const words = median >= 100 ? thousands(median) : number(median);
  return [
    label,
    rectangle(left, y + 2, scale.at(median) - left, BAR, style),
    ...(min === max ? [] : [line(scale.at(min), y + 2 + BAR / 2, scale.at(max), y + 2 + BAR / 2, "whisker")]),
    text(scale.at(max) + 6, y + BAR - 1, bar.remark ? `${words} ${bar.remark}` : words),
  ];
}

export interface ShareChart {
  readonly title: string;
  readonly legend: readonly string[];
  readonly rows: readonly { readonly label: string; readonly parts: readonly number[] }[];
}

/** Each row is a whole, cut into parts; the sum is told in words. */
export function shareChart(chart: ShareChart): Panel {
  const { title, legend, rows } = chart;
  const width = 720;
  const left = 150;
  const right = width - VALUE_WIDTH;
  const top = TOP + 20;
  const keys = legend.flatMap((name, index) => [
    rectangle(left + index * 110, TOP - 6, 10, 10, `s${index}`),
    text(left + index * 110 + 16, TOP + 4, name, { style: "faint" }),
  ]);
  const body = rows.flatMap(({ label, parts }, index) => {
    const y = top + index * ROW;
    const sum = parts.reduce((total, part) => total + part, 0);
    let x = left;
    const pieces = parts.map((part, series) => {
      const length = sum > 0 ? ((right - left) * part) / sum : 0;
      x += length;
      return rectangle(x - length, y + 2, length, BAR, `s${series}`);
    });
    return [
      text(left - 8, y + BAR - 1, label, { anchor: "end" }),
      ...pieces,
      text(right + 6, y + BAR - 1, number(sum)),
    ];
  });
  const height = top + rows.length * ROW + 6;
  return { width, height, body: [text(0, 14, title, { style: "title" }), ...keys, ...body].join("\n") };
}
