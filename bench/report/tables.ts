/** Tables are the summaries of a suite as cells, the head first, for the terminal and for the page. */
import { PEERS } from "../peers/index.ts";
import { hasLanes } from "../peers/peer.ts";
import { type ResultLine, STOLEN_PERCENT_MAX } from "../results.ts";
import { AXES } from "../suites/growth.ts";
import { MEMORY } from "../suites/memory.ts";
import { SHAPES } from "../suites/peers.ts";
import type { Scenario, SuiteName } from "../suites/scenario.ts";
import { SCENARIOS } from "../suites/scenarios.ts";
import { milliseconds, number, thousands } from "./format.ts";
import { machineSpeed } from "./machine-speed.ts";
import { type Spread, type Summary, summarise } from "./summary.ts";

export type Cells = readonly (readonly string[])[];

export function cellsOf(suite: SuiteName, lines: readonly ResultLine[]): Cells {
  const summaries = summarise(lines);
  switch (suite) {
    case "scenarios":
      return scenarioCells(summaries);
    case "peers":
      return peerCells(summaries);
    case "growth":
      return growthCells(summaries);
    case "memory":
      return memoryCells(summaries);
  }
}

const withSpread = (spread: Spread | null, format: (value: number) => string): string => {
  if (spread === null) return "";
  const { median, min, max } = spread;
  return min === max ? format(median) : `${format(median)} (${format(min)}–${format(max)})`;
};

const middle = (spread: Spread | null | undefined, format: (value: number) => string): string =>
  spread ? format(spread.median) : "";

function remarks({ wrong, valid, missing, note, stolenPercent }: Summary): string[] {
  const stolen = stolenPercent?.max ?? 0;
  return [
    ...(wrong > 0 ? [`${wrong} of ${wrong + valid} runs wrong or failed`] : []),
    ...(missing === undefined ? [] : [`not available: ${missing}`]),
    ...(note === undefined ? [] : [note]),
    ...(stolen > STOLEN_PERCENT_MAX ? [`up to ${number(stolen)} % of the machine taken by others`] : []),
  ];
}

function scenarioCells(summaries: readonly Summary[]): Cells {
  const head = [
    "scenario",
    "msgs/s median (min–max)",
    "p50 ms",
    "p99 ms",
    "CPU s/M generator",
    "broker",
    "PostgreSQL",
    "WAL B/msg",
    "x upstream",
    "at equal speed",
    "x trial",
    "goal",
    "also",
  ];
  const rows = SCENARIOS.scenarios.flatMap((scenario) => {
    const summary = summaries.find(({ id }) => id === scenario.id);
    return summary ? [scenarioRow(scenario, summary, summaries)] : [];
  });
  return [head, ...rows];
}

function scenarioRow(scenario: Scenario, summary: Summary, all: readonly Summary[]): string[] {
  const times = (reference: number | undefined): number | null =>
    reference === undefined ? null : ratioTo(scenario, summary, reference);
  const upstream = times(scenario.upstream);
  const speed = machineSpeed(all);
  const shares = (scenario.against ?? []).flatMap((id) => {
    const whole = all.find((other) => other.id === id)?.rate;
    if (!whole || !summary.rate || scenario.compares !== "rate") return [];
    return [`${Math.round((100 * summary.rate.median) / whole.median)} % of ${id}`];
  });
  const extras = Object.entries(summary.extra).map(([name, value]) => `${name} ${number(value.median)}`);
  return [
    scenario.id,
    summary.valid === 0 ? "no rate" : withSpread(summary.rate, thousands),
    middle(summary.p50, milliseconds),
    middle(summary.p99, milliseconds),
    middle(summary.cpu.generator, number),
    middle(summary.cpu.broker, number),
    middle(summary.cpu.postgres, number),
    middle(summary.walBytes, number),
    number(upstream),
    number(upstream === null || speed === null ? null : upstream / speed),
    number(times(scenario.trial)),
    scenario.goal,
    [...remarks(summary), ...shares, ...extras].join(", "),
  ];
}

/** How many times better than the reference: a higher rate, or a shorter time. */
export function ratioTo(scenario: Scenario, summary: Summary, reference: number): number | null {
  if (scenario.compares === "rate") return summary.rate ? summary.rate.median / reference : null;
  return summary.p50 && summary.p50.median > 0 ? reference / summary.p50.median : null;
}

