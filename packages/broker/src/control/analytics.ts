/**
 * What operators read of the past and the present: minutes that workers wrote, and messages counted by offsets. The log is
 * never counted; what costs a look at every partition is read once for all who ask within a second.
 */
import type { ClusterFigures, RecentQueue, RecentWorker } from "../metering/cluster-families.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { SharedReading } from "./shared-reading.ts";

export type {
  GaugeLeaf,
  ListedWorker,
  ParkedBucket,
  QueueBucketRow,
  QueueCountsRow,
  SystemReplica,
  WorkerBucket,
} from "../postgres/statements.ts";

export interface AnalyticsOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly now: () => number;
}

/** A stretch of time, cut into buckets. Times as PostgreSQL reads them. */
export interface Range {
  readonly from: string;
  readonly to: string;
  readonly bucketMinutes: number;
}

/** Which queues; undefined: any. */
export interface Scope {
  readonly queue: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
}

/** Which workers; undefined: any. */
export interface Workers {
  readonly hostname: string | undefined;
  readonly worker: number | undefined;
}

export interface Counts {
  readonly queues: readonly statements.QueueCountsRow[];
  readonly leases: statements.LeaseCountsRow;
  readonly letters: statements.DeadLetterCountsRow;
  /** Seconds since a worker wrote its figures; null: none ever did. */
  readonly ageSeconds: number | null;
}

export interface Throughput {
  readonly ingestedPerSecond: number;
  readonly processedPerSecond: number;
}

const COUNTS_KEPT_MS = 1_000;
const CLUSTER_KEPT_MS = 5_000;

export class Analytics {
  readonly #use: AnalyticsOptions["use"];
  readonly #counts: SharedReading<Counts>;
  readonly #cluster: SharedReading<ClusterFigures>;
  readonly #throughput: SharedReading<Throughput>;
  readonly #postgres: SharedReading<unknown>;

  constructor({ use, now }: AnalyticsOptions) {
    this.#use = use;
    this.#counts = new SharedReading(COUNTS_KEPT_MS, now, (key) => this.#readCounts(JSON.parse(key)));
    this.#cluster = new SharedReading(CLUSTER_KEPT_MS, now, () => this.#readCluster());
    this.#throughput = new SharedReading(COUNTS_KEPT_MS, now, () => this.#readThroughput());
    this.#postgres = new SharedReading(COUNTS_KEPT_MS, now, () => this.#readPostgres());
  }

  counts({ queue, namespace, task }: Scope): Promise<Counts> {
    return this.#counts.get(JSON.stringify([queue ?? null, namespace ?? null, task ?? null]));
  }

  /** What all brokers share; asked of the database every few seconds at most. */
  cluster(): Promise<ClusterFigures> {
    return this.#cluster.get();
  }

  /** Messages stored and finished per second, over the last one to two minutes. */
  throughput(): Promise<Throughput> {
    return this.#throughput.get();
  }

  postgres(): Promise<unknown> {
    return this.#postgres.get();
  }

  /** The newest first. */
  async workerSeries(
    range: Range,
    { hostname, worker }: Workers,
  ): Promise<readonly statements.WorkerBucket[]> {
    const [series] = await this.#use((session) =>
      session.run(statements.workerSeries, [
        range.from,
        range.to,
        range.bucketMinutes,
        hostname ?? null,
        worker ?? null,
      ]),
    );
    return series!;
  }

  async workers(range: Range, { hostname, worker }: Workers): Promise<readonly statements.ListedWorker[]> {
    const [workers] = await this.#use((session) =>
      session.run(statements.workerList, [range.from, range.to, hostname ?? null, worker ?? null]),
    );
    return workers!;
  }

  /** The oldest first. */
  queueSeries(range: Range, { queue, namespace, task }: Scope): Promise<statements.QueueBucketRow[]> {
    return this.#use((session) =>
      session.run(statements.queueSeries, [
        range.from,
        range.to,
        range.bucketMinutes,
        queue ?? null,
        namespace ?? null,
        task ?? null,
      ]),
    );
  }

  async parkedSeries(range: Range, queue: string | undefined): Promise<readonly statements.ParkedBucket[]> {
    const [series] = await this.#use((session) =>
      session.run(statements.parkedSeries, [range.from, range.to, range.bucketMinutes, queue ?? null]),
    );
    return series!;
  }

  async systemSeries(
    range: Range,
    { hostname, worker }: Workers,
  ): Promise<readonly statements.SystemReplica[]> {
    const [replicas] = await this.#use((session) =>
      session.run(statements.systemSeries, [
        range.from,
        range.to,
        range.bucketMinutes,
        hostname ?? null,
        worker ?? null,
      ]),
    );
    return replicas!;
  }

  #readCounts(scope: readonly (string | null)[]): Promise<Counts> {
    return this.#use(async (session) => {
      const queues = await session.run(statements.queueCounts, scope);
      const [leases] = await session.run(statements.leaseCounts, scope);
      const [letters] = await session.run(statements.deadLetterCounts, scope);
      const [ageSeconds] = await session.run(statements.metricsAge, []);
      return { queues, leases: leases!, letters: letters!, ageSeconds: ageSeconds! };
    });
  }

  #readCluster(): Promise<ClusterFigures> {
    return this.#use(async (session) => {
      const totals = await session.run(statements.metricTotals, []);
      const queues = await session.run(statements.queueCounts, [null, null, null]);
      const groups = await session.run(statements.listGroups, [null]);
      const [recent] = await session.run(statements.recentMinutes, []);
      return {
        totals: Object.fromEntries(totals.map(({ name, value }) => [name, value])),
        queues,
        groups: groups.map(({ queue, name, pending, oldestSeconds }) => ({
          queue,
          group: name,
          messages: pending,
          seconds: Math.max(0, oldestSeconds),
        })),
        recentQueues: recent!.queues as readonly RecentQueue[],
        recentWorkers: recent!.workers as unknown as readonly RecentWorker[],
      };
    });
  }

  async #readThroughput(): Promise<Throughput> {
    const [row] = await this.#use((session) => session.run(statements.readThroughput, []));
    const { pushed, finished, seconds } = row!;
    const perSecond = (count: number): number => Math.round((count / seconds) * 100) / 100;
    return { ingestedPerSecond: perSecond(pushed), processedPerSecond: perSecond(finished) };
  }

  async #readPostgres(): Promise<unknown> {
    const [stats] = await this.#use((session) => session.run(statements.postgresStats, []));
    return stats;
  }
}
