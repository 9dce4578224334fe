/** The handlers that show what there is: queues, partitions, namespaces, tasks, the overview; all with figures. */

import { BrokerError, partitionId, queueId } from "@queen/protocol";
import type { RecentQueue, Throughput } from "../control/analytics.ts";
import type {
  Figures,
  LaneFiguresRow,
  LanePage,
  ListedGroupRow,
  QueueFiguresRow,
} from "../control/figures.ts";
import { checkName } from "../operations/names.ts";
import { saidQueueOptions, showQueueOptions } from "../operations/queue-options.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

export interface ResourceOptions {
  readonly figures: Figures;
  readonly throughput: () => Promise<Throughput>;
  /** What was done with queues in their last finished minute. */
  readonly recentQueues: () => Promise<readonly RecentQueue[]>;
  readonly now: () => number;
}

export const QUEUE_SORTS = [
  "newest",
  "name",
  "depth",
  "lag",
  "in",
  "out",
  "deadLetters",
  "partitions",
] as const;

export interface QueuesQuery {
  readonly sort?: (typeof QUEUE_SORTS)[number] | undefined;
  readonly search?: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
  readonly limit: number;
  readonly offset: number;
}

export type LanesQuery = Omit<LanePage, "queue" | "sort"> & { readonly sort: LanePage["sort"] | undefined };

type Counts = Pick<QueueFiguresRow, "total" | "pending" | "processing" | "deadLetters">;

const isoOrNull = (us: number | null): string | null => (us === null ? null : isoMilliseconds(us));

export class ResourceRoutes {
  readonly #options: ResourceOptions;

  constructor(options: ResourceOptions) {
    this.#options = options;
  }

  /** Here `pending` is without what is being processed. */
  async queues(query: QueuesQuery): Promise<Answer> {
    const { queues, headers } = await this.#chosen(query);
    const activity = await this.#activity();
    const rows = queues.map((queue) => ({
      ...showQueue(queue, queue.pending),
      ...(activity.get(queue.name) ?? QUIET),
      deadLetters: queue.deadLetters,
    }));
    const order = QUEUE_ORDERS[query.sort ?? "newest"];
    if (order) rows.sort(order);
    return json(200, { queues: rows.slice(query.offset, query.offset + query.limit) }, headers);
  }

