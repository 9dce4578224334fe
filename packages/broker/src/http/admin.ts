/** The handlers of the control plane: configure, delete, dead letters, health, metrics. */
import { BrokerError, messageId, partitionId, queueId } from "@queen/protocol";
import type { DeadLetterRow, Queues } from "../control/queues.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { parseQueueOptions, showQueueOptions } from "../operations/queue-options.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { clamp, integer } from "./parameters.ts";
import type { Answer, Request } from "./server.ts";

export interface AdminOptions {
  readonly queues: Queues;
  readonly isReady: () => boolean;
  readonly metrics: () => Record<string, unknown>;
  readonly workerIndex: number;
  readonly version: string;
}

const DEAD_LETTERS_PER_PAGE_MAX = 1_000;

const json = (status: number, value: unknown): Answer => ({
  status,
  body: JSON.stringify(value),
  isText: true,
});

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

  async deadLetters(request: Request): Promise<Answer> {
    const { query } = request;
    const limit = clamp(integer(query, "limit", 100), 1, DEAD_LETTERS_PER_PAGE_MAX);
    const offset = Math.max(0, integer(query, "offset", 0));
    const filter = (name: string): string => query.get(name) ?? "";
    const { letters, total } = await this.#options.queues.deadLetters(
      { queue: filter("queue"), consumerGroup: filter("consumerGroup"), partition: filter("partition") },
      limit,
      offset,
    );
    const messages = letters.map(showDeadLetter).join(",");
    return {
      status: 200,
      body: `{"messages":[${messages}],"total":${total},"pagination":{"limit":${limit},"offset":${offset}}}`,
    };
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

/** As bytes, one per character: the payload is what the producer sent. */
function showDeadLetter(letter: DeadLetterRow): string {
  return (
    `{"id":"${messageId(letter.partitionId, letter.offset)}",${letter.fragment},` +
    `"partitionId":"${partitionId(letter.partitionId)}","queue":${encodeString(letter.queue)},` +
    `"partition":${encodeString(letter.partition)},"consumerGroup":${encodeString(letter.consumerGroup)},` +
    `"errorMessage":${encodeString(letter.errorMessage)},"retryCount":${letter.retryCount},` +
    `"createdAt":"${isoMilliseconds(letter.createdAtUs)}","failedAt":"${isoMilliseconds(letter.failedAtUs)}"}`
  );
}

function optionalName(value: unknown, field: string): string | null {
  return typeof value === "string" ? checkName(value, field, { allowEmpty: true }) : null;
}
