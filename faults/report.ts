/** The report is what a person sees: progress while a test runs, one line when it is over, and a JSON line. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import type { Outcome } from "./outcome.ts";

const CLEAR_LINE = "\r\x1b[K";
// Some terminals do not tell their width.
const COLUMNS_DEFAULT = 100;

/** On a terminal one line that is written over and over; elsewhere nothing but what stays. */
export class Progress {
  readonly #stream: NodeJS.WriteStream;
  #title = "";
  #startedMs = 0;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  begin(title: string): void {
    this.#title = title;
    this.#startedMs = performance.now();
  }

  enter(phase: string, figures?: { stored: number; acked: number }): void {
    if (!this.#stream.isTTY) return;
    const seconds = Math.floor((performance.now() - this.#startedMs) / 1000);
    const counts = figures ? ` (${figures.stored} pushed, ${figures.acked} acked)` : "";
    const line = `${this.#title} ${seconds} s: ${phase}${counts}`;
    this.#stream.write(CLEAR_LINE + line.slice(0, (this.#stream.columns || COLUMNS_DEFAULT) - 1));
  }

  /** A line that stays. */
  say(line: string): void {
    this.#stream.write(this.#stream.isTTY ? `${CLEAR_LINE}${line}\n` : `${line}\n`);
  }
}

export interface Result {
  readonly id: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  readonly tookMs: number;
  readonly outcome: Outcome;
}

export const isOk = ({ outcome }: Result): boolean => outcome.problems.length === 0;

/** One test in one line; what did not hold follows, a line each. */
export function describeResult(result: Result): string {
  const { id, title, seed, outcome } = result;
  const { load, faults, pushed, delivered, lost, duplicated, reordered, longestStallMs } = outcome;
  const line = [
    `${id} seed ${seed}`,
    title,
    `load ${load}`,
    `${faults} faults`,
    `pushed ${pushed}`,
    `delivered ${delivered}`,
    `lost ${lost}`,
    `duplicated ${duplicated}`,
    `reordered ${reordered}`,
    `longest stall ${(longestStallMs / 1000).toFixed(1)} s`,
    isOk(result) ? "ok" : "FAILED",
  ].join(" | ");
  return [
    line,
    ...outcome.notes.map((note) => `    ${note}`),
    ...outcome.problems.map((problem) => `    FAILED: ${problem}`),
  ].join("\n");
}

/** Writes one line per run, with all that is needed to repeat it and to compare it with another day's. */
export function recorder(): (result: Result) => void {
  const folder = fileURLToPath(new URL("../results/", import.meta.url));
  const startedAt = new Date().toISOString();
  const { commit, isDirty } = revision();
  return (result) => {
    mkdirSync(folder, { recursive: true });
    const { outcome, ...rest } = result;
    const { notes, ...figures } = outcome;
    const line = {
      at: new Date().toISOString(),
      session: startedAt,
      commit,
      isDirty,
      ...rest,
      verdict: isOk(result) ? "ok" : "failed",
      ...figures,
      notes: notes.filter((note) => !note.includes("/tmp/")),
      node: process.version,
      cores: cpus().length,
    };
    appendFileSync(`${folder}${startedAt.slice(0, 10)}.jsonl`, `${JSON.stringify(line)}\n`);
  };
}

/** The state of the code that ran. */
export function revision(): { commit: string | null; isDirty: boolean | null } {
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    // New result files do not make the code another one.
    const isDirty = git("status", "--porcelain", "--", ":/", ":(exclude)results") !== "";
    return { commit: git("rev-parse", "HEAD"), isDirty };
  } catch {
    return { commit: null, isDirty: null };
  }
}
