/** Handlers of pushes. The answer's bytes are made here, message by message. */
import { BrokerError, offsetSuffix } from "@queen/protocol";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { MaintenanceModes } from "../control/maintenance.ts";
import type { Lane } from "../lanes/lane.ts";
import { flat, flatByIndex } from "../operations/flat.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { type PushItem, parsePushBody } from "../operations/push-body.ts";
import { readTraceparent } from "../operations/traceparent.ts";
import type { Pusher, PushRequest } from "../pushing/pusher.ts";
import type { Spool } from "../spooling/spool.ts";
import type { OperationSpan } from "../tracing.ts";
import type { RequestMeter } from "./request-meter.ts";
import type { Answer, Request } from "./route.ts";
import { checkQueues } from "./scope.ts";
import { describePush } from "./span-facts.ts";

export interface PushRoutesOptions {
  readonly pusher: Pusher;
  readonly spool: Spool;
  /** Rejects where a queue is full; undefined: none has a limit. */
  readonly admit: (items: readonly PushItem[]) => Promise<void> | undefined;
  readonly newTransactionId: () => string;
  readonly statistics: { readonly push: OperationStatistics };
  readonly meter: RequestMeter;
  /** Somebody works here. */
  readonly active: () => void;
  readonly modes: () => MaintenanceModes;
  /** Whether what operators decided up to a moment ago is known here. */
  readonly isInformed: () => boolean;
  /** Finds it out, if it can be; never rejects. */
  readonly inform: () => Promise<void>;
  readonly now: () => number;
}

export class PushRoutes {
  readonly #options: PushRoutesOptions;

  constructor(options: PushRoutesOptions) {
    this.#options = options;
  }

  async push(request: Request, span?: OperationSpan): Promise<Answer> {
    const { pusher, spool, statistics, now, newTransactionId } = this.#options;
    const startedAtMs = now();
    this.#options.active();
    const traceparent = span?.traceparent ?? readTraceparent(request.headers.traceparent);
    const items = parsePushBody(request.text(), newTransactionId, request.identity.subject, traceparent);
    checkQueues(request.identity, items);
    if (span) describePush(span, items);
    if (items.length === 0) return { status: 201, body: "[]" };
    // What the database would have to say is not asked for while it is away.
    if (!spool.isEngaged) {
      if (!this.#options.isInformed()) await this.#options.inform();
      const admitted = this.#options.admit(items);
      if (admitted) await admitted;
    }
    if (this.#options.modes().push && !spool.isEnabled) {
      throw new BrokerError("MAINTENANCE", "Push maintenance is on: nothing was stored. Try again later.");
    }
    const pushed = await (spool.isEngaged ? spool.push(items, span) : pusher.push(items, span));
    if (pushed.strandedItems && !pushed.error) await spool.take(pushed);
    statistics.push.answered(items.length, now() - startedAtMs);
    this.#options.meter.pushed(pushed);
    if (pushed.error) throw pushed.error;
    return { status: 201, body: pushAnswer(pushed) };
  }
}

function pushAnswer({ items, lanes, offsets, isDuplicate, strandedItems }: PushRequest): string {
  let body = "[";
  // What neighbours have in common is made once.
  let lane: Lane | undefined;
  let traceId = "";
  let beforeOffset = "";
  let afterOffset = "";
  for (let index = 0; index < items.length; index++) {
    const { transactionIdJson, traceIdJson } = items[index]!;
    if (strandedItems?.has(index)) {
      const queue = encodeString(items[index]!.queue);
      const partition = encodeString(items[index]!.partition);
      body += `${itemHead(index)}"buffered","queue":${queue},"partition":${partition},"transactionId":${transactionIdJson},"transaction_id":${transactionIdJson},"queueName":${queue}}`;
      continue;
    }
    if (!lane || lane !== lanes[index] || traceId !== traceIdJson) {
      lane = lanes[index]!;
      traceId = traceIdJson;
      beforeOffset = flat(`,"message_id":"${lane.messageIdPrefix}`);
      afterOffset = flat(
        `","partition_id":"${lane.partitionId}","trace_id":${traceId},"queueName":${lane.queue.nameJson}}`,
      );
    }
    body += isDuplicate[index]
      ? `${itemHead(index)}"duplicate","transaction_id":${transactionIdJson}${beforeOffset}${offsetSuffix(offsets[index]!)}","queueName":${lane.queue.nameJson}}`
      : queuedHead(index) + transactionIdJson + beforeOffset + offsetSuffix(offsets[index]!) + afterOffset;
  }
  return `${body}]`;
}

const itemHead = (index: number): string => `${index === 0 ? "" : ","}{"index":${index},"status":`;
const queuedHead = flatByIndex((index) => `${itemHead(index)}"queued","transaction_id":`);
