/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { ConsumerGroupRoutes } from "./consumer-groups.ts";
import type { DataPlane } from "./data-plane.ts";
import type { DeadLetterRoutes } from "./dead-letters.ts";
import type { MessageRoutes } from "./messages.ts";
import type { Route } from "./server.ts";

export interface Handlers {
  readonly data: DataPlane;
  readonly admin: Admin;
  readonly groups: ConsumerGroupRoutes;
  readonly letters: DeadLetterRoutes;
  readonly messages: MessageRoutes;
}

const GROUPS = "/api/v1/consumer-groups";
const MESSAGE = "/api/v1/messages/:partitionId/:transactionId";

export function routes({ data, admin, groups, letters, messages }: Handlers): Route[] {
  return [
    { method: "POST", path: "/api/v1/push", handle: (request) => data.push(request) },
    { method: "GET", path: "/api/v1/pop", handle: (request) => data.popAny(request) },
    { method: "GET", path: "/api/v1/pop/queue/:queue", handle: (request) => data.popQueue(request) },
    {
      method: "GET",
      path: "/api/v1/pop/queue/:queue/partition/:partition",
      handle: (request) => data.popQueue(request),
    },
    { method: "POST", path: "/api/v1/ack", handle: (request) => data.ack(request) },
    { method: "POST", path: "/api/v1/ack/batch", handle: (request) => data.ackBatch(request) },
    { method: "POST", path: "/api/v1/transaction", handle: (request) => data.transaction(request) },
    { method: "POST", path: "/api/v1/lease/:leaseId/extend", handle: (request) => data.extendLease(request) },
    { method: "POST", path: "/api/v1/configure", handle: (request) => admin.configure(request) },
    {
      method: "DELETE",
      path: "/api/v1/resources/queues/:queue",
      handle: (request) => admin.deleteQueue(request),
    },
    { method: "GET", path: "/api/v1/dlq", handle: (request) => letters.list(request) },
    { method: "POST", path: "/api/v1/dlq/requeue", handle: (request) => letters.requeue(request) },
    { method: "POST", path: "/api/v1/dlq/purge", handle: (request) => letters.purge(request) },
    { method: "GET", path: "/api/v1/messages", handle: (request) => messages.list(request) },
    { method: "GET", path: MESSAGE, handle: (request) => messages.read(request) },
    { method: "DELETE", path: MESSAGE, handle: (request) => messages.delete(request) },
    { method: "POST", path: `${MESSAGE}/retry`, handle: (request) => messages.retry(request) },
    { method: "POST", path: `${MESSAGE}/dlq`, handle: (request) => messages.bury(request) },
    {
      method: "GET",
      path: "/api/v1/status/queues/:queue/messages",
      handle: (request) => messages.ofQueue(request),
    },
    { method: "GET", path: GROUPS, handle: (request) => groups.list(request) },
    { method: "GET", path: `${GROUPS}/lagging`, handle: (request) => groups.lagging(request) },
    { method: "GET", path: `${GROUPS}/:group`, handle: (request) => groups.detail(request) },
    { method: "DELETE", path: `${GROUPS}/:group`, handle: (request) => groups.delete(request) },
    { method: "POST", path: `${GROUPS}/:group/subscription`, handle: (request) => groups.subscribe(request) },
    {
      method: "DELETE",
      path: `${GROUPS}/:group/queues/:queue`,
      handle: (request) => groups.deleteInQueue(request),
    },
    {
      method: "POST",
      path: `${GROUPS}/:group/queues/:queue/seek`,
      handle: (request) => groups.seekQueue(request),
    },
    {
      method: "POST",
      path: `${GROUPS}/:group/queues/:queue/partitions/:partition/seek`,
      handle: (request) => groups.seekPartition(request),
    },
    { method: "GET", path: "/health", handle: () => admin.health() },
    { method: "GET", path: "/livez", handle: () => admin.alive() },
    { method: "GET", path: "/readyz", handle: () => admin.ready() },
    { method: "GET", path: "/metrics", handle: () => admin.metrics() },
  ];
}
