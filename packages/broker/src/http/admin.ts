/** The handlers of the control plane: configure, delete, dead letters, health, metrics. */
import { BrokerError, messageId, partitionId, queueId } from "@queen/protocol";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { parseQueueOptions, showQueueOptions } from "../operations/queue-options.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import { clamp, integer } from "./parameters.ts";
import type { Answer, Request } from "./server.ts";

export interface AdminOptions {
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  readonly queuesChanged: (ids: readonly number[]) => Promise<void>;
  readonly forgetQueue: (name: string) => Promise<void>;
  readonly isReady: () => boolean;
  readonly metrics: () => Record<string, unknown>;
  readonly workerIndex: number;
  readonly version: string;
}

const DEAD_LETTERS_PER_PAGE_MAX = 1_000;

const json = (status: number, value: unknown): Answer => ({ status, body: JSON.stringify(value), isText: true });

export class Admin {
  readonly #options: AdminOptions;

  constructor(options: AdminOptions) {
    this.#options = options;
  }

  async configure(request: Request): Promise<Answer> {
    const { use, queuesChanged } = this.#options;
    const body = request.json();
    if (body === undefined) throw new BrokerError("INVALID_JSON", "Empty request body");
    const fields = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    if (typeof fields.queue !== "string") throw new BrokerError("VALIDATION_FAILED", "queue is required");
    const name = checkName(fields.queue, "queue", { allowEmpty: true });
    const { columns, unknown } = parseQueueOptions(fields.options);
    const mode = fields.mode ?? "replace";
    if (mode !== "replace" && mode !== "merge") {
      throw new BrokerError("VALIDATION_FAILED", 'mode must be "replace" or "merge".');
    }
    const [row] = await use((session) =>
      session.run(statements.configureQueue, [
        name,
        optionalName(fields.namespace, "namespace"),
        optionalName(fields.task, "task"),
        JSON.stringify(columns),
        mode === "merge",
      ]),
    );
    const { queue, partitionId: partition } = row!;
    await queuesChanged([queue.id as number]);
    return json(200, {
      configured: true,
      queueId: queueId(queue.id as number),
      partitionId: partitionId(partition),
      queue: name,
      namespace: queue.namespace,
      task: queue.task,
      options: showQueueOptions(queue),
      ...(unknown.length > 0 ? { unknownOptions: unknown } : {}),
    });
  }

  async deleteQueue(request: Request): Promise<Answer> {
    const { use, forgetQueue } = this.#options;
    const name = checkName(request.params.queue, "queue", { allowEmpty: true });
    const [existed] = await use((session) => session.run(statements.deleteQueue, [name]));
    await forgetQueue(name);
    return json(200, { deleted: true, queue: name, existed });
  }

  async deadLetters(request: Request): Promise<Answer> {
    const { query } = request;
    const limit = clamp(integer(query, "limit", 100), 1, DEAD_LETTERS_PER_PAGE_MAX);
    const offset = Math.max(0, integer(query, "offset", 0));
    const filter = (name: string): string => query.get(name) ?? "";
    const rows = await this.#options.use((session) =>
      session.run(statements.listDeadLetters, [
        filter("queue"),
        filter("consumerGroup"),
        filter("partition"),
        limit,
        offset,
      ]),
    );
    const messages = rows.map(
      (row) =>
        `{"id":"${messageId(row.partitionId, row.offset)}",${row.fragment},` +
        `"partitionId":"${partitionId(row.partitionId)}","queue":${encodeString(row.queue)},` +
        `"partition":${encodeString(row.partition)},"consumerGroup":${encodeString(row.consumerGroup)},` +
        `"errorMessage":${encodeString(row.errorMessage)},"retryCount":${row.retryCount},` +
        `"createdAt":"${isoMilliseconds(row.createdAtUs)}","failedAt":"${isoMilliseconds(row.failedAtUs)}"}`,
    );
    const total = rows[0]?.total ?? 0;
    return {
      status: 200,
      body: `{"messages":[${messages.join(",")}],"total":${total},"pagination":{"limit":${limit},"offset":${offset}}}`,
    };
  }

  async health(): Promise<Answer> {
    const { isReady, use, workerIndex, version } = this.#options;
    let isConnected = false;
    if (isReady()) {
      isConnected = await use((session) => session.run(statements.ping, [])).then(
        () => true,
        () => false,
      );
    }
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
