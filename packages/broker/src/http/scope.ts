/** Whether a request stays inside of the queues that its sender may use. */
import { BrokerError, parsePartitionId } from "@queen/protocol";
import type { Identity } from "../access/identity.ts";
import type { Request, Route } from "./route.ts";

/** The name of a partition's queue; undefined: there is no such partition. */
export type QueueOfPartition = (partition: number) => Promise<string | undefined>;

/** For senders that are limited to some queues; throws where the request could reach others. */
export async function checkScope(
  route: Route,
  request: Request,
  query: Readonly<Record<string, unknown>>,
  queueOf: QueueOfPartition,
): Promise<void> {
  const { identity, params } = request;
  if (route.access === "open" || route.scope === "handler") return;
  if (params.queue !== undefined) {
    identity.checkQueue(params.queue);
    return;
  }
  if (params.partitionId !== undefined) {
    const partition = parsePartitionId(params.partitionId);
    const queue = partition === undefined ? undefined : await queueOf(partition);
    if (queue !== undefined) identity.checkQueue(queue);
    return; // what does not exist tells nothing
  }
  if (typeof query.queue === "string") {
    identity.checkQueue(query.queue);
    return;
  }
  throw new BrokerError(
    "FORBIDDEN",
    "queue" in route.query
      ? "Insufficient permissions: for some queues only; name one with queue="
      : "Insufficient permissions: for some queues only",
  );
}

export function checkQueues(identity: Identity, items: readonly { readonly queue: string }[]): void {
  if (identity.isLimited) for (const { queue } of items) identity.checkQueue(queue);
}

/** An ack names its partition; whose queue that is, the database may have to say. */
export async function checkPartitions(
  identity: Identity,
  items: readonly { readonly partitionId: string }[],
  queueOf: QueueOfPartition,
): Promise<void> {
  if (!identity.isLimited) return;
  for (const partitionId of new Set(items.map((item) => item.partitionId))) {
    const partition = parsePartitionId(partitionId);
    const queue = partition === undefined ? undefined : await queueOf(partition);
    if (queue !== undefined) identity.checkQueue(queue);
  }
}
