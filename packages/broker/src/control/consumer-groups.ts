/**
 * Consumer groups as operators see and move them: lists with lag, seek, subscription, delete. Every figure
 * comes from offsets; the log is asked for the time of one message per lane at most.
 */
import { BrokerError } from "@queen/protocol";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { Range } from "./analytics.ts";

export type { GroupLaneRow, LaggingLaneRow, ListedGroupRow } from "../postgres/statements.ts";

export interface ConsumerGroupsOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** An operator moved or deleted the group: leases are over, and other lanes may have work. */
  readonly moved: (queue: string, group: string, ready: readonly number[]) => void;
}

export interface Seek {
  readonly queue: string;
  readonly group: string;
  /** Undefined: in all partitions. */
  readonly partition: string | undefined;
  /** A time as PostgreSQL reads it; undefined: behind everything. */
  readonly at: string | undefined;
}

export interface Sought {
  readonly lanes: number;
  readonly partition: number | null;
  /** The offset that comes next, where one partition was meant. */
  readonly movedTo: number | null;
}

export class ConsumerGroups {
  readonly #options: ConsumerGroupsOptions;

  constructor(options: ConsumerGroupsOptions) {
    this.#options = options;
  }

  list(queue: string | undefined): Promise<statements.ListedGroupRow[]> {
    return this.#options.use((session) => session.run(statements.listGroups, [queue ?? null]));
  }

  lagging(secondsMin: number, limit: number): Promise<statements.LaggingLaneRow[]> {
    return this.#options.use((session) => session.run(statements.listLaggingLanes, [secondsMin, limit]));
  }

  lanes(
    group: string,
    queue: string | undefined,
    limit: number,
    offset: number,
  ): Promise<statements.GroupLaneRow[]> {
    return this.#options.use((session) =>
      session.run(statements.listGroupLanes, [group, queue ?? null, limit, offset]),
    );
  }

  /** How far the group was behind; the oldest first, without stretches of which nothing is known. */
  lagSeries(
    { from, to, bucketMinutes }: Range,
    queue: string,
    group: string,
  ): Promise<statements.LagBucketRow[]> {
    return this.#options.use((session) =>
      session.run(statements.lagSeries, [from, to, bucketMinutes, queue, group]),
    );
  }

  async seek({ queue, group, partition, at }: Seek): Promise<Sought> {
    const [row] = await this.#options.use((session) =>
      session.run(statements.seek, [queue, group, partition ?? null, at ?? null]),
    );
    checkFound(row!, partition);
    const { partitionId, lanes, movedTo, ready } = row!;
    this.#options.moved(queue, group, ready);
    return { lanes, partition: partitionId, movedTo };
  }

  /** What a seek would do. */
  async preview({ queue, group, partition, at }: Seek): Promise<statements.SeekPreviewRow> {
    const [row] = await this.#options.use((session) =>
      session.run(statements.previewSeek, [queue, group, partition ?? null, at ?? null]),
    );
    checkFound(row!, partition);
    return row!;
  }

  /** Returns in how many queues. */
  async subscribe(group: string, from: string): Promise<number> {
    const [rows] = await this.#options.use((session) =>
      session.run(statements.setSubscription, [group, from]),
    );
    if (rows === 0) throw new BrokerError("NOT_FOUND", "Consumer group not found");
    return rows!;
  }

  /** In one queue, or in all; returns in how many partitions. `metadata`: the subscription goes, too. */
  async delete(group: string, queue: string | undefined, metadata: boolean): Promise<number> {
    const [row] = await this.#options.use((session) =>
      session.run(statements.deleteGroup, [group, queue ?? null, metadata]),
    );
    for (const name of row!.queues) this.#options.moved(name, group, []);
    return row!.lanes;
  }
}

type Found = { readonly [K in "queueId" | "groupId" | "partitionId"]: number | null };

function checkFound({ queueId, groupId, partitionId }: Found, partition: string | undefined): void {
  if (queueId === null) throw new BrokerError("NOT_FOUND", "Queue not found");
  if (groupId === null) throw new BrokerError("NOT_FOUND", "Consumer group not found");
  if (partition !== undefined && partitionId === null)
    throw new BrokerError("NOT_FOUND", "Partition not found");
}
