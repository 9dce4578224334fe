/** The exposition: figures of workers and of the cluster as the text that Prometheus reads. */
import { AggregatorRegistry } from "prom-client";
import { BROKER_FAMILIES } from "./broker-families.ts";
import { CLUSTER_FAMILIES, type ClusterFigures } from "./cluster-families.ts";
import { type Family, groupKey, highest, labelLimits, OTHER, type Ranked, single } from "./family.ts";
import { trafficOf, type WorkerSnapshot } from "./snapshot.ts";

export interface Exposed {
  readonly workers: readonly WorkerSnapshot[];
  /** Workers of this broker that did not answer in time. */
  readonly silentWorkers: number;
  /** Undefined: the database did not tell. */
  readonly cluster: ClusterFigures | undefined;
}

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const WORKERS: Family<Exposed> = {
  name: "queen_workers",
  help: "Workers of this broker that answered, and that did not in time",
  type: "gauge",
  aggregator: "sum",
  read: ({ workers, silentWorkers }) => [
    { labels: { state: "answered" }, value: workers.length },
    { labels: { state: "silent" }, value: silentWorkers },
  ],
};

const CLUSTER_UP: Family<Exposed> = {
  name: "queen_cluster_figures_available",
  help: "1: the database told the figures that all brokers share; 0: they are left out",
  type: "gauge",
  aggregator: "sum",
  read: ({ cluster }) => single(cluster ? 1 : 0),
};

export function expose(exposed: Exposed, labelsMax: number): Promise<string> {
  const { workers, cluster } = exposed;
  const limits = labelLimits(
    highest(rankedQueues(exposed), labelsMax),
    highest(
      (cluster?.groups ?? []).map(({ queue, group, messages }) => ({
        name: groupKey(queue, group),
        rank: messages,
      })),
      labelsMax,
    ),
  );
  const metrics = <Source>(families: readonly Family<Source>[], source: Source): object[] =>
    families.map(({ name, help, type, aggregator, read }) => ({
      name,
      help,
      type,
      aggregator,
      values: read(source, limits),
    }));
  return AggregatorRegistry.aggregate([
    metrics([WORKERS, CLUSTER_UP], exposed),
    ...workers.map((worker) => metrics(BROKER_FAMILIES, worker)),
    ...(cluster ? [metrics(CLUSTER_FAMILIES, cluster)] : []),
  ]).metrics();
}

/** By traffic since the workers started, and by what waits; what a worker has summed up already has no name. */
function* rankedQueues({ workers, cluster }: Exposed): Generator<Ranked> {
  for (const worker of workers) {
    for (const { name, counts } of worker.queues) if (name !== OTHER) yield { name, rank: trafficOf(counts) };
  }
  for (const { name, unfinished, dead } of cluster?.queues ?? []) yield { name, rank: unfinished + dead };
}
