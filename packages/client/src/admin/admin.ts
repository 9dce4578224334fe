/** The control plane: queues, groups, messages, dead letters, and how the brokers are doing. */
import type { Transport } from "../transport/transport.ts";
import type { Answers, Bodies, Queries } from "./routes.ts";

export type { Answers, Bodies, Queries } from "./routes.ts";

export type AdminRoute = keyof Answers;
export type QueryOf<R extends AdminRoute> = R extends keyof Queries ? Queries[R] : undefined;
export type BodyOf<R extends AdminRoute> = R extends keyof Bodies ? Bodies[R] : undefined;
/** The `:names` in a route's path. */
export type ParamsOf<R extends string> = R extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [K in Name | keyof ParamsOf<Rest>]: string }
  : R extends `${string}:${infer Name}`
    ? { readonly [K in Name]: string }
    : Readonly<Record<never, string>>;

export interface AdminCall<R extends AdminRoute> {
  readonly params?: ParamsOf<R>;
  readonly query?: QueryOf<R> | undefined;
  readonly body?: BodyOf<R> | undefined;
  readonly signal?: AbortSignal;
}

type MessagePlace = { readonly partitionId: string; readonly transactionId: string };
const MESSAGE = "/api/v1/messages/:partitionId/:transactionId";
const GROUP = "/api/v1/consumer-groups/:group";

