/** The handlers of queues and of the broker's own state: configure, delete, health, metrics. */
import { BrokerError, partitionId, queueId } from "@queen/protocol";
import type { Queues } from "../control/queues.ts";
import type { BrokerMetrics } from "../metering/broker-metrics.ts";
import { EXPOSITION_TYPE } from "../metering/exposition.ts";
import { checkName } from "../operations/names.ts";
import { parseQueueOptions, showQueueOptions } from "../operations/queue-options.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

export interface AdminOptions {
  readonly queues: Queues;
  readonly isReady: () => boolean;
  readonly metrics: BrokerMetrics;
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
    const { columns, unknown } = parseQueueOptions(fields.options);
    const queue = await this.#options.queues.configure({
      name,
      namespace: optionalName(fields.namespace, "namespace"),
      task: optionalName(fields.task, "task"),
      options: columns,
      merge: mode === "merge",
    });
    return json(200, {
      configured: true,
      queueId: queueId(queue.id),
      partitionId: partitionId(queue.partition),
      queue: name,
      namespace: queue.namespace,
      task: queue.task,
      options: showQueueOptions(queue.row),
      ...(unknown.length > 0 ? { unknownOptions: unknown } : {}),
    });
  }

  async deleteQueue(request: Request): Promise<Answer> {
    const name = checkName(request.params.queue, "queue", { allowEmpty: true });
    return json(200, { deleted: true, queue: name, existed: await this.#options.queues.delete(name) });
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
