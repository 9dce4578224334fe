/** Progress is what a person sees while the runs go on. */
import { isValid, type Run } from "../results.ts";
import { milliseconds, thousands } from "./format.ts";

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
  if (run.missing !== undefined) return `${title}: not available here: ${run.missing}`;
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
  const parts = [
    ...(figures.perSecond > 0 ? [`${thousands(figures.perSecond)}/s`] : []),
    ...(p50 === null ? [] : [`p50 ${milliseconds(p50)} ms, p99 ${milliseconds(p99)} ms`]),
    ...(figures.note === undefined ? [] : [figures.note]),
    ...(figures.perSecond === 0
      ? Object.entries(figures.extra).map(([name, value]) => `${name} ${value}`)
      : []),
  ];
  return `${title}: ${parts.join(", ")}${suffix}`;
}
