/** The handlers of the data plane: push, pop, ack, lease, transaction. Each builds its answer's bytes itself. */
import { BrokerError, offsetSuffix, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import { type AckItem, parseAckBatchBody, parseAckBody } from "../operations/ack-body.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { popAnswer } from "../operations/pop-answer.ts";
import { parsePushBody } from "../operations/push-body.ts";
import { traceIdJson, transactionIdJson } from "../operations/segment.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { parseTransactionBody } from "../operations/transaction-body.ts";
import type { EmptyReason, PopOutcome, PopRequest, Subscription, Taken } from "../popping/pop.ts";
import type { Popper } from "../popping/popper.ts";
import type { Pusher, PushRequest } from "../pushing/pusher.ts";
import type { Renewer } from "../settling/renewer.ts";
import type { AckResult, Settler } from "../settling/settler.ts";
import type { Spool } from "../spooling/spool.ts";
import { TransactionRefused, type TransactionResult, type Transactor } from "../transacting/transactor.ts";
import type { Answer, Request } from "./route.ts";

export interface DataPlaneOptions {
  readonly pusher: Pusher;
  readonly spool: Spool;
  readonly popper: Popper;
  readonly settler: Settler;
  readonly renewer: Renewer;
  readonly transactor: Transactor;
  /** A pop's messages are on their way to a client, under a lease. */
  readonly delivered: (taken: readonly Taken[], token: number) => void;
  readonly giveBack: (taken: readonly Taken[], token: number) => void;
  /** Some of what was leased holds no message any more; never rejects. */
  readonly finishGone: (taken: readonly Taken[], token: number) => Promise<void>;
  /** The queues of a namespace and a task, the most urgent first. */
  readonly queuesOf: (namespace: string, task: string) => Promise<string[]>;
  /** The time that a text means, as PostgreSQL writes it; undefined: it means none. */
  readonly readTimestamp: (text: string) => Promise<string | undefined>;
  readonly newTransactionId: () => string;
  /** Of a group that says nothing at its first pop. */
  readonly subscriptionModeDefault: string;
  readonly statistics: Readonly<
    Record<"push" | "pop" | "ack" | "transaction" | "renew_lease", OperationStatistics>
  >;
  /** Somebody works here. */
  readonly active: () => void;
  readonly now: () => number;
}

export interface PopQuery {
  readonly batch: number;
  readonly partitions: number;
  readonly wait: boolean;
  readonly timeout: number;
  readonly consumerGroup: string | undefined;
  readonly autoAck: boolean;
  readonly subscriptionMode: string | undefined;
  readonly subscriptionFrom: string | undefined;
}

export interface AnyPopQuery extends PopQuery {
  readonly queue: string | undefined;
  readonly partition: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
}

const QUEUES_PER_POP_MAX = 200;
// A pop that meets only deleted messages goes on so often before it is answered as empty.
const POP_ROUNDS_MAX = 1_000;

export class DataPlane {
  readonly #options: DataPlaneOptions;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
  }

  // ------------------------------------------------------------------------------------------------ push

  async push(request: Request): Promise<Answer> {
    const { pusher, spool, statistics, now, newTransactionId } = this.#options;
    const startedAtMs = now();
    this.#options.active();
    const items = parsePushBody(request.text(), newTransactionId, null);
    if (items.length === 0) return { status: 201, body: "[]" };
    const pushed = await (spool.isEngaged ? spool.push(items) : pusher.push(items));
    if (pushed.strandedItems && !pushed.error) await spool.take(pushed);
    statistics.push.answered(items.length, now() - startedAtMs);
    if (pushed.error) throw pushed.error;
    return { status: 201, body: pushAnswer(pushed) };
  }

  // ------------------------------------------------------------------------------------------------- pop

  async popQueue(request: Request, query: PopQuery): Promise<Answer> {
    const queue = checkName(request.params.queue, "queue", { allowEmpty: true });
    const partition =
      request.params.partition === undefined ? undefined : checkName(request.params.partition, "partition");
    return this.#pop(request, query, [queue], partition);
  }

  /** By `queue` and `partition`, or by `namespace` and `task`. */
  async popAny(request: Request, query: AnyPopQuery): Promise<Answer> {
    const { queue, partition, namespace = "", task = "" } = query;
    if (queue !== undefined) return this.#pop(request, query, [queue], partition);
    if (namespace === "" && task === "") {
      throw new BrokerError(
        "VALIDATION_FAILED",
        "Say what to pop: queue (and partition), or namespace or task.",
      );
    }
    const queues = await this.#options.queuesOf(namespace, task);
    return this.#pop(request, query, queues.slice(0, QUEUES_PER_POP_MAX), undefined);
  }

  async #pop(
    request: Request,
    query: PopQuery,
    queues: readonly string[],
    partition: string | undefined,
  ): Promise<Answer> {
    const { now, statistics } = this.#options;
    const startedAtMs = now();
    this.#options.active();
    const { consumerGroup: group = QUEUE_MODE_GROUP, autoAck } = query;
    const timeoutMs = query.wait ? query.timeout : 0;
    const subscription = await this.#subscription(group, query);
    const wanted = (queue: string, waitMs: number): PopRequest => ({
      queue,
      partition,
      group,
      batch: query.batch,
      partitions: query.partitions,
      autoAck,
      waitMs,
      subscription,
    });
    const leftMs = (): number => (timeoutMs > 0 ? Math.max(1, timeoutMs - (now() - startedAtMs)) : 0);
    for (let round = 1; ; round++) {
      const outcome = await this.#popFirst(request, queues, wanted, leftMs);
      const answer = this.#popAnswer(request, outcome, autoAck);
      if (outcome.status === "messages" && answer.gone > 0 && !autoAck) {
        const finished = this.#options.finishGone(outcome.taken, outcome.token);
        if (answer.messages === 0) await finished;
      }
      if (outcome.status === "empty" || answer.messages > 0 || round >= POP_ROUNDS_MAX) {
        statistics.pop.answered(answer.messages, now() - startedAtMs);
        return answer.messages > 0 || outcome.status === "empty"
          ? answer
          : emptyAnswer("no_available_partition");
      }
      // Everything it got had been deleted: it goes on behind that.
    }
  }

  /** The most urgent queue that has something; if none has, whichever gets something first. */
  async #popFirst(
    request: Request,
    queues: readonly string[],
    wanted: (queue: string, waitMs: number) => PopRequest,
    leftMs: () => number,
  ): Promise<PopOutcome> {
    if (queues.length === 1) return this.#popOnce(request, [wanted(queues[0]!, leftMs())]);
    let outcome: PopOutcome = { status: "empty", reason: "no_available_partition" };
    for (const queue of queues) {
      outcome = await this.#popOnce(request, [wanted(queue, 0)]);
      if (outcome.status === "messages") return outcome;
    }
    const waitMs = leftMs();
    if (waitMs === 0 || queues.length === 0) return outcome;
    return this.#popOnce(
      request,
      queues.map((queue) => wanted(queue, waitMs)),
    );
  }

  /** Starts these pops; the first that gets messages wins, the others are called off. */
  #popOnce(request: Request, pops: readonly PopRequest[]): Promise<PopOutcome> {
    const { popper, giveBack } = this.#options;
    return new Promise((resolve, reject) => {
      let left = pops.length;
      let isDecided = false;
      const decide = (outcome: PopOutcome | Error): void => {
        left--;
        if (isDecided) {
          if (!(outcome instanceof Error) && outcome.status === "messages")
            giveBack(outcome.taken, outcome.token);
          return;
        }
        if (!(outcome instanceof Error) && outcome.status === "empty" && left > 0) return;
        isDecided = true;
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
        // After this turn: the loop below may not have started the others yet.
        if (pops.length > 1) setImmediate(hangUp);
      };
      const handles = pops.map((pop) => popper.pop(pop, decide));
      const hangUp = (): void => {
        for (const handle of handles) handle.hangUp();
      };
      request.onHangUp(() => {
        isDecided = true;
        hangUp();
        resolve({ status: "empty", reason: "timeout" });
      });
    });
  }

  #popAnswer(
    request: Request,
    outcome: PopOutcome,
    autoAck: boolean,
  ): Answer & { readonly messages: number; readonly gone: number } {
    if (outcome.status === "empty") return { ...emptyAnswer(outcome.reason), messages: 0, gone: 0 };
    const { taken, token, group } = outcome;
    const { delivered, giveBack } = this.#options;
    const answer = popAnswer(
      taken.map(({ groupLane: { lane }, from, to, acked, segments }) => ({
        queueJson: lane.queue.nameJson,
        partitionJson: lane.nameJson,
        partition: lane.id,
        partitionId: lane.partitionId,
        messageIdPrefix: lane.messageIdPrefix,
        from,
        to,
        acked,
        segments,
      })),
      group.nameJson,
      autoAck ? undefined : token,
    );
    if (!autoAck) {
      delivered(taken, token);
      if (answer.messages > 0) request.onHangUp(() => giveBack(taken, token));
    }
    return { status: 200, ...answer };
  }

  async #subscription(group: string, query: PopQuery): Promise<Subscription> {
    const { subscriptionMode: mode = this.#options.subscriptionModeDefault, subscriptionFrom: from } = query;
    if (group === QUEUE_MODE_GROUP) return { mode: "all", from: null }; // only named groups subscribe
    if (from === "now") return { mode: "new", from: null };
    if (from !== undefined) {
      const time = await this.#options.readTimestamp(from);
      if (time === undefined) {
        throw new BrokerError(
          "VALIDATION_FAILED",
          `subscriptionFrom must be "now" or a time such as 2026-11-15T19:00:00Z, got "${from.slice(0, 40)}".`,
        );
      }
      return { mode: "timestamp", from: time };
    }
    return mode === "new" || mode === "new-only" ? { mode: "new", from: null } : { mode: "all", from: null };
  }

  // ------------------------------------------------------------------------------------------------- ack

  ack(request: Request): Promise<Answer> {
    return this.#ack([parseAckBody(requiredJson(request))]);
  }

  ackBatch(request: Request): Promise<Answer> {
    return this.#ack(parseAckBatchBody(requiredJson(request)));
  }

  async #ack(items: readonly AckItem[]): Promise<Answer> {
    const { settler, statistics, now } = this.#options;
    const startedAtMs = now();
    await settler.learn(items);
    const results = await Promise.all(
      items.map((item) =>
        item.status === undefined
          ? unknownStatus(item.statusText)
          : settler.ack({ ...item, status: item.status }, item.group),
      ),
    );
    statistics.ack.answered(items.length, now() - startedAtMs);
    return { status: 200, body: ackAnswer(items, results) };
  }

  // ----------------------------------------------------------------------------------------------- lease

  async extendLease(request: Request, seconds: number): Promise<Answer> {
    const { renewer, statistics, now } = this.#options;
    const startedAtMs = now();
    const leaseId = request.params.leaseId!;
    const expiresAtUs = await renewer.renew(leaseId, seconds);
    statistics.renew_lease.answered(1, now() - startedAtMs);
    const expiresAt = expiresAtUs === undefined ? null : isoMilliseconds(expiresAtUs);
    const result = {
      index: 0,
      leaseId,
      success: expiresAt !== null,
      error: expiresAt === null ? "Lease not found" : null,
      expiresAt,
      newExpiresAt: expiresAt,
    };
    return {
      status: 200,
      body: JSON.stringify([result]),
      isText: true,
      headers: expiresAt === null ? {} : { "Queen-Lease-Expires-At": expiresAt },
    };
  }

  // ----------------------------------------------------------------------------------------- transaction

  async transaction(request: Request): Promise<Answer> {
    const { transactor, spool, statistics, now, newTransactionId } = this.#options;
    const startedAtMs = now();
    const body = parseTransactionBody(request.text(), newTransactionId, null);
    const transactionId = newTransactionId();
    try {
      if (spool.isEngaged) {
        const pushes = body.operations.filter((operation) => operation.type === "push");
        await spool.refuseHeld(pushes.map((operation) => operation.item));
      }
      const results = await transactor.run(body);
      return {
        status: 200,
        body: JSON.stringify({ transactionId, success: true, results: results.map(transactionResult) }),
        isText: true,
      };
    } catch (error) {
      if (!(error instanceof TransactionRefused)) throw error;
      const results = body.operations.map((operation, index) => ({
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
          results,
        }),
        isText: true,
      };
    } finally {
      statistics.transaction.answered(body.operations.length, now() - startedAtMs);
    }
  }
}