  /** By queue: how far its groups are behind, and what was done with it. */
  async #activity(): Promise<Map<string, Activity>> {
    const { figures, recentQueues } = this.#options;
    const [groups, recent] = await Promise.all([figures.groups(), recentQueues()]);
    const activity = new Map<string, Activity>();
    for (const { queue, oldestSeconds } of groups) {
      const lagSeconds = Math.max(0, Math.floor(oldestSeconds), activity.get(queue)?.lagSeconds ?? 0);
      activity.set(queue, { ...QUIET, lagSeconds });
    }
    for (const { queue, push_messages, ack_success } of recent) {
      activity.set(queue, {
        ...(activity.get(queue) ?? QUIET),
        inPerSecond: perSecond(push_messages),
        outPerSecond: perSecond(ack_success),
      });
    }
    return activity;
  }

  /** Here `pending` is with what is being processed. */
  async statusQueues(query: QueuesQuery): Promise<Answer> {
    const { limit, offset } = query;
    const { queues, headers } = await this.#chosen(query);
    const page = queues.slice(offset, offset + limit);
    return json(
      200,
      {
        queues: page.map((queue) => showQueue(queue, queue.pending + queue.processing)),
        pagination: { limit, offset },
      },
      headers,
    );
  }

  async #chosen({ search, namespace, task }: QueuesQuery): Promise<{
    queues: QueueFiguresRow[];
    headers: Record<string, string>;
  }> {
    const { value } = await this.#options.figures.queues();
    const part = search?.toLowerCase();
    const queues = value.filter(
      (queue) =>
        (part === undefined || queue.name.toLowerCase().includes(part)) &&
        (namespace === undefined || queue.namespace === namespace) &&
        (task === undefined || queue.task === task),
    );
    return { queues, headers: { "Queen-Total": String(queues.length) } };
  }

  async queue(request: Request, query: LanesQuery): Promise<Answer> {
    const { figures, lanes, pagination, headers } = await this.#queue(request, query);
    return json(
      200,
      {
        ...identity(figures),
        partitions: lanes.map((lane) => ({ ...laneIdentity(lane), stats: counts(lane), ...laneTimes(lane) })),
        totals: counts(figures),
        pagination,
      },
      headers,
    );
  }

  async statusQueue(request: Request, query: LanesQuery): Promise<Answer> {
    const { row, figures, lanes, pagination, headers } = await this.#queue(request, query);
    const totals = counts(figures);
    const options = showQueueOptions(row);
    const { leaseTime, retryLimit, retryDelay, ttl, maxSize, deadLetterQueue, priority } = options;
    return json(
      200,
      {
        queue: {
          ...identity(figures),
          priority,
          options: saidQueueOptions(row),
          config: { leaseTime, retryLimit, retryDelay, ttl, maxQueueSize: maxSize, deadLetterQueue },
        },
        partitions: lanes.map((lane) => ({
          ...laneIdentity(lane),
          messages: counts(lane),
          stats: counts(lane),
          cursor: { totalConsumed: lane.finished, batchesConsumed: 0 },
          lastActivity: isoOrNull(lane.activeAtUs),
          ...laneTimes(lane),
        })),
        totals: { messages: totals, ...totals },
        pagination,
      },
      headers,
    );
  }

  async #queue(request: Request, query: LanesQuery) {
    const { figures } = this.#options;
    const found = await figures.queue(checkName(request.params.queue, "queue", { allowEmpty: true }));
    if (!found) throw new BrokerError("NOT_FOUND", "Queue not found");
    const { lanes, total } = await figures.lanes(lanePage(found.figures.id, query));
    return {
      ...found,
      lanes,
      pagination: { limit: query.limit, offset: query.offset, total },
      headers: { "Queen-Total": String(total) },
    };
  }

  async lane(request: Request): Promise<Answer> {
    const queue = checkName(request.params.queue, "queue", { allowEmpty: true });
    const lane = await this.#options.figures.lane(queue, checkName(request.params.partition, "partition"));
    if (!lane) throw new BrokerError("NOT_FOUND", "Queue or partition not found");
    const { partition, groups } = lane;
    const iso = (time: string | null): string | null => (time === null ? null : new Date(time).toISOString());
    return json(200, {
      id: partitionId(partition.id),
      queue,
      name: partition.name,
      createdAt: iso(partition.created_at),
      newestMessage: iso(partition.last_at),
      startOffset: partition.start_offset,
      nextOffset: partition.next_offset,
      deadLetter: partition.dead_letters,
      consumerGroups: groups.map((group) => ({
        name: group.name,
        offset: group.place,
        pending: group.pending,
        finishedAhead: group.ahead,
        leasedUntil: group.leased_until,
        leaseExpiresAt: iso(group.lease_expires_at),
      })),
    });
  }

  async partitions(query: LanesQuery & { queue: string | undefined }): Promise<Answer> {
    const { figures } = this.#options;
    const queue = query.queue === undefined ? undefined : await figures.queueId(query.queue);
    if (query.queue !== undefined && queue === undefined)
      throw new BrokerError("NOT_FOUND", "Queue not found");
    const { lanes, total } = await figures.lanes(lanePage(queue, query));
    return json(
      200,
      {
        partitions: lanes.map((lane) => ({
          ...laneIdentity(lane),
          queue: lane.queue,
          messages: counts(lane),
          ...laneTimes(lane),
          lastActivity: isoOrNull(lane.activeAtUs),
        })),
        total,
        pagination: { limit: query.limit, offset: query.offset },
      },
      { "Queen-Total": String(total) },
    );
  }

  async namespaces(): Promise<Answer> {
    const groups = sumsBy(await this.#queues(), (queue) => queue.namespace);
    return json(200, { namespaces: groups.map(({ name, ...sums }) => ({ namespace: name, ...sums })) });
  }

  async tasks(): Promise<Answer> {
    const groups = sumsBy(await this.#queues(), (queue) => queue.task);
    return json(200, { tasks: groups.map(({ name, ...sums }) => ({ task: name, ...sums })) });
  }

  async overview(): Promise<Answer> {
    const { figures, throughput, now } = this.#options;
    const [{ value: queues, atMs }, groups, rates] = await Promise.all([
      figures.queues(),
      figures.groups(),
      throughput(),
    ]);
    return json(200, {
      queues: queues.length,
      partitions: sum(queues, (queue) => queue.partitions),
      namespaces: new Set(queues.map((queue) => queue.namespace)).size,
      tasks: new Set(queues.map((queue) => queue.task)).size,
      messages: counts({
        total: sum(queues, (queue) => queue.total),
        pending: sum(queues, (queue) => queue.pending),
        processing: sum(queues, (queue) => queue.processing),
        deadLetters: sum(queues, (queue) => queue.deadLetters),
      }),
      lag: {
        time: spread(groups.map((group: ListedGroupRow) => Math.max(0, group.oldestSeconds))),
        offset: spread(groups.map((group: ListedGroupRow) => group.pending)),
      },
      throughput: {
        ingestedPerSecond: rates.ingestedPerSecond,
        processedPerSecond: rates.processedPerSecond,
      },
      timestamp: new Date().toISOString(),
      statsAge: Math.floor((now() - atMs) / 1000),
    });
  }

  /** Figures are made when they are asked for, so a refresh is a reading; the answer says how much was read. */
  async refresh(): Promise<Answer> {
    const { value: queues } = await this.#options.figures.refresh();
    const partitions = sum(queues, (queue) => queue.partitions);
    return json(200, {
      partition: {
        partitionsUpdated: partitions,
        dirtyPartitionsScanned: partitions,
        partitionsSkippedByWatermark: 0,
        newPartitions: 0,
      },
      queue: { queuesUpdated: queues.length },
      namespace: { namespacesUpdated: new Set(queues.map((queue) => queue.namespace)).size },
      task: { tasksUpdated: new Set(queues.map((queue) => queue.task)).size },
      system: { systemUpdated: 1 },
      cleanup: { orphanedDeleted: 0 },
    });
  }

  async #queues(): Promise<QueueFiguresRow[]> {
    return (await this.#options.figures.queues()).value;
  }
}

interface Activity {
  readonly lagSeconds: number;
  readonly inPerSecond: number;
  readonly outPerSecond: number;
}

const QUIET: Activity = { lagSeconds: 0, inPerSecond: 0, outPerSecond: 0 };

const perSecond = (inMinute: number): number => Math.round((inMinute / 60) * 100) / 100;

type ListedQueue = ReturnType<typeof showQueue> & Activity & { readonly deadLetters: number };

const most =
  (pick: (queue: ListedQueue) => number) =>
  (one: ListedQueue, other: ListedQueue): number =>
    pick(other) - pick(one) || (one.name < other.name ? -1 : 1);

/** The figures come with the newest queue first. */
const QUEUE_ORDERS: Readonly<
  Record<(typeof QUEUE_SORTS)[number], ((one: ListedQueue, other: ListedQueue) => number) | undefined>
> = {
  newest: undefined,
  name: (one, other) => (one.name < other.name ? -1 : 1),
  depth: most(({ messages }) => messages.pending + messages.processing),
  lag: most(({ lagSeconds }) => lagSeconds),
  in: most(({ inPerSecond }) => inPerSecond),
  out: most(({ outPerSecond }) => outPerSecond),
  deadLetters: most(({ deadLetters }) => deadLetters),
  partitions: most(({ partitions }) => partitions),
};

const lanePage = (queue: number | undefined, query: LanesQuery): LanePage => ({
  queue,
  search: query.search,
  sort: query.sort ?? "name",
  limit: query.limit,
  offset: query.offset,
});

const identity = (queue: QueueFiguresRow) => ({
  id: queueId(queue.id),
  name: queue.name,
  namespace: queue.namespace,
  task: queue.task,
  createdAt: isoMilliseconds(queue.createdAtUs),
});

const showQueue = (queue: QueueFiguresRow, pending: number) => ({
  ...identity(queue),
  partitions: queue.partitions,
  messages: { total: queue.total, pending, processing: queue.processing },
});

const laneIdentity = (lane: LaneFiguresRow) => ({
  id: partitionId(lane.id),
  name: lane.name,
  createdAt: isoMilliseconds(lane.createdAtUs),
});

const laneTimes = (lane: LaneFiguresRow) => ({
  oldestMessage: isoOrNull(lane.oldestAtUs),
  newestMessage: isoOrNull(lane.newestAtUs),
  oldestPending: isoOrNull(lane.waitingSinceUs),
  retrying: lane.failed,
});

/** A message that failed is pending again or a dead letter, so that none is counted as failed. */
const counts = ({ total, pending, processing, deadLetters }: Counts) => ({
  total,
  pending,
  processing,
  completed: total - pending - processing,
  failed: 0,
  deadLetter: deadLetters,
});

const sum = <T>(rows: readonly T[], pick: (row: T) => number): number =>
  rows.reduce((total, row) => total + pick(row), 0);

function sumsBy(queues: readonly QueueFiguresRow[], nameOf: (queue: QueueFiguresRow) => string) {
  const groups = new Map<string, QueueFiguresRow[]>();
  for (const queue of queues) {
    const name = nameOf(queue);
    groups.set(name, [...(groups.get(name) ?? []), queue]);
  }
  return [...groups.entries()].sort(byName).map(([name, members]) => ({
    name,
    queues: members.length,
    partitions: sum(members, (queue) => queue.partitions),
    messages: {
      total: sum(members, (queue) => queue.total),
      pending: sum(members, (queue) => queue.pending),
      processing: sum(members, (queue) => queue.processing),
    },
  }));
}

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : 1;

/** What lies where among some figures; 0 where there are none. */
function spread(figures: readonly number[]) {
  const sorted = [...figures].sort((a, b) => a - b);
  const last = sorted.length - 1;
  const round = (figure: number): number => Math.round(figure * 1000) / 1000;
  if (last < 0) return { avg: 0, median: 0, min: 0, max: 0 };
  return {
    avg: round(sum(sorted, (figure) => figure) / sorted.length),
    median: round((sorted[Math.floor(last / 2)]! + sorted[Math.ceil(last / 2)]!) / 2),
    min: round(sorted[0]!),
    max: round(sorted[last]!),
  };
}