function peerCells(summaries: readonly Summary[]): Cells {
  const head = [
    "peer",
    "one by one, one lane: msgs/s (p50 / p99 ms)",
    "one by one, 100 lanes: msgs/s (p50 / p99 ms)",
    "batches of 100: msgs/s",
    "consume + ack: msgs/s",
    "at 50/s: p50 / p99 ms",
    "at 1/s: p50 ms",
    "after fsync",
    "acks",
    "ordered lanes",
    "groups",
    "replay",
    "version, settings",
  ];
  const rows = PEERS.flatMap((peer) => {
    const own = SHAPES.map((shape) => summaries.find(({ id }) => id === `${peer.name}-${shape}`));
    const [one, lanes, batch, consume, latency, rare] = own;
    const any = own.find((summary) => summary !== undefined);
    if (!any) return [];
    const rate = (summary: Summary | undefined): string =>
      summary?.valid === 0
        ? summary.missing
          ? "not available"
          : "no rate"
        : withSpread(summary?.rate ?? null, thousands);
    const times = (summary: Summary | undefined): string =>
      summary?.p50 ? `${milliseconds(summary.p50.median)} / ${middle(summary.p99, milliseconds)}` : "";
    const rateAndTimes = (summary: Summary | undefined): string =>
      summary?.p50 ? `${rate(summary)} (${times(summary)})` : rate(summary);
    const server = own.find((summary) => summary?.server)?.server;
    const { offers } = peer;
    return [
      [
        peer.title,
        rateAndTimes(one),
        lanes || hasLanes(peer) ? rateAndTimes(lanes) : "no lanes",
        rate(batch),
        rate(consume),
        times(latency),
        middle(rare?.p50 ?? null, milliseconds),
        server ? (server.answersAfterFsync ? "yes" : "**no**") : "",
        offers.acks,
        offers.lanes,
        offers.groups,
        offers.replay,
        [
          ...new Set([
            ...(server ? [server.version, server.settings] : []),
            ...own.flatMap((s) => (s ? remarks(s) : [])),
          ]),
        ].join("; "),
      ],
    ];
  });
  const disk = summaries.find(({ id }) => id === "FSYNC");
  const floor = disk
    ? [
        [
          "fdatasync",
          withSpread(disk.rate, thousands),
          ...head.slice(3).map(() => ""),
          remarks(disk).join("; "),
        ],
      ]
    : [];
  return [head, ...rows, ...floor];
}

function growthCells(summaries: readonly Summary[]): Cells {
  const head = [
    "axis",
    "size",
    "p50 ms (min–max)",
    "p99 ms",
    "CPU µs/op broker",
    "PostgreSQL",
    "WAL B/op",
    "also",
  ];
  const rows = AXES.flatMap((axis) =>
    growthPoints(axis.name, summaries).map(({ value, summary }) => [
      axis.name,
      thousands(value),
      withSpread(summary.p50, milliseconds),
      middle(summary.p99, milliseconds),
      middle(summary.cpu.broker, number),
      middle(summary.cpu.postgres, number),
      middle(summary.walBytes, number),
      [
        ...remarks(summary),
        ...Object.entries(summary.extra).map(([name, spread]) => `${name} ${number(spread.median)}`),
      ].join(", "),
    ]),
  );
  return [head, ...rows];
}

/** The points of an axis by size, whichever sizes were measured. */
export function growthPoints(
  axis: string,
  summaries: readonly Summary[],
): { value: number; summary: Summary }[] {
  return summaries
    .filter(({ id }) => id.startsWith(`${axis}-`))
    .map((summary) => ({ value: Number(summary.id.slice(axis.length + 1)), summary }))
    .sort((a, b) => a.value - b.value);
}

function memoryCells(summaries: readonly Summary[]): Cells {
  const head = ["row", "what", "figure", "also"];
  const rows = MEMORY.scenarios.flatMap((scenario) => {
    const summary = summaries.find(({ id }) => id === scenario.id);
    return summary ? [[scenario.id, scenario.asks, memoryFigure(summary), remarks(summary).join(", ")]] : [];
  });
  return [head, ...rows];
}

function memoryFigure(summary: Summary): string {
  const { load, extra } = summary;
  const all = (names: readonly string[]): string =>
    names.flatMap((name) => (extra[name] ? [`${name} ${withSpread(extra[name], number)}`] : [])).join(", ");
  if (load.kind === "start") return `${middle(summary.p50, (ms) => number(ms / 1000))} s`;
  if (load.kind === "idle") return all(["MB a worker", "primary MB"]);
  if (load.kind === "parked" || load.kind === "lanes") return all(["KB each", "broker % while parked"]);
  return `MB a worker, at most ${withSpread(summary.workerPeakRssMb, number)}`;
}
