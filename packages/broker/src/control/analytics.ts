/**
 * What operators read of the past and the present: minutes that workers wrote, and messages counted by offsets. The log is
 * never counted; what costs a look at every partition is read once for all who ask within a second.
 */
import type { ClusterFigures, RecentQueue, RecentWorker } from "../metering/cluster-families.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Figures } from "./figures.ts";
import { SharedReadings } from "./shared-readings.ts";

export type { RecentQueue } from "../metering/cluster-families.ts";
export type {
  GaugeLeaf,
  ListedWorker,
  ParkedBucket,
  QueueBucketRow,
  SystemReplica,
  WorkerBucket,
} from "../postgres/statements.ts";

export interface AnalyticsOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly figures: Figures;
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

/** How many messages a queue holds, and how far its readers are. */
export interface QueueCounts {
  readonly id: number;
  readonly name: string;
  readonly namespace: string;
  readonly task: string;
  readonly partitions: number;
  readonly total: number;
  readonly unfinished: number;
  readonly leased: number;
  readonly failed: number;
  readonly dead: number;
  readonly consumed: number;
}

export interface Counts {
  readonly queues: readonly QueueCounts[];
  readonly leases: statements.LeaseCountsRow;
  readonly letters: statements.DeadLetterCountsRow;
  /** Seconds since a worker wrote its figures; null: none ever did. */
  readonly ageSeconds: number | null;
}

export interface Throughput {
  readonly ingestedPerSecond: number;
  readonly processedPerSecond: number;
}

const CLUSTER_KEPT_MS_MAX = 5_000;

export class Analytics {
  readonly #use: AnalyticsOptions["use"];
  readonly #figures: Figures;
  readonly #counts: SharedReadings<string, Omit<Counts, "queues">>;
  readonly #cluster: SharedReadings<null, ClusterFigures>;
  readonly #throughput: SharedReadings<null, Throughput>;
  readonly #recentQueues: SharedReadings<null, readonly RecentQueue[]>;
  readonly #postgres: SharedReadings<null, unknown>;

  constructor({ use, figures, now }: AnalyticsOptions) {
    this.#use = use;
    this.#figures = figures;
    this.#counts = new SharedReadings((key) => this.#readCounts(JSON.parse(key)), now);
    this.#cluster = new SharedReadings(() => this.#readCluster(), now, CLUSTER_KEPT_MS_MAX);
    this.#throughput = new SharedReadings(() => this.#readThroughput(), now);
    this.#recentQueues = new SharedReadings(() => this.#readRecentQueues(), now, CLUSTER_KEPT_MS_MAX);
    this.#postgres = new SharedReadings(() => this.#readPostgres(), now);
  }

  async counts({ queue, namespace, task }: Scope): Promise<Counts> {
    const key = JSON.stringify([queue ?? null, namespace ?? null, task ?? null]);
    const [others, queues] = await Promise.all([this.#counts.get(key), this.#queueCounts()]);
    const isMeant = (each: QueueCounts): boolean =>
      (queue === undefined || each.name === queue) &&
      (namespace === undefined || each.namespace === namespace) &&
      (task === undefined || each.task === task);
    return { ...others.value, queues: queues.filter(isMeant) };
  }

  /** What all brokers share; asked of the database every few seconds at most. */
  cluster(): Promise<ClusterFigures> {
    return this.#cluster.get(null).then(({ value }) => value);
  }

  /** Messages stored and finished per second, over the last one to two minutes. */
  throughput(): Promise<Throughput> {
    return this.#throughput.get(null).then(({ value }) => value);
  }

  /** What was done with each queue in its last finished minute, where that is less than five minutes ago. */
  recentQueues(): Promise<readonly RecentQueue[]> {
    return this.#recentQueues.get(null).then(({ value }) => value);
  }

  postgres(): Promise<unknown> {
    return this.#postgres.get(null).then(({ value }) => value);
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

  /** Every queue, by name. */
  async #queueCounts(): Promise<QueueCounts[]> {
    const { value } = await this.#figures.queues();
    return value
      .map(({ pending, processing, deadLetters, finished, ...row }) => ({
        ...row,
        unfinished: pending + processing,
        leased: processing,
        dead: deadLetters,
        consumed: finished,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #readCounts(scope: readonly (string | null)[]): Promise<Omit<Counts, "queues">> {
    return this.#use(async (session) => {
      const [leases] = await session.run(statements.leaseCounts, scope);
      const [letters] = await session.run(statements.deadLetterCounts, scope);
      const [ageSeconds] = await session.run(statements.metricsAge, []);
      return { leases: leases!, letters: letters!, ageSeconds: ageSeconds! };
    });
  }

  async #readCluster(): Promise<ClusterFigures> {
    const queues = await this.#queueCounts();
    return this.#use(async (session) => {
      const totals = await session.run(statements.metricTotals, []);
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

  async #readRecentQueues(): Promise<readonly RecentQueue[]> {
    const [recent] = await this.#use((session) => session.run(statements.recentMinutes, []));
    return recent!.queues as readonly RecentQueue[];
  }

  async #readPostgres(): Promise<unknown> {
    const [stats] = await this.#use((session) => session.run(statements.postgresStats, []));
    return stats;
  }
}
