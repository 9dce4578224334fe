/** A sweep is maintenance that comes again and again: what is too old, too late or left over is put in order. */
import type { Config } from "../config.ts";

export interface Sweep {
  readonly name: "leases" | "eviction" | "retention" | "partitions" | "metrics" | "lag";
  /** From the end of a pass to the beginning of the next. */
  readonly intervalMs: number;
  /** Rows that a round may change at most. */
  readonly batch: number;
  /** How old something is before it is swept; sweeps of queues ask the queue. */
  readonly keepSeconds: number;
}

const DAY_S = 86_400;
const MINUTE_MS = 60_000;

export function sweepsOf(config: Config): Sweep[] {
  const { retentionIntervalMs, retentionBatchSize, partitionCleanupDays, metricsRetentionDays } = config;
  const retention = { intervalMs: retentionIntervalMs, batch: retentionBatchSize };
  return [
    {
      name: "leases",
      intervalMs: config.leaseSweepIntervalMs,
      batch: 0, // a round is bounded by the cursors it looks at
      // So long after its end a lease is still left to its late consumer.
      keepSeconds: config.leaseSweepIntervalMs / 1000,
    },
    {
      name: "eviction",
      intervalMs: config.evictionIntervalMs,
      batch: config.evictionBatchSize,
      keepSeconds: 0,
    },
    { name: "retention", ...retention, keepSeconds: 0 },
    ...(partitionCleanupDays > 0
      ? [{ name: "partitions", ...retention, keepSeconds: partitionCleanupDays * DAY_S } as const]
      : []),
    { name: "metrics", ...retention, keepSeconds: metricsRetentionDays * DAY_S },
    // Notes how far groups are behind; a round is bounded by its time.
    { name: "lag", intervalMs: MINUTE_MS, batch: 0, keepSeconds: 0 },
  ];
}
