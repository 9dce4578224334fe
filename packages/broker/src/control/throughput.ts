/**
 * Throughput from two readings of the sums: what came and what was finished between them, per second. The
 * first reading shows nothing yet. What a seek or a clear finishes counts as processed.
 */
import type { QueueFiguresRow } from "../postgres/statements.ts";
import type { Reading } from "./shared-readings.ts";

export interface Rates {
  readonly ingestedPerSecond: number;
  readonly processedPerSecond: number;
}

interface Mark {
  readonly atMs: number;
  readonly appended: number;
  readonly finished: number;
}

// Readings closer than this say little about a second.
const APART_MS_MIN = 1_000;

export class Throughput {
  readonly #read: () => Promise<Reading<readonly QueueFiguresRow[]>>;
  #before: Mark | undefined;
  #last: Mark | undefined;

  constructor(read: () => Promise<Reading<readonly QueueFiguresRow[]>>) {
    this.#read = read;
  }

  async perSecond(): Promise<Rates> {
    const { value, atMs } = await this.#read();
    const sum = (pick: (row: QueueFiguresRow) => number): number =>
      value.reduce((total, row) => total + pick(row), 0);
    const mark = { atMs, appended: sum((row) => row.appended), finished: sum((row) => row.finished) };
    if (!this.#last || atMs - this.#last.atMs >= APART_MS_MIN) {
      this.#before = this.#last;
      this.#last = mark;
    }
    const since = this.#before;
    if (!since || atMs <= since.atMs) return { ingestedPerSecond: 0, processedPerSecond: 0 };
    const rate = (now: number, then: number): number =>
      Math.round((Math.max(0, now - then) / (atMs - since.atMs)) * 100_000) / 100;
    return {
      ingestedPerSecond: rate(mark.appended, since.appended),
      processedPerSecond: rate(mark.finished, since.finished),
    };
  }
}
