/** Figures are what one run has measured: a rate, a distribution of latencies, a cost and a verdict. */
import { type Cost, round } from "./accounting.ts";
import type { Verdict } from "./check.ts";

export interface Figures {
  /** Messages inside the measured window. */
  readonly messages: number;
  readonly perSecond: number;
  readonly latencyMs: Distribution;
  readonly cost: Cost;
  /** Null for a floor, which stores nothing that could be read back. */
  readonly verdict: Verdict | null;
  /** Further figures by their printed name. */
  readonly extra: Readonly<Record<string, number>>;
  /** Unexpected answers and broken connections, by text. */
  readonly errors: Readonly<Record<string, number>>;
  /** How it was measured, where that is not the same everywhere. */
  readonly note?: string;
}

export interface Distribution {
  readonly count: number;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly max: number | null;
}

export function distribution(values: readonly number[]): Distribution {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number | null => {
    const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    return value === undefined ? null : round(value, 2);
  };
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1) };
}

/** The value in the middle, or the mean of the two in the middle. */
export function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  if (upper === undefined || sorted.length % 2 === 1) return upper;
  return (sorted[(sorted.length >> 1) - 1]! + upper) / 2;
}

export interface Mark {
  readonly atMs: number;
  readonly total: number;
}

/**
 * The part of a drain between two shares of its messages: it leaves out the start, where connections and caches
 * are cold, and the end, where consumers run out of work one after the other.
 */
export function steadyPart(marks: readonly Mark[], from: number, to: number): { from: Mark; to: Mark } {
  const last = marks.at(-1) ?? { atMs: 0, total: 0 };
  const reach = (share: number): Mark => marks.find((mark) => mark.total >= last.total * share) ?? last;
  return { from: reach(from), to: reach(to) };
}

export function ratePerSecond(count: number, elapsedMs: number): number {
  return elapsedMs > 0 ? Math.round((count * 1000) / elapsedMs) : 0;
}
