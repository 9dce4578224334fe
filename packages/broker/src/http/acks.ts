/** Handlers of acks, of one message or of many. */
import { BrokerError, messageId } from "@queen/protocol";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import {
  type AckItem,
  type AckOrRange,
  type AckRange,
  type AckStatus,
  isRange,
  parseAckBatchBody,
  parseAckBody,
} from "../operations/ack-body.ts";
import { flat, flatByIndex } from "../operations/flat.ts";
import { encodeString } from "../operations/json-scanner.ts";
import type { AckResult, Settler } from "../settling/settler.ts";
import type { OperationSpan } from "../tracing.ts";
import type { RequestMeter } from "./request-meter.ts";
import type { Answer, Request } from "./route.ts";
import { checkPartitions, type QueueOfPartition } from "./scope.ts";
import { describeAck } from "./span-facts.ts";

export interface AckRoutesOptions {
  readonly settler: Settler;
  readonly queueOfPartition: QueueOfPartition;
  readonly statistics: { readonly ack: OperationStatistics };
  readonly meter: RequestMeter;
  readonly now: () => number;
}

export class AckRoutes {
  readonly #options: AckRoutesOptions;

  constructor(options: AckRoutesOptions) {
    this.#options = options;
  }

  ack(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#ack(request, [parseAckBody(requiredJson(request))], span);
  }

  ackBatch(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#ack(request, parseAckBatchBody(requiredJson(request)), span);
  }

  async #ack(
    request: Request,
    items: readonly AckOrRange[],
    span: OperationSpan | undefined,
  ): Promise<Answer> {
    const { settler, statistics, now } = this.#options;
    const startedAtMs = now();
    await checkPartitions(request.identity, items, this.#options.queueOfPartition);
    await settler.learn(items.filter(isOfOne));
    const results = await Promise.all(
      items.map((item) => {
        if (isRange(item)) return settler.ackRange(item, span);
        return hasStatus(item) ? settler.ack(item, item.group, span) : unknownStatus(item.statusText);
      }),
    );
    const messages = items.reduce((sum, item) => sum + item.messages, 0);
    statistics.ack.answered(messages, now() - startedAtMs);
    if (span) describeAck(span, items, results);
    this.#options.meter.acked(items, results);
    return { status: 200, body: ackAnswer(items, results) };
  }
}

function requiredJson(request: Request): unknown {
  const body = request.json();
  if (body === undefined) throw new BrokerError("INVALID_JSON", "Empty request body");
  return body;
}

const isOfOne = (item: AckOrRange): item is AckItem => !isRange(item);

const hasStatus = (item: AckItem): item is AckItem & { readonly status: AckStatus } =>
  item.status !== undefined;

const unknownStatus = (status: string): AckResult => ({
  success: false,
  error: `unknown status "${status}": use completed, failed, dlq or retry`,
  released: false,
  dlq: false,
  lane: undefined,
});

function ackAnswer(items: readonly AckOrRange[], results: readonly AckResult[]): string {
  let body = "[";
  // Neighbours mostly came to the same.
  let last: AckResult | undefined;
  let tail = "";
  for (let index = 0; index < items.length; index++) {
    const result = results[index]!;
    if (!last || !isSame(last, result)) {
      last = result;
      tail = answerTail(result);
    }
    const item = items[index]!;
    body += isRange(item) ? rangeHead(item, index) : answerHead(index) + item.transactionIdJson;
    body += tail;
  }
  return `${body}]`;
}

const isSame = (one: AckResult, other: AckResult): boolean =>
  one.lane === other.lane &&
  one.success === other.success &&
  one.error === other.error &&
  one.released === other.released &&
  one.dlq === other.dlq;

const answerTail = ({ success, error, released, dlq, lane }: AckResult): string =>
  flat(
    `,"success":${success},"error":${error === null ? "null" : encodeString(error)},` +
      `"queueName":${lane ? lane.queue.nameJson : "null"},"partitionName":${lane ? lane.nameJson : "null"},` +
      `"leaseReleased":${released},"dlq":${dlq}}`,
  );

const answerHead = flatByIndex((index) => `${index === 0 ? "" : ","}{"index":${index},"transactionId":`);

const rangeHead = ({ partition, from, to, messages }: AckRange, index: number): string =>
  `${index === 0 ? "" : ","}{"index":${index},"firstId":"${messageId(partition, from)}",` +
  `"lastId":"${messageId(partition, to - 1)}","messages":${messages}`;