function requiredJson(request: Request): unknown {
  const body = request.json();
  if (body === undefined) throw new BrokerError("INVALID_JSON", "Empty request body");
  return body;
}

function pushAnswer({ items, lanes, offsets, isDuplicate, strandedItems }: PushRequest): string {
  let body = "[";
  for (let index = 0; index < items.length; index++) {
    const { fragment } = items[index]!;
    const transactionId = transactionIdJson(fragment);
    const separator = index === 0 ? "" : ",";
    if (strandedItems?.has(index)) {
      const queue = encodeString(items[index]!.queue);
      const partition = encodeString(items[index]!.partition);
      body += `${separator}{"index":${index},"status":"buffered","queue":${queue},"partition":${partition},"transactionId":${transactionId},"transaction_id":${transactionId},"queueName":${queue}}`;
      continue;
    }
    const lane = lanes[index]!;
    const id = `${lane.messageIdPrefix}${offsetSuffix(offsets[index]!)}`;
    body += isDuplicate[index]
      ? `${separator}{"index":${index},"status":"duplicate","transaction_id":${transactionId},"message_id":"${id}","queueName":${lane.queue.nameJson}}`
      : `${separator}{"index":${index},"status":"queued","transaction_id":${transactionId},"message_id":"${id}","partition_id":"${lane.partitionId}","trace_id":${traceIdJson(fragment)},"queueName":${lane.queue.nameJson}}`;
  }
  return `${body}]`;
}

const emptyAnswer = (reason: EmptyReason): Answer => ({
  status: 204,
  headers: { "Queen-Empty-Reason": reason },
});

const unknownStatus = (status: string): AckResult => ({
  success: false,
  error: `unknown status "${status}": use completed, failed, dlq or retry`,
  released: false,
  dlq: false,
  lane: undefined,
});

function ackAnswer(items: readonly AckItem[], results: readonly AckResult[]): string {
  let body = "[";
  for (let index = 0; index < items.length; index++) {
    const { success, error, released, dlq, lane } = results[index]!;
    body +=
      `${index === 0 ? "" : ","}{"index":${index},"transactionId":${encodeString(items[index]!.transactionId)},` +
      `"success":${success},"error":${error === null ? "null" : encodeString(error)},` +
      `"queueName":${lane ? lane.queue.nameJson : "null"},"partitionName":${lane ? lane.nameJson : "null"},` +
      `"leaseReleased":${released},"dlq":${dlq}}`;
  }
  return `${body}]`;
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
