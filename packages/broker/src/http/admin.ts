/** The handlers of queues and of the broker's own state: configure, delete, clear, health, metrics. */
import { BrokerError, partitionId, queueId } from "@queen/protocol";
import type { Clear, Clearing } from "../control/clearing.ts";
import type { Queues } from "../control/queues.ts";
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
  readonly metrics: () => Record<string, unknown>;
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
    const { isReady, queues, workerIndex, version } = this.#options;
    const isConnected = isReady() && (await queues.ping());
    return json(isConnected ? 200 : 503, {
      status: isConnected ? "healthy" : "unhealthy",
      database: isConnected ? "connected" : "disconnected",
      server: "Queen",
      worker_id: workerIndex,
      version,
    });
  }

  alive(): Answer {
    return json(200, { status: "alive" });
  }

  async ready(): Promise<Answer> {
    const { status } = await this.health();
    return json(status, { status: status === 200 ? "ready" : "not ready: the database cannot be used yet" });
  }

  metrics(): Answer {
    return json(200, this.#options.metrics());
  }
}

function optionalName(value: unknown, field: string): string | null {
  return typeof value === "string" ? checkName(value, field, { allowEmpty: true }) : null;
}
