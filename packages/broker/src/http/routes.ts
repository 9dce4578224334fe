/** Every route, in one list. */
import type { Admin } from "./admin.ts";
import type { DataPlane } from "./data-plane.ts";
import type { Route } from "./server.ts";

export function routes(data: DataPlane, admin: Admin): Route[] {
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
    { method: "GET", path: "/api/v1/dlq", handle: (request) => admin.deadLetters(request) },
    { method: "GET", path: "/health", handle: () => admin.health() },
    { method: "GET", path: "/livez", handle: () => admin.alive() },
    { method: "GET", path: "/readyz", handle: () => admin.ready() },
    { method: "GET", path: "/metrics", handle: () => admin.metrics() },
  ];
}
