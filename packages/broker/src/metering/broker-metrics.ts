/**
 * The metrics of a broker: the worker that is asked asks the others, and sums up. The figures of the cluster come from the
 * database; where it does not tell them in time, they are left out.
 */
import type { ClusterFigures } from "./cluster-families.ts";
import { expose } from "./exposition.ts";
import { sumMetrics, type WorkerMetrics } from "./metrics-sum.ts";
import type { WorkerSnapshot } from "./snapshot.ts";

export type Question = "metrics" | "snapshot";

export interface BrokerMetricsOptions {
  readonly snapshot: () => WorkerSnapshot;
  readonly metrics: () => WorkerMetrics;
  readonly askOthers: (question: Question) => Promise<{ answers: readonly unknown[]; silent: number }>;
  readonly cluster: () => Promise<ClusterFigures>;
  /** Names of queues, and of groups, that may be labels. */
  readonly labelsMax: number;
}

const CLUSTER_MS_MAX = 3_000;

export class BrokerMetrics {
  readonly #options: BrokerMetricsOptions;

  constructor(options: BrokerMetricsOptions) {
    this.#options = options;
  }

  /** What another worker of the broker wants to know of this one. */
  answer(question: string): unknown {
    const { metrics, snapshot } = this.#options;
    return question === "metrics" ? metrics() : snapshot();
  }

  async metrics(): Promise<Record<string, unknown>> {
    const { metrics, askOthers } = this.#options;
    const { answers, silent } = await askOthers("metrics");
    return sumMetrics(metrics(), answers as readonly WorkerMetrics[], silent);
  }

  async prometheus(): Promise<string> {
    const { snapshot, askOthers, labelsMax } = this.#options;
    const [{ answers, silent }, cluster] = await Promise.all([askOthers("snapshot"), this.#cluster()]);
    const workers = [snapshot(), ...(answers as readonly WorkerSnapshot[])];
    return expose({ workers, silentWorkers: silent, cluster }, labelsMax);
  }

  #cluster(): Promise<ClusterFigures | undefined> {
    return new Promise((resolve) => {
      const deadline = setTimeout(() => resolve(undefined), CLUSTER_MS_MAX);
      this.#options
        .cluster()
        .then(resolve, () => resolve(undefined))
        .finally(() => clearTimeout(deadline));
    });
  }
}
