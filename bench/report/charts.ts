/** The charts of each suite, from its summaries. A chart that would be empty is not drawn. */
import type { Shape } from "../loads/peer.ts";
import { isQueen, PEERS } from "../peers/index.ts";
import type { ResultLine } from "../results.ts";
import { AXES, type Axis } from "../suites/growth.ts";
import type { SuiteName } from "../suites/scenario.ts";
import { SCENARIOS } from "../suites/scenarios.ts";
import { type Bar, barChart, shareChart } from "./bar-chart.ts";
import { type Curve, lineChart } from "./line-chart.ts";
import { machineSpeed } from "./machine-speed.ts";
import { type Spread, type Summary, summarise } from "./summary.ts";
import { below, beside, document, type Panel } from "./svg.ts";
import { growthPoints } from "./tables.ts";

export interface Chart {
  /** Of the file, without its ending. */
  readonly name: string;
  readonly title: string;
  readonly svg: string;
}

export function chartsOf(suite: SuiteName, lines: readonly ResultLine[]): Chart[] {
  const summaries = summarise(lines);
  switch (suite) {
    case "scenarios":
      return scenarioCharts(summaries);
    case "peers":
      return peerCharts(summaries);
    case "growth":
      return AXES.flatMap((axis) => growthChart(axis, summaries));
    case "memory":
      return [];
  }
}

function scenarioCharts(summaries: readonly Summary[]): Chart[] {
  const known = SCENARIOS.scenarios.flatMap((scenario) => {
    const summary = summaries.find(({ id }) => id === scenario.id);
    return summary && summary.valid > 0 ? [{ scenario, summary }] : [];
  });
  const speed = machineSpeed(summaries);
  const bars = known.flatMap(({ scenario, summary }): Bar[] => {
    const { compares } = scenario;
    const spread = compares === "rate" ? summary.rate : summary.p50;
    if (scenario.upstream === undefined || !spread) return [];
    const factor = 1 / (speed ?? 1);
    const value =
      compares === "rate"
        ? scaled(spread, factor / scenario.upstream)
        : inverse(spread, factor * scenario.upstream);
    return [{ label: scenario.id, value, series: 0, remark: compares === "rate" ? "x" : "x shorter" }];
  });
  const rows = known.flatMap(({ scenario, summary }) => {
    const { generator, broker, postgres } = summary.cpu;
    if (!generator || !broker || !postgres || scenario.family === "floors") return [];
    return [{ label: scenario.id, parts: [broker.median, postgres.median, generator.median] }];
  });
  const ratios = `Times the C++ server${speed === null ? "" : " at equal speed of the machine"} (logarithmic)`;
  const cpu = "CPU seconds per million messages, and who spends them";
  return [
    ...(bars.length > 0 ? [chart("upstream", ratios, barChart({ title: ratios, bars, scale: "log" }))] : []),
    ...(rows.length > 0
      ? [chart("cpu", cpu, shareChart({ title: cpu, legend: ["broker", "PostgreSQL", "generator"], rows }))]
      : []),
  ];
}

function peerCharts(summaries: readonly Summary[]): Chart[] {
  const panel = (
    shape: Shape,
    title: string,
    pick: (summary: Summary) => Spread | null,
    scale: "linear" | "log" = "linear",
  ): Panel[] => {
    const bars = PEERS.flatMap((peer): Bar[] => {
      const summary = summaries.find(({ id }) => id === `${peer.name}-${shape}`);
      if (!summary) return [];
      const isWeak = summary.server?.answersAfterFsync === false;
      const remark = isWeak ? "(before fsync)" : undefined;
      return [
        {
          label: peer.title,
          value: pick(summary),
          series: isQueen(peer) ? 0 : 1,
          isWeak,
          ...(summary.valid === 0 ? { remark: summary.missing ? "not available here" : "no rate" } : {}),
          ...(remark && summary.valid > 0 ? { remark } : {}),
        },
      ];
    });
    return bars.length === 0 ? [] : [barChart({ title, bars, scale, labelWidth: 170 })];
  };
  const rate = ({ rate: spread }: Summary): Spread | null => spread;
  const panels = [
    ...panel("one", "One by one to one lane, 64 senders: messages a second", rate),
    ...panel("lanes", "One by one to 100 lanes, 64 senders: messages a second", rate),
    ...panel("batch", "Batches of 100, 64 senders: messages a second", rate),
    ...panel("consume", "Consume and acknowledge: messages a second", rate),
    ...panel(
      "latency",
      "End to end at 50 a second: median ms, logarithmic (less is better)",
      ({ p50 }) => p50,
      "log",
    ),
    ...panel(
      "rare",
      "End to end at 1 a second: median ms, logarithmic (less is better)",
      ({ p50 }) => p50,
      "log",
    ),
  ];
  const title = "Queen and the queues that users would pick instead";
  return panels.length === 0 ? [] : [chart("peers", title, below(panels))];
}

function growthChart(axis: Axis, summaries: readonly Summary[]): Chart[] {
  const points = growthPoints(axis.name, summaries).filter(({ summary }) => summary.valid > 0);
  if (points.length < 2) return [];
  const curve = (
    name: string,
    series: 0 | 1 | 2,
    pick: (summary: Summary) => Spread | null | undefined,
  ): Curve[] => {
    const own = points.flatMap(({ value, summary }) => {
      const spread = pick(summary);
      return spread ? [{ x: value, y: spread.median }] : [];
    });
    return own.length === points.length ? [{ name, series, points: own }] : [];
  };
  const yScale = axis.isWork ? "log" : "linear";
  const times = [
    ...curve(points[0]!.summary.load.kind === "sparse" ? "pop" : "p50", 0, ({ p50 }) => p50),
    ...curve("push", 1, ({ extra }) => extra["push p50 ms"]),
  ];
  const cpu = [
    ...curve("broker", 0, (summary) => summary.cpu.broker),
    ...curve("PostgreSQL", 1, (summary) => summary.cpu.postgres),
  ];
  const panels = [
    ...(times.length > 0
      ? [lineChart({ title: "median ms", xTitle: axis.unit, curves: times, yScale })]
      : []),
    ...(cpu.length > 0
      ? [lineChart({ title: "CPU µs an operation", xTitle: axis.unit, curves: cpu, yScale })]
      : []),
  ];
  return panels.length === 0 ? [] : [chart(`growth-${axis.name}`, `Growth: ${axis.asks}`, beside(panels))];
}

const chart = (name: string, title: string, panel: Panel): Chart => ({
  name,
  title,
  svg: document(title, panel),
});

const scaled = ({ median, min, max }: Spread, factor: number): Spread => ({
  median: median * factor,
  min: min * factor,
  max: max * factor,
});

const inverse = ({ median, min, max }: Spread, reference: number): Spread => ({
  median: reference / median,
  min: reference / max,
  max: reference / min,
});
