/** The handlers of queues and of the broker's own state: configure, delete, clear, health, metrics. */
import { BrokerError, partitionId, queueId } from "@queen/protocol";
import type { Clear, Clearing } from "../control/clearing.ts";
import type { Queues } from "../control/queues.ts";
import type { BrokerMetrics } from "../metering/broker-metrics.ts";
import { EXPOSITION_TYPE } from "../metering/exposition.ts";
import { checkName } from "../operations/names.ts";
import { parseQueueOptions, showQueueOptions } from "../operations/queue-options.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

export interface AdminOptions {
  readonly queues: Queues;
  /** Whether this broker has a key. */
  readonly canEncrypt: boolean;
  readonly clearing: Clearing;
  readonly isReady: () => boolean;
  readonly isStopping: () => boolean;
  readonly metrics: BrokerMetrics;
  /** What this worker knows of the others, from memory. */
  readonly sharedState: () => Record<string, unknown>;
  readonly workerIndex: number;
  readonly version: string;
}

export class Admin {
  readonly #options: AdminOptions;

  constructor(options: AdminOptions) {
    this.#options = options;
  }

  async configure(request: Request): Promise<Answer> {
    const body = request.json();
    if (body === undefined) throw new BrokerError("INVALID_JSON", "Empty request body");
    const fields = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    if (typeof fields.queue !== "string") throw new BrokerError("VALIDATION_FAILED", "queue is required");
    const mode = fields.mode ?? "replace";
    if (mode !== "replace" && mode !== "merge") {
      throw new BrokerError("VALIDATION_FAILED", 'mode must be "replace" or "merge".');
    }
    const name = checkName(fields.queue, "queue", { allowEmpty: true });
    const { columns, unknown } = parseQueueOptions(fields.options, this.#options.canEncrypt);
    const queue = await this.#options.queues.configure({
      name,
      namespace: optionalName(fields.namespace, "namespace"),
      task: optionalName(fields.task, "task"),
      options: columns,
      merge: mode === "merge",
    });
    const answer = json(200, {
      configured: true,
      queueId: queueId(queue.id),
      partitionId: partitionId(queue.partition),
      queue: name,
      namespace: queue.namespace,
      task: queue.task,
      options: showQueueOptions(queue.row),
      ...(unknown.length > 0 ? { unknownOptions: unknown } : {}),
    });
    return { ...answer, about: { queue: name } };
  }

  async deleteQueue(request: Request): Promise<Answer> {
    const name = checkName(request.params.queue, "queue", { allowEmpty: true });
    return json(200, { deleted: true, queue: name, existed: await this.#options.queues.delete(name) });
  }

  async clearQueue(request: Request, query: Omit<Clear, "queue">): Promise<Answer> {
    const { partition, deadLetters } = query;
    const queue = checkName(request.params.queue, "queue", { allowEmpty: true });
    const cleared = await this.#options.clearing.clear({ queue, partition, deadLetters });
    return json(200, {
      cleared: true,
      queue,
      ...(partition === undefined ? {} : { partition }),
      messages: cleared.messages,
      partitions: cleared.partitions,
      deadLetters: cleared.deadLetters,
    });
  }

  async health(): Promise<Answer> {
    const { isReady, isStopping, queues, sharedState, workerIndex, version } = this.#options;
    const isConnected = isReady() && (await queues.ping());
    const isHealthy = isConnected && !isStopping();
    const state = isStopping() ? "stopping" : isConnected ? "active" : "waiting for the database";
    return json(isHealthy ? 200 : 503, {
      status: isHealthy ? "healthy" : "unhealthy",
      database: isConnected ? "connected" : "disconnected",
      server: "Queen",
      worker_id: workerIndex,
      version,
      shared_state: sharedState(),
      queen: { worker_id: workerIndex, status: state },
    });
  }

  alive(): Answer {
    return json(200, { status: "alive" });
  }

  async ready(): Promise<Answer> {
    const { status } = await this.health();
    const why = this.#options.isStopping() ? "the broker is stopping" : "the database cannot be used yet";
    return json(status, { status: status === 200 ? "ready" : `not ready: ${why}` });
  }

  async metrics(): Promise<Answer> {
    return json(200, await this.#options.metrics.metrics());
  }

  async prometheus(): Promise<Answer> {
    return {
      status: 200,
      body: await this.#options.metrics.prometheus(),
      isText: true,
      contentType: EXPOSITION_TYPE,
      headers: { "Cache-Control": "no-cache" },
    };
  }
}

function optionalName(value: unknown, field: string): string | null {
  return typeof value === "string" ? checkName(value, field, { allowEmpty: true }) : null;
}
