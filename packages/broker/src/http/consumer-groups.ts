/** The handlers of consumer groups: lists, lag, seek, subscription, delete. */
import { BrokerError, leaseId, messageId, partitionId } from "@queen/protocol";
import type { ConsumerGroups, LaggingLaneRow, ListedGroupRow } from "../control/consumer-groups.ts";
import { checkName } from "../operations/names.ts";
import { isoMilliseconds, isoSeconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";
import { HOUR_MS, readRange, type TimeQuery } from "./time-range.ts";
import { checkTime, isoTime, type ReadTimestamp } from "./times.ts";

export interface SeekBody {
  readonly toEnd?: unknown;
  readonly timestamp?: string | null | undefined;
}

const LAGGING_SECONDS = 300;

const isoOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

/** The lease as an ack may name it; null: nobody holds the lane. */
const workerId = (token: number | null, partition: number): string | null =>
  token === null ? null : leaseId({ token, partitions: [partition] });

export class ConsumerGroupRoutes {
  readonly #groups: ConsumerGroups;
  readonly #readTimestamp: ReadTimestamp;
  readonly #clockMs: () => number;

  /** `clockMs` is the database's. */
  constructor(groups: ConsumerGroups, readTimestamp: ReadTimestamp, clockMs: () => number) {
    this.#groups = groups;
    this.#readTimestamp = readTimestamp;
    this.#clockMs = clockMs;
  }

  async list(queue: string | undefined): Promise<Answer> {
    const groups = await this.#groups.list(queue);
    return json(200, groups.map(showGroup));
  }

  async lagging(secondsMin: number, limit: number): Promise<Answer> {
    return json(200, (await this.#groups.lagging(secondsMin, limit)).map(showLaggingLane));
  }

  async lagSeries(request: Request, query: TimeQuery): Promise<Answer> {
    const range = await readRange(query, HOUR_MS, this.#clockMs(), this.#readTimestamp);
    const series = await this.#groups.lagSeries(range, queue(request), group(request));
    return json(200, {
      timeRange: { from: range.from, to: range.to },
      bucketMinutes: range.bucketMinutes,
      series: series.map(({ bucketUs, pending, ageMs }) => ({
        bucket: isoSeconds(bucketUs),
        messages: pending,
        oldestSeconds: Math.round(ageMs / 1000),
      })),
    });
  }

  async detail(
    request: Request,
    query: { queue: string | undefined; limit: number; offset: number },
  ): Promise<Answer> {
    const lanes = await this.#groups.lanes(group(request), query.queue, query.limit, query.offset);
    const queues = new Map<string, { partitions: unknown[] }>();
    for (const lane of lanes) {
      const queue = queues.get(lane.queue) ?? { partitions: [] };
      queues.set(lane.queue, queue);
      queue.partitions.push({
        partition: lane.partition,
        workerId: workerId(lane.leaseToken, lane.partitionId),
        lastConsumedAt: isoOrNull(lane.lastConsumedAtUs),
        totalConsumed: lane.finished,
        offsetLag: lane.pending,
        timeLagSeconds: Math.max(0, Math.floor(lane.lagSeconds ?? 0)),
        leaseActive: lane.leaseActive,
      });
    }
    const total = lanes[0]?.total;
    return json(
      200,
      Object.fromEntries(queues),
      total === undefined ? undefined : { "Queen-Total": String(total) },
    );
  }

  async delete(request: Request, metadata: boolean): Promise<Answer> {
    const name = group(request);
    const lanes = await this.#groups.delete(name, undefined, metadata);
    return json(200, {
      success: true,
      consumerGroup: name,
      deletedPartitions: lanes,
      metadataDeleted: metadata,
    });
  }

  async deleteInQueue(request: Request, metadata: boolean): Promise<Answer> {
    const [name, queueName] = [group(request), queue(request)];
    const lanes = await this.#groups.delete(name, queueName, metadata);
    return json(200, {
      success: true,
      consumerGroup: name,
      queueName,
      deletedPartitions: lanes,
      metadataDeleted: metadata,
    });
  }

  async subscribe(request: Request, subscriptionTimestamp: string): Promise<Answer> {
    const name = group(request);
    const time = await checkTime(subscriptionTimestamp, "subscriptionTimestamp", this.#readTimestamp);
    const rowsUpdated = await this.#groups.subscribe(name, time);
    return json(200, { success: true, consumerGroup: name, newTimestamp: isoTime(time), rowsUpdated });
  }

  async seekQueue(request: Request, body: SeekBody): Promise<Answer> {
    const [name, queueName] = [group(request), queue(request)];
    const at = await this.#place(body);
    const { lanes } = await this.#groups.seek({ queue: queueName, group: name, partition: undefined, at });
    return json(200, {
      success: true,
      consumerGroup: name,
      queueName,
      seekToEnd: at === undefined,
      targetTimestamp: at === undefined ? null : isoTime(at),
      partitionsUpdated: lanes,
    });
  }

  /** To the end, unless the body says a time. */
  async seekPartition(request: Request, body: SeekBody): Promise<Answer> {
    const [name, queueName] = [group(request), queue(request)];
    const partitionName = checkName(request.params.partition, "partition");
    const at = body.timestamp === undefined && body.toEnd === undefined ? undefined : await this.#place(body);
    const { partition, movedTo } = await this.#groups.seek({
      queue: queueName,
      group: name,
      partition: partitionName,
      at,
    });
    return json(200, {
      success: true,
      consumerGroup: name,
      queueName,
      partitionName,
      updated: true,
      cursorMovedTo: movedTo! > 0 ? messageId(partition!, movedTo! - 1) : null,
    });
  }

  /** In one partition, or in all. */
  async previewSeek(
    request: Request,
    query: { toEnd: boolean; timestamp: string | undefined },
  ): Promise<Answer> {
    const { partition } = request.params;
    const { timestamp } = query;
    const at = await this.#place({ timestamp, toEnd: query.toEnd });
    const { lanes, again, skipped, leased } = await this.#groups.preview({
      queue: queue(request),
      group: group(request),
      partition: partition === undefined ? undefined : checkName(partition, "partition"),
      at,
    });
    return json(200, {
      targetTimestamp: at === undefined ? null : isoTime(at),
      partitionsMoved: lanes,
      deliveredAgain: again,
      skipped,
      leasesEnded: leased,
    });
  }

  /** The time to move to; undefined: the end. */
  async #place(body: SeekBody): Promise<string | undefined> {
    const { toEnd, timestamp } = body;
    if (toEnd === true) {
      if (timestamp === undefined || timestamp === null) return undefined;
      throw new BrokerError("VALIDATION_FAILED", "Specify either 'toEnd': true or 'timestamp', not both.");
    }
    if (timestamp === undefined || timestamp === null) {
      throw new BrokerError("VALIDATION_FAILED", "Must specify either 'toEnd': true or 'timestamp'");
    }
    return checkTime(timestamp, "timestamp", this.#readTimestamp);
  }
}

const group = (request: Request): string => checkName(request.params.group, "group");
const queue = (request: Request): string => checkName(request.params.queue, "queue", { allowEmpty: true });

function showGroup(group: ListedGroupRow): Record<string, unknown> {
  const lagSeconds = Math.max(0, Math.floor(group.oldestSeconds));
  return {
    name: group.name,
    topics: [group.queue],
    queueName: group.queue,
    members: group.members,
    partitionsWithLag: group.lagging,
    totalLag: group.pending,
    maxTimeLag: lagSeconds,
    state: group.lastConsumedAtUs === null ? "Dead" : lagSeconds > LAGGING_SECONDS ? "Lagging" : "Stable",
    subscriptionMode: group.subscriptionMode,
    subscriptionTimestamp: isoOrNull(group.subscriptionFromUs),
    subscriptionCreatedAt: isoMilliseconds(group.createdAtUs),
  };
}

function showLaggingLane(lane: LaggingLaneRow): Record<string, unknown> {
  return {
    consumer_group: lane.group,
    queue_name: lane.queue,
    partition_name: lane.partition,
    partition_id: partitionId(lane.partitionId),
    worker_id: workerId(lane.leaseToken, lane.partitionId),
    offset_lag: lane.pending,
    time_lag_seconds: Math.floor(lane.lagSeconds),
    lag_hours: Math.round((lane.lagSeconds / 3600) * 100) / 100,
    oldest_unconsumed_at: isoMilliseconds(lane.oldestAtUs),
    last_consumed_at: isoOrNull(lane.lastConsumedAtUs),
  };
}
