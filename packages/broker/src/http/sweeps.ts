/** The handlers of background sweeps: what they did last, and what they took from readers over time. */
import { BrokerError } from "@queen/protocol";
import type { ListedSweepRow, RetentionRow, Sweeps } from "../control/sweeps.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer } from "./route.ts";
import { checkTime, type ReadTimestamp } from "./times.ts";

export interface RetentionQuery {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly queue: string | undefined;
}

const isoOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

/** `2026-11-15T19:23:00Z`. */
const isoSeconds = (us: number): string => `${isoMilliseconds(us).slice(0, 19)}Z`;

export class SweepRoutes {
  readonly #sweeps: Sweeps;
  readonly #readTimestamp: ReadTimestamp;

  constructor(sweeps: Sweeps, readTimestamp: ReadTimestamp) {
    this.#sweeps = sweeps;
    this.#readTimestamp = readTimestamp;
  }

  async list(): Promise<Answer> {
    return json(200, { sweeps: (await this.#sweeps.list()).map(showSweep) });
  }

  async retention(query: RetentionQuery): Promise<Answer> {
    const time = async (text: string | undefined, field: string): Promise<string | undefined> =>
      text === undefined ? undefined : checkTime(text, field, this.#readTimestamp);
    const from = await time(query.from, "from");
    const to = await time(query.to, "to");
    const [range, ...buckets] = await this.#sweeps.retention(from, to, query.queue);
    const { fromUs, toUs, bucketMinutes } = range!;
    if (fromUs > toUs) throw new BrokerError("VALIDATION_FAILED", "from must not be after to.");
    const zero = { ...range!, retention: 0, completedRetention: 0, eviction: 0, events: 0 };
    return json(200, {
      timeRange: { from: isoMilliseconds(fromUs), to: isoMilliseconds(toUs) },
      bucketMinutes,
      series: buckets.map((row) => ({ bucket: isoSeconds(row.bucketUs!), ...showCounts(row) })),
      totals: showCounts(buckets.reduce(sum, zero)),
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
