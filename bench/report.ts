/** The report is what a person sees: progress while the runs go on, and in the end a table of medians. */
import type { Load } from "./loads/index.ts";
import { type Figures, median } from "./measure.ts";
import type { Scenario } from "./scenarios.ts";

/** One run of one scenario. It has no figures if it failed, and no rate if its verdict is wrong. */
export interface Run {
  readonly scenario: Scenario;
  readonly round: number;
  readonly load: Load;
  readonly figures?: Figures;
  readonly failure?: string;
}

/** Whether the run's figures count: it ended, and what it received is what was sent. */
export const isValid = (run: Run): run is Run & { figures: Figures } =>
  run.figures !== undefined && (run.figures.verdict?.correct ?? true);

const CLEAR_LINE = "\r\x1b[K";
const REDRAW_MS = 250;
// Some terminals do not tell their width.
const COLUMNS_DEFAULT = 80;

/** On a terminal one line that is written over and over; elsewhere a line per run and phase. */
export class Progress {
  readonly #stream: NodeJS.WriteStream;
  readonly #timer: NodeJS.Timeout | undefined;
  #title = "";
  #phase = "";
  #phaseSinceMs = 0;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    if (stream.isTTY) this.#timer = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  begin(title: string): void {
    this.#title = title;
    this.enter("starting");
  }

  enter(phase: string): void {
    this.#phase = phase;
    this.#phaseSinceMs = performance.now();
    if (this.#stream.isTTY) this.#draw();
    else this.#stream.write(`${this.#title}: ${phase}\n`);
  }

  /** A line that stays. */
  say(line: string): void {
    this.#stream.write(this.#stream.isTTY ? `${CLEAR_LINE}${line}\n` : `${line}\n`);
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY) this.#stream.write(CLEAR_LINE);
  }

  #draw(): void {
    if (this.#title === "") return;
    const seconds = Math.floor((performance.now() - this.#phaseSinceMs) / 1000);
    const line = `${this.#title}: ${this.#phase} ${seconds} s`;
    this.#stream.write(CLEAR_LINE + line.slice(0, (this.#stream.columns || COLUMNS_DEFAULT) - 1));
  }
}

/** One run in one line. */
export function describeRun(run: Run): string {
  const title = `${run.scenario.id} round ${run.round}`;
  if (!run.figures) return `${title}: failed: ${run.failure}`;
  const { figures } = run;
  const errors = Object.entries(figures.errors).map(([text, count]) => `${count} x ${text}`);
  const suffix = errors.length > 0 ? `; errors: ${errors.slice(0, 3).join("; ")}` : "";
  if (!isValid(run)) {
    const { verdict } = figures;
    const kinds = ["missing", "duplicated", "reordered", "misplaced", "unknown", "acksRefused"] as const;
    const found = kinds.filter((kind) => verdict![kind] > 0).map((kind) => `${verdict![kind]} ${kind}`);
    return `${title}: WRONG, no rate: ${found.join(", ")} (${verdict!.examples.join("; ")})${suffix}`;
  }
  const { p50, p99 } = figures.latencyMs;
  return `${title}: ${thousands(figures.perSecond)} msgs/s, p50 ${ms(p50)} ms, p99 ${ms(p99)} ms${suffix}`;
}

const COLUMNS = [
  "scenario",
  "msgs/s median (min–max)",
  "p50 ms",
  "p99 ms",
  "CPU s/M gen",
  "broker",
  "PG",
  "WAL B/msg",
  "x upstream",
  "x trial",
  "goal",
  "also",
] as const;

/** The table over all runs, in the order of the scenarios. */
export function table(scenarios: readonly Scenario[], runs: readonly Run[]): string {
  const rows = scenarios.map((scenario) => {
    const own = runs.filter((run) => run.scenario.id === scenario.id);
    return own.length === 0 ? [] : row(scenario, own, runs);
  });
  return layOut([COLUMNS, ...rows.filter((cells) => cells.length > 0)]);
}

function row(scenario: Scenario, own: readonly Run[], all: readonly Run[]): readonly string[] {
  const valid = own.filter(isValid).map((run) => run.figures);
  const wrong = own.length - valid.length;
  const notes = wrong > 0 ? [`${wrong} of ${own.length} runs wrong or failed`] : [];
  if (valid.length === 0) {
    return [scenario.id, "no rate", "", "", "", "", "", "", "", "", scenario.goal, notes.join(", ")];
  }
  const middle = (pick: (figures: Figures) => number | null | undefined): number | undefined =>
    median(valid.map(pick).filter((value) => value !== null && value !== undefined));
  const rates = valid.map((figures) => figures.perSecond);
  const spread = `${thousands(Math.min(...rates))}–${thousands(Math.max(...rates))}`;
  const rate = middle((figures) => figures.perSecond)!;
  const p50 = middle((figures) => figures.latencyMs.p50);
  const times = (reference: number | undefined): string => {
    if (reference === undefined) return "";
    if (scenario.compares === "rate") return (rate / reference).toFixed(2);
    return p50 === undefined || p50 === 0 ? "" : (reference / p50).toFixed(2);
  };
  const extras = Object.keys(valid[0]!.extra).map(
    (name) => `${name} ${number(middle((figures) => figures.extra[name]))}`,
  );
  return [
    scenario.id,
    `${thousands(rate)} (${spread})`,
    ms(p50),
    ms(middle((figures) => figures.latencyMs.p99)),
    number(middle((figures) => figures.cost.cpuSecondsPerMillion.generator)),
    number(middle((figures) => figures.cost.cpuSecondsPerMillion.broker)),
    number(middle((figures) => figures.cost.cpuSecondsPerMillion.postgres)),
    number(middle((figures) => figures.cost.walBytesPerMessage)),
    times(scenario.upstream),
    times(scenario.trial),
    scenario.goal,
    [...notes, ...shareOf(scenario, rate, all), ...extras].join(", "),
  ];
}

/** S1 as a share of its floor, S13 as a share of what the two halves do apart. */
function shareOf(scenario: Scenario, rate: number, all: readonly Run[]): string[] {
  const whole = { S1: "HTTP", S13: "S13-apart" }[scenario.id];
  const rates = all.filter(isValid).filter((run) => run.scenario.id === whole);
  const reference = median(rates.map((run) => run.figures.perSecond));
  return reference === undefined ? [] : [`${Math.round((100 * rate) / reference)} % of ${whole}`];
}

function layOut(rows: readonly (readonly string[])[]): string {
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  const isText = (column: number): boolean => column === 0 || column >= COLUMNS.length - 2;
  return rows
    .map((cells) =>
      cells
        .map((cell, column) =>
          isText(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const thousands = (value: number): string => Math.round(value).toLocaleString("en");
const ms = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
const number = (value: number | undefined): string => {
  if (value === undefined) return "";
  return Math.abs(value) >= 100 ? thousands(value) : String(Number(value.toPrecision(3)));
};

/** The scenarios as --list shows them. */
export function listing(scenarios: readonly Scenario[]): string {
  return scenarios
    .map((scenario) => {
      const unit = scenario.compares === "rate" ? "msgs/s" : "ms p50";
      const figure = (value: number | undefined): string =>
        value === undefined ? "–" : `${value.toLocaleString("en")} ${unit}`;
      const full = scenario.isFull ? " (only with --full)" : "";
      return [
        `${scenario.id.padEnd(12)} ${scenario.asks}${full}`,
        `${"".padEnd(12)} correct: ${scenario.correct}`,
        `${"".padEnd(12)} upstream ${figure(scenario.upstream)}; trial ${figure(scenario.trial)}; goal ${scenario.goal}`,
      ].join("\n");
    })
    .join("\n");
}
