/** The handlers of background sweeps: what they did last, and what they took from readers over time. */
import type { ListedSweepRow, RetentionRow, Sweeps } from "../control/sweeps.ts";
import { isoMilliseconds, isoSeconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";
import { HOUR_MS, readRange, type TimeQuery } from "./time-range.ts";
import type { ReadTimestamp } from "./times.ts";

export interface RetentionQuery extends TimeQuery {
  readonly queue: string | undefined;
}

const isoOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

export interface SweepOptions {
  readonly sweeps: Sweeps;
  readonly readTimestamp: ReadTimestamp;
  /** The database's clock. */
  readonly clockMs: () => number;
}

export class SweepRoutes {
  readonly #options: SweepOptions;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  async list(): Promise<Answer> {
    return json(200, { sweeps: (await this.#options.sweeps.list()).map(showSweep) });
  }

  async retention(query: RetentionQuery): Promise<Answer> {
    const { sweeps, readTimestamp, clockMs } = this.#options;
    const range = await readRange(query, HOUR_MS, clockMs(), readTimestamp);
    const series = await sweeps.retention(range, query.queue);
    const zero = { bucketUs: 0, retention: 0, completedRetention: 0, eviction: 0, events: 0 };
    return json(200, {
      timeRange: { from: range.from, to: range.to },
      bucketMinutes: range.bucketMinutes,
      series: series.map((row) => ({ bucket: isoSeconds(row.bucketUs), ...showCounts(row) })),
      totals: showCounts(series.reduce(sum, zero)),
    });
  }
}

const showCounts = (row: RetentionRow): Record<string, number> => ({
  retentionMsgs: row.retention,
  completedRetentionMsgs: row.completedRetention,
  evictionMsgs: row.eviction,
  totalMsgs: row.retention + row.completedRetention + row.eviction,
  eventCount: row.events,
});

const sum = (one: RetentionRow, other: RetentionRow): RetentionRow => ({
  ...one,
  retention: one.retention + other.retention,
  completedRetention: one.completedRetention + other.completedRetention,
  eviction: one.eviction + other.eviction,
  events: one.events + other.events,
});

const showSweep = (row: ListedSweepRow): Record<string, unknown> => ({
  name: row.name,
  underWay: row.isUnderWay,
  worker: row.worker,
  startedAt: isoOrNull(row.startedAtUs),
  finishedAt: isoOrNull(row.finishedAtUs),
  rounds: row.rounds,
  busyMs: Math.round(row.busyMs),
  done: row.done,
  passes: row.passes,
  total: row.total,
});
