/** The handler of transactions: pushes and acks in one commit. */
import type { Identity } from "../access/identity.ts";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { MaintenanceModes } from "../control/maintenance.ts";
import { readTraceparent } from "../operations/traceparent.ts";
import { parseTransactionBody, type TransactionBody } from "../operations/transaction-body.ts";
import type { Spool } from "../spooling/spool.ts";
import type { OperationSpan } from "../tracing.ts";
import { TransactionRefused, type TransactionResult, type Transactor } from "../transacting/transactor.ts";
import type { RequestMeter } from "./request-meter.ts";
import type { Answer, Request } from "./route.ts";
import { checkPartitions, checkQueues, type QueueOfPartition } from "./scope.ts";

export interface TransactionRoutesOptions {
  readonly transactor: Transactor;
  readonly spool: Spool;
  readonly queueOfPartition: QueueOfPartition;
  readonly newTransactionId: () => string;
  readonly statistics: { readonly transaction: OperationStatistics };
  readonly meter: RequestMeter;
  readonly modes: () => MaintenanceModes;
  readonly now: () => number;
}

export class TransactionRoutes {
  readonly #options: TransactionRoutesOptions;

  constructor(options: TransactionRoutesOptions) {
    this.#options = options;
  }

  async run(request: Request, span?: OperationSpan): Promise<Answer> {
    const { transactor, spool, statistics, now, newTransactionId } = this.#options;
    const startedAtMs = now();
    const traceparent = span?.traceparent ?? readTraceparent(request.headers.traceparent);
    const body = parseTransactionBody(
      request.text(),
      newTransactionId,
      request.identity.subject,
      traceparent,
    );
    await this.#check(request.identity, body);
    const transactionId = newTransactionId();
    let results: TransactionResult[] | undefined;
    try {
      // During push maintenance transactions go on, past what waits on the disk.
      if (spool.isEngaged && !this.#options.modes().push) {
        const pushes = body.operations.filter((operation) => operation.type === "push");
        await spool.refuseHeld(pushes.map((operation) => operation.item));
      }
      results = await transactor.run(body, span);
      return {
        status: 200,
        body: JSON.stringify({ transactionId, success: true, results: results.map(transactionResult) }),
        isText: true,
      };
    } catch (error) {
      if (!(error instanceof TransactionRefused)) throw error;
      const refused = body.operations.map((operation, index) => ({
        index,
        type: operation.type,
        success: false,
        transactionId: operation.type === "push" ? operation.item.transactionId : operation.ack.transactionId,
      }));
      return {
        status: 409,
        body: JSON.stringify({
          transactionId,
          success: false,
          error: error.message,
          code: "CONFLICT",
          results: refused,
        }),
        isText: true,
      };
    } finally {
      statistics.transaction.answered(body.operations.length, now() - startedAtMs);
      this.#options.meter.transacted(results);
    }
  }

  async #check(identity: Identity, { operations }: TransactionBody): Promise<void> {
    checkQueues(
      identity,
      operations.flatMap((operation) => (operation.type === "push" ? [operation.item] : [])),
    );
    await checkPartitions(
      identity,
      operations.flatMap((operation) => (operation.type === "ack" ? [operation.ack] : [])),
      this.#options.queueOfPartition,
    );
  }
}

function transactionResult(result: TransactionResult, index: number): Record<string, unknown> {
  if (result.type === "ack") {
    return {
      index,
      type: "ack",
      success: true,
      transactionId: result.ack.transactionId,
      error: null,
      dlq: result.dlq,
    };
  }
  return {
    index,
    type: "push",
    success: true,
    status: result.status,
    transactionId: result.item.transactionId,
    messageId: result.messageId,
    partitionId: result.partitionId,
    queueName: result.item.queue,
  };
}