export class Admin {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Any route of the control plane; the methods below are these calls with names. */
  async call<R extends AdminRoute>(route: R, call: AdminCall<R> = {}): Promise<Answers[R]> {
    const space = route.indexOf(" ");
    const params: Readonly<Record<string, string>> = call.params ?? {};
    const path = route.slice(space + 1).replaceAll(/:(\w+)/g, (_, name: string) => {
      const value = params[name];
      if (value === undefined || value === "") throw new TypeError(`${route} needs a ${name}.`);
      return encodeURIComponent(value);
    });
    const { body } = await this.#transport.send<Answers[R]>(route.slice(0, space), path, {
      ...(call.query === undefined ? {} : { query: { ...call.query } }),
      ...(call.body === undefined ? {} : { body: call.body }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    return body;
  }

  // Queues
  configure(body: Bodies["POST /api/v1/configure"]) {
    return this.call("POST /api/v1/configure", { body });
  }
  queues(query?: Queries["GET /api/v1/resources/queues"]) {
    return this.call("GET /api/v1/resources/queues", { query });
  }
  queue(queue: string, query?: Queries["GET /api/v1/resources/queues/:queue"]) {
    return this.call("GET /api/v1/resources/queues/:queue", { params: { queue }, query });
  }
  partitions(query?: Queries["GET /api/v1/resources/partitions"]) {
    return this.call("GET /api/v1/resources/partitions", { query });
  }
  deleteQueue(queue: string) {
    return this.call("DELETE /api/v1/resources/queues/:queue", { params: { queue } });
  }
  clearQueue(queue: string, query?: Queries["DELETE /api/v1/queues/:queue/clear"]) {
    return this.call("DELETE /api/v1/queues/:queue/clear", { params: { queue }, query });
  }
  pause(queue: string, body: Bodies["POST /api/v1/queues/:queue/pause"] = {}) {
    return this.call("POST /api/v1/queues/:queue/pause", { params: { queue }, body });
  }
  resume(queue: string, body: Bodies["POST /api/v1/queues/:queue/resume"] = {}) {
    return this.call("POST /api/v1/queues/:queue/resume", { params: { queue }, body });
  }
  pauses(queue: string) {
    return this.call("GET /api/v1/queues/:queue/pauses", { params: { queue } });
  }
  /** Why a partition does not move for a group; queue mode if none is named. */
  explain(queue: string, partition: string, consumerGroup?: string) {
    return this.call("GET /api/v1/queues/:queue/partitions/:partition/explain", {
      params: { queue, partition },
      query: { consumerGroup },
    });
  }
  namespaces() {
    return this.call("GET /api/v1/resources/namespaces");
  }
  tasks() {
    return this.call("GET /api/v1/resources/tasks");
  }
  overview() {
    return this.call("GET /api/v1/resources/overview");
  }

  // Consumer groups
  consumerGroups(query?: Queries["GET /api/v1/consumer-groups"]) {
    return this.call("GET /api/v1/consumer-groups", { query });
  }
  laggingPartitions(query?: Queries["GET /api/v1/consumer-groups/lagging"]) {
    return this.call("GET /api/v1/consumer-groups/lagging", { query });
  }
  consumerGroup(group: string, query?: Queries["GET /api/v1/consumer-groups/:group"]) {
    return this.call(`GET ${GROUP}`, { params: { group }, query });
  }
  deleteConsumerGroup(group: string, query?: Queries["DELETE /api/v1/consumer-groups/:group"]) {
    return this.call(`DELETE ${GROUP}`, { params: { group }, query });
  }
  deleteConsumerGroupOfQueue(
    group: string,
    queue: string,
    query?: Queries["DELETE /api/v1/consumer-groups/:group/queues/:queue"],
  ) {
    return this.call(`DELETE ${GROUP}/queues/:queue`, { params: { group, queue }, query });
  }
  /** Where the group starts in partitions that it has not met. */
  setSubscription(group: string, time: Date | string) {
    return this.call(`POST ${GROUP}/subscription`, {
      params: { group },
      body: { subscriptionTimestamp: timeText(time) },
    });
  }
  /** Moves a group in a queue, or in one partition of it: to the end, or to a time. */
  /** How far the group was behind. */
  lagHistory(group: string, queue: string, query?: Queries[`GET ${typeof GROUP}/queues/:queue/lag`]) {
    return this.call(`GET ${GROUP}/queues/:queue/lag`, { params: { group, queue }, query });
  }
  async seek(group: string, queue: string, to: "end" | Date | string, partition?: string) {
    const body = to === "end" ? { toEnd: true } : { timestamp: timeText(to) };
    if (partition === undefined)
      return this.call(`POST ${GROUP}/queues/:queue/seek`, { params: { group, queue }, body });
    return this.call(`POST ${GROUP}/queues/:queue/partitions/:partition/seek`, {
      params: { group, queue, partition },
      body,
    });
  }

  // Messages
  messages(query?: Queries["GET /api/v1/messages"]) {
    return this.call("GET /api/v1/messages", { query });
  }
  queueMessages(queue: string, query?: Queries["GET /api/v1/status/queues/:queue/messages"]) {
    return this.call("GET /api/v1/status/queues/:queue/messages", { params: { queue }, query });
  }
  message({ partitionId, transactionId }: MessagePlace, id?: string) {
    return this.call(`GET ${MESSAGE}`, { params: { partitionId, transactionId }, query: { id } });
  }
  deleteMessage({ partitionId, transactionId }: MessagePlace, id?: string) {
    return this.call(`DELETE ${MESSAGE}`, { params: { partitionId, transactionId }, query: { id } });
  }
  retryMessage({ partitionId, transactionId }: MessagePlace, consumerGroup?: string) {
    return this.call(`POST ${MESSAGE}/retry`, {
      params: { partitionId, transactionId },
      body: { consumerGroup },
    });
  }
  deadLetterMessage({ partitionId, transactionId }: MessagePlace, consumerGroup?: string, error?: string) {
    return this.call(`POST ${MESSAGE}/dlq`, {
      params: { partitionId, transactionId },
      body: { consumerGroup, error },
    });
  }

  // Dead letters
  deadLetters(query?: Queries["GET /api/v1/dlq"]) {
    return this.call("GET /api/v1/dlq", { query });
  }
  requeueDeadLetters(body: Bodies["POST /api/v1/dlq/requeue"]) {
    return this.call("POST /api/v1/dlq/requeue", { body });
  }
  purgeDeadLetters(body: Bodies["POST /api/v1/dlq/purge"]) {
    return this.call("POST /api/v1/dlq/purge", { body });
  }

  // Traces
  traceNames(query?: Queries["GET /api/v1/traces/names"]) {
    return this.call("GET /api/v1/traces/names", { query });
  }
  tracesByName(traceName: string, query?: Queries["GET /api/v1/traces/by-name/:traceName"]) {
    return this.call("GET /api/v1/traces/by-name/:traceName", { params: { traceName }, query });
  }
  tracesOfMessage(
    { partitionId, transactionId }: MessagePlace,
    query?: Queries["GET /api/v1/traces/:partitionId/:transactionId"],
  ) {
    return this.call("GET /api/v1/traces/:partitionId/:transactionId", {
      params: { partitionId, transactionId },
      query,
    });
  }

  // Status and analytics
  status(query?: Queries["GET /api/v1/status"]) {
    return this.call("GET /api/v1/status", { query });
  }
  statusOfQueues(query?: Queries["GET /api/v1/status/queues"]) {
    return this.call("GET /api/v1/status/queues", { query });
  }
  statusOfQueue(queue: string, query?: Queries["GET /api/v1/status/queues/:queue"]) {
    return this.call("GET /api/v1/status/queues/:queue", { params: { queue }, query });
  }
  messagesOverTime(query?: Queries["GET /api/v1/status/analytics"]) {
    return this.call("GET /api/v1/status/analytics", { query });
  }
  systemMetrics(query?: Queries["GET /api/v1/analytics/system-metrics"]) {
    return this.call("GET /api/v1/analytics/system-metrics", { query });
  }
  workerMetrics(query?: Queries["GET /api/v1/analytics/worker-metrics"]) {
    return this.call("GET /api/v1/analytics/worker-metrics", { query });
  }
  queueLag(query?: Queries["GET /api/v1/analytics/queue-lag"]) {
    return this.call("GET /api/v1/analytics/queue-lag", { query });
  }
  queueOperations(query?: Queries["GET /api/v1/analytics/queue-ops"]) {
    return this.call("GET /api/v1/analytics/queue-ops", { query });
  }
  parkedConsumers(query?: Queries["GET /api/v1/analytics/queue-parked-replicas"]) {
    return this.call("GET /api/v1/analytics/queue-parked-replicas", { query });
  }
  retention(query?: Queries["GET /api/v1/analytics/retention"]) {
    return this.call("GET /api/v1/analytics/retention", { query });
  }
  postgresStats() {
    return this.call("GET /api/v1/analytics/postgres-stats");
  }
  refreshStats() {
    return this.call("POST /api/v1/stats/refresh");
  }
  buffers() {
    return this.call("GET /api/v1/status/buffers");
  }

  // System
  health() {
    return this.call("GET /health");
  }
  metrics() {
    return this.call("GET /metrics");
  }
  doctor(query?: Queries["GET /api/v1/system/doctor"]) {
    return this.call("GET /api/v1/system/doctor", { query });
  }
  maintenance() {
    return this.call("GET /api/v1/system/maintenance");
  }
  /** While it is on, pushes wait on the brokers' disks. */
  setMaintenance(enabled: boolean) {
    return this.call("POST /api/v1/system/maintenance", { body: { enabled } });
  }
  popMaintenance() {
    return this.call("GET /api/v1/system/maintenance/pop");
  }
  /** While it is on, every pop is answered at once, with nothing. */
  setPopMaintenance(enabled: boolean) {
    return this.call("POST /api/v1/system/maintenance/pop", { body: { enabled } });
  }
  sweeps() {
    return this.call("GET /api/v1/system/sweeps");
  }
  sharedState() {
    return this.call("GET /api/v1/system/shared-state");
  }
  /** Has parked pops look for work; never needed after a push. */
  notify(body: Bodies["POST /internal/api/notify"]) {
    return this.call("POST /internal/api/notify", { body });
  }
  spool(query?: Queries["GET /api/v1/system/spool"]) {
    return this.call("GET /api/v1/system/spool", { query });
  }
  retrySpool(body: Bodies["POST /api/v1/system/spool/retry"]) {
    return this.call("POST /api/v1/system/spool/retry", { body });
  }
  discardSpool(body: Bodies["POST /api/v1/system/spool/discard"]) {
    return this.call("POST /api/v1/system/spool/discard", { body });
  }
  createKey(body: Bodies["POST /api/v1/system/keys"]) {
    return this.call("POST /api/v1/system/keys", { body });
  }
  keys() {
    return this.call("GET /api/v1/system/keys");
  }
  revokeKey(id: string) {
    return this.call("DELETE /api/v1/system/keys/:id", { params: { id } });
  }
  addUser(body: Bodies["POST /api/v1/system/users"]) {
    return this.call("POST /api/v1/system/users", { body });
  }
  users() {
    return this.call("GET /api/v1/system/users");
  }
  removeUser(user: string) {
    return this.call("DELETE /api/v1/system/users/:user", { params: { user } });
  }
  changePassword(user: string, password: string) {
    return this.call("POST /api/v1/system/users/:user/password", { params: { user }, body: { password } });
  }
  audit(query?: Queries["GET /api/v1/system/audit"]) {
    return this.call("GET /api/v1/system/audit", { query });
  }
}

const timeText = (time: Date | string): string => (time instanceof Date ? time.toISOString() : time);
