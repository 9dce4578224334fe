/**
 * A family is what Prometheus calls a metric: a name with its meaning, and series that differ by labels. Names of queues
 * and groups become labels only up to a number; all others are summed up under `other`.
 */
import type { DistributionFigures } from "./distribution.ts";

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name of the series where it is not the family's. */
  readonly metricName?: string;
}

export interface Family<Source> {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** How samples with the same labels become one: of several workers, or of several queues under `other`. */
  readonly aggregator: "sum" | "max" | "min";
  readonly read: (source: Source, labels: LabelLimits) => readonly Sample[];
}

export const OTHER = "other";

/** Which names may be labels. */
export interface LabelLimits {
  queue(name: string): string;
  /** The labels of a group of a queue. */
  group(queue: string, group: string): { readonly queue: string; readonly consumer_group: string };
}

export interface Ranked {
  readonly name: string;
  readonly rank: number;
}

/** The names that rank highest, `max` of them; a name may come several times. */
export function highest(ranked: Iterable<Ranked>, max: number): ReadonlySet<string> {
  const ranks = new Map<string, number>();
  for (const { name, rank } of ranked) ranks.set(name, (ranks.get(name) ?? 0) + rank);
  const names = [...ranks].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return new Set(names.slice(0, max).map(([name]) => name));
}

export const groupKey = (queue: string, group: string): string => `${queue}\0${group}`;

export function labelLimits(queues: ReadonlySet<string>, groups: ReadonlySet<string>): LabelLimits {
  return {
    queue: (name) => (queues.has(name) ? name : OTHER),
    group: (queue, group) =>
      groups.has(groupKey(queue, group))
        ? { queue, consumer_group: group }
        : { queue: OTHER, consumer_group: OTHER },
  };
}

/** One sample without labels. */
export const single = (value: number): readonly Sample[] => [{ labels: {}, value }];

/** The series of a histogram: how many values up to each bound, their sum and their number. */
export function histogram(
  name: string,
  { bounds, counts, sum }: DistributionFigures,
  labels: Sample["labels"] = {},
): Sample[] {
  const samples: Sample[] = [];
  let below = 0;
  for (let bucket = 0; bucket < counts.length; bucket++) {
    below += counts[bucket]!;
    const le = bucket < bounds.length ? bounds[bucket]! : "+Inf";
    samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: below });
  }
  samples.push({ metricName: `${name}_sum`, labels, value: sum });
  samples.push({ metricName: `${name}_count`, labels, value: below });
  return samples;
}
