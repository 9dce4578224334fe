/** A time series, drawn by uPlot, which is loaded when the first one is shown. */
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { theme } from "../theme.ts";

export interface Series {
  readonly label: string;
  /** The name of a colour of the style sheet. */
  readonly colour: "accent" | "good" | "warn" | "bad" | "soft" | "blue";
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
  /** Drawn on over what is not known. */
  readonly isJoined?: boolean;
}

export interface ChartProps {
  readonly title: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const HEIGHT = 170;

export function Chart({ title, times, series, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [times, ...series.map(({ values }) => values)] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const shape = series.map(({ label, colour }) => `${label} ${colour}`).join();

  // Made anew for other series and colours only.
  useEffect(() => {
    const element = box.current!;
    let isGone = false;
    let observer: ResizeObserver | undefined;
    void import("uplot").then(({ default: Plot }) => {
      if (isGone) return;
      plot.current = new Plot(options(element, series, format), latest.current, element);
      observer = new ResizeObserver(() =>
        plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }),
      );
      observer.observe(element);
    });
    return () => {
      isGone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape, theme.value]);
  useEffect(() => plot.current?.setData(data));

  const last = (values: Series["values"]): string => {
    const value = values.findLast((each) => each !== null);
    return value === undefined || value === null ? "–" : format(value);
  };
  const summary = series.map(({ label, values }) => `${label} ${last(values)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <span class="label">{title}</span>
        <span class="legend">
          {series.map(({ label, colour, values }) => (
            <span key={label}>
              <i class={`dot ${colour}`} aria-hidden="true" />
              {label} <b>{last(values)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${title}. Now: ${summary}`} />
    </figure>
  );
}

function options(
  element: HTMLElement,
  series: readonly Series[],
  format: (value: number) => string,
): uPlot.Options {
  const colour = colourReader(element);
  const axis = { stroke: colour("soft"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: colour("line"), width: 1 };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "queen" }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.15 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 26, values: timeLabels },
      {
        ...axis,
        grid,
        size: labelWidth,
        space: 34,
        values: (_plot, values) => onceEach(values.map(format)),
      },
    ],
    series: [
      {},
      ...series.map((each) => ({
        label: each.label,
        stroke: colour(each.colour),
        width: 1.75,
        points: { show: isSparse, size: 5 },
        spanGaps: each.isJoined ?? false,
        ...(each.isFilled ? { fill: colour(`${each.colour}-bg`) } : {}),
      })),
    ],
  };
}

/** A line through one point or two is not seen. */
const isSparse: uPlot.Series.Points.Show = (plot, place) =>
  Array.from<number | null | undefined>(plot.data[place]!).filter(
    (value) => value !== null && value !== undefined,
  ).length < 3;

const onceEach = (labels: readonly string[]): string[] =>
  labels.map((label, place) => (label === labels[place - 1] ? "" : label));

const labelWidth: uPlot.Axis.Size = (_plot, values) =>
  12 + 6.2 * Math.max(4, ...(values ?? []).map((value) => value.length));

const two = (value: number): string => String(value).padStart(2, "0");

function timeLabels(_plot: uPlot, values: number[]): string[] {
  const isDays = values.length > 1 && values[values.length - 1]! - values[0]! > 2 * 86_400;
  return values.map((value) => {
    const date = new Date(value * 1000);
    return isDays
      ? `${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}h`
      : `${two(date.getHours())}:${two(date.getMinutes())}`;
  });
}

/** A canvas knows no variables of the style sheet. */
function colourReader(element: HTMLElement): (name: string) => string {
  const probe = document.createElement("span");
  element.append(probe);
  const colours = new Map<string, string>();
  for (const name of [
    "soft",
    "line",
    "accent",
    "good",
    "warn",
    "bad",
    "blue",
    "accent-bg",
    "good-bg",
    "warn-bg",
    "bad-bg",
    "blue-bg",
  ]) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => colours.get(name) ?? "gray";
}

// Figures of a bucket that has just begun are not written yet.
const BEGUN_SECONDS_MIN = 30;

/** Every bucket of a stretch of time; the broker leaves out those in which nothing happened. */
export function buckets<T>(
  range: { readonly from: string; readonly to: string },
  bucketMinutes: number,
  rows: readonly T[],
  timeOf: (row: T) => string,
): { times: number[]; rows: (T | undefined)[] } {
  const step = bucketMinutes * 60;
  const first = Math.ceil(Date.parse(range.from) / 1000 / step) * step;
  const end = Date.parse(range.to) / 1000 - BEGUN_SECONDS_MIN;
  const byTime = new Map(rows.map((row) => [Date.parse(timeOf(row)) / 1000, row]));
  const times: number[] = [];
  for (let at = first; at <= end; at += step) times.push(at);
  return { times, rows: times.map((at) => byTime.get(at)) };
}
