/** Handlers of acks, of one message or of many. */
import { BrokerError } from "@queen/protocol";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import { type AckItem, type AckStatus, parseAckBatchBody, parseAckBody } from "../operations/ack-body.ts";
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

  async #ack(request: Request, items: readonly AckItem[], span: OperationSpan | undefined): Promise<Answer> {
    const { settler, statistics, now } = this.#options;
    const startedAtMs = now();
    await checkPartitions(request.identity, items, this.#options.queueOfPartition);
    await settler.learn(items);
    const results = await Promise.all(
      items.map((item) =>
        hasStatus(item) ? settler.ack(item, item.group, span) : unknownStatus(item.statusText),
      ),
    );
    statistics.ack.answered(items.length, now() - startedAtMs);
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

const hasStatus = (item: AckItem): item is AckItem & { readonly status: AckStatus } =>
  item.status !== undefined;

const unknownStatus = (status: string): AckResult => ({
  success: false,
  error: `unknown status "${status}": use completed, failed, dlq or retry`,
  released: false,
  dlq: false,
  lane: undefined,
});

function ackAnswer(items: readonly AckItem[], results: readonly AckResult[]): string {
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
    body += answerHead(index) + items[index]!.transactionIdJson + tail;
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
