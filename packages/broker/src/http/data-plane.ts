/** The handlers of the data plane: push, pop, ack, lease, transaction. Each builds its answer's bytes itself. */
import { BrokerError, offsetSuffix, parsePartitionId, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { Identity } from "../access/identity.ts";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { MaintenanceModes } from "../control/maintenance.ts";
import { type AckItem, parseAckBatchBody, parseAckBody } from "../operations/ack-body.ts";
import type { Keyring } from "../operations/encryption.ts";
import { encodeString } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { popAnswer, type TakenLane, traceparentsIn, unreadableError } from "../operations/pop-answer.ts";
import { type PushItem, parsePushBody } from "../operations/push-body.ts";
import { traceIdJson, transactionIdJson } from "../operations/segment.ts";
import { isoMilliseconds } from "../operations/timestamp.ts";
import { readTraceparent } from "../operations/traceparent.ts";
import { parseTransactionBody, type TransactionBody } from "../operations/transaction-body.ts";
import type { EmptyReason } from "../popping/empty-reason.ts";
import type { PopOutcome, PopRequest, Subscription, Taken } from "../popping/pop.ts";
import type { Popper } from "../popping/popper.ts";
import type { Pusher, PushRequest } from "../pushing/pusher.ts";
import type { Renewer } from "../settling/renewer.ts";
import type { AckResult, Settler } from "../settling/settler.ts";
import type { Spool } from "../spooling/spool.ts";
import type { OperationSpan } from "../tracing.ts";
import { TransactionRefused, type TransactionResult, type Transactor } from "../transacting/transactor.ts";
import { type Entrants, racePops } from "./pop-race.ts";
import type { RequestMeter } from "./request-meter.ts";
import type { Answer, Request } from "./route.ts";
import type { QueueOfPartition } from "./scope.ts";
import { describeAck, describePop, describePush } from "./span-facts.ts";

export interface DataPlaneOptions {
  readonly pusher: Pusher;
  readonly spool: Spool;
  readonly popper: Popper;
  readonly settler: Settler;
  readonly renewer: Renewer;
  readonly transactor: Transactor;
  readonly keyring: Keyring;
  /** Rejects where a queue is full; undefined: none has a limit. */
  readonly admit: (items: readonly PushItem[]) => Promise<void> | undefined;
  /** A pop's messages are on their way to a client, under a lease. */
  readonly delivered: (taken: readonly Taken[], token: number) => void;
  readonly giveBack: (taken: readonly Taken[], token: number) => void;
  readonly unfinish: (taken: readonly Taken[]) => Promise<void>;
  /** What a pop took cannot be delivered, for this reason: nothing of it may count as delivered; never rejects. */
  readonly undeliverable: (
    taken: readonly Taken[],
    token: number | undefined,
    reason: string,
  ) => Promise<void>;
  /** Some of what was leased holds no message any more; never rejects. */
  readonly finishGone: (taken: readonly Taken[], token: number) => Promise<void>;
  /** The queues of a namespace and a task, the most urgent first. */
  readonly queuesOf: (namespace: string, task: string) => Promise<readonly string[]>;
  readonly queueOfPartition: QueueOfPartition;
  /** The time that a text means, as PostgreSQL writes it; undefined: it means none. */
  readonly readTimestamp: (text: string) => Promise<string | undefined>;
  readonly newTransactionId: () => string;
  /** Of a group that says nothing at its first pop. */
  readonly subscriptionModeDefault: string;
  readonly statistics: Readonly<
    Record<"push" | "pop" | "ack" | "transaction" | "renew_lease", OperationStatistics>
  >;
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

interface AssembledPop extends Answer {
  readonly messages: number;
  readonly gone: number;
  /** The lanes that are in the answer. */
  readonly taken: readonly Taken[];
  /** Why others are not; they are being put back. */
  readonly problem?: BrokerError | undefined;
  readonly putBack?: Promise<void> | undefined;
}

const QUEUES_PER_POP_MAX = 200;
// A pop that meets only deleted messages goes on so often before it is answered as empty.
const POP_ROUNDS_MAX = 1_000;
// A pop that was answered at once because of a pause is to leave so much time before the next one.
const PAUSED_RETRY_AFTER_S = "1";

export class DataPlane {
  readonly #options: DataPlaneOptions;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
  }

  // ------------------------------------------------------------------------------------------------ push

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

  // ------------------------------------------------------------------------------------------------- pop

  async popQueue(request: Request, query: PopQuery, span?: OperationSpan): Promise<Answer> {
    const queue = checkName(request.params.queue, "queue", { allowEmpty: true });
    request.identity.checkQueue(queue);
    const partition =
      request.params.partition === undefined ? undefined : checkName(request.params.partition, "partition");
    return this.#pop(request, query, [queue], partition, span);
  }

  /** By `queue` and `partition`, or by `namespace` and `task`. */
  async popAny(request: Request, query: AnyPopQuery, span?: OperationSpan): Promise<Answer> {
    const { queue, partition, namespace = "", task = "" } = query;
    if (queue !== undefined) {
      request.identity.checkQueue(queue);
      return this.#pop(request, query, [queue], partition, span);
    }
    if (namespace === "" && task === "") {
      throw new BrokerError(
        "VALIDATION_FAILED",
        "Say what to pop: queue (and partition), or namespace or task.",
      );
    }
    const choose = (names: readonly string[]): readonly string[] =>
      names.filter((name) => request.identity.mayUse(name)).slice(0, QUEUES_PER_POP_MAX);
    const { popper, queuesOf } = this.#options;
    if (!query.wait)
      return this.#pop(request, query, choose(await queuesOf(namespace, task)), undefined, span);
    const watch = popper.watchQueues(namespace, task);
    try {
      const queues = choose(await queuesOf(namespace, task));
      return await this.#pop(request, query, queues, undefined, span, { watch, choose });
    } finally {
      watch.close();
    }
  }

  async #pop(
    request: Request,
    query: PopQuery,
    queues: readonly string[],
    partition: string | undefined,
    span: OperationSpan | undefined,
    joining?: Entrants["joining"],
  ): Promise<Answer> {
    const { now, statistics, readTimestamp } = this.#options;
    const startedAtMs = now();
    this.#options.active();
    const { consumerGroup: group = QUEUE_MODE_GROUP, autoAck } = query;
    const timeoutMs = query.wait ? query.timeout : 0;
    const subscription = await this.#subscription(group, query);
    const since = joining && subscription.mode === "new" ? await readTimestamp("now") : undefined;
    if (!this.#options.isInformed()) await this.#options.inform();
    const pop = (queue: string, waitMs: number, hasJoined: boolean): PopRequest => ({
      queue,
      partition,
      group,
      batch: query.batch,
      partitions: query.partitions,
      autoAck,
      waitMs,
      subscription: hasJoined ? sinceThen(subscription, since) : subscription,
      span,
    });
    const entrants = { queues, joining, pop };
    const leftMs = (): number => (timeoutMs > 0 ? Math.max(1, timeoutMs - (now() - startedAtMs)) : 0);
    for (let round = 1; ; round++) {
      const reason = this.#options.modes().pop ? "paused" : "no_available_partition";
      const outcome = await racePops(this.#options, request, entrants, leftMs, reason);
      const answer = this.#popAnswer(request, outcome, autoAck, span);
      if (outcome.status === "messages" && answer.gone > 0 && !autoAck) {
        const finished = this.#options.finishGone(answer.taken, outcome.token);
        if (answer.messages === 0) await finished;
      }
      if (answer.problem && answer.messages === 0) {
        await answer.putBack;
        throw answer.problem;
      }
      if (outcome.status === "empty" || answer.messages > 0 || round >= POP_ROUNDS_MAX) {
        statistics.pop.answered(answer.messages, now() - startedAtMs);
        if (span) describePop(span, { queues, partition, group }, outcome, answer.messages);
        if (outcome.status === "messages" && answer.messages > 0)
          this.#options.meter.popped(outcome.taken, answer.messages, autoAck);
        else this.#options.meter.poppedNothing(queues);
        return answer.messages > 0 || outcome.status === "empty"
          ? answer
          : emptyAnswer("no_available_partition");
      }
      // Everything it got had been deleted: it goes on behind that.
    }
  }

  #popAnswer(
    request: Request,
    outcome: PopOutcome,
    autoAck: boolean,
    span: OperationSpan | undefined,
  ): AssembledPop {
    if (outcome.status === "empty")
      return { ...emptyAnswer(outcome.reason), messages: 0, gone: 0, taken: [] };
    const { token, group } = outcome;
    const { delivered, giveBack, keyring, undeliverable } = this.#options;
    const lease = autoAck ? undefined : token;
    const lanes = outcome.taken.map(
      ({ groupLane: { lane }, from, to, acked, segments }): TakenLane => ({
        queueJson: lane.queue.nameJson,
        partitionJson: lane.nameJson,
        partition: lane.id,
        partitionId: lane.partitionId,
        messageIdPrefix: lane.messageIdPrefix,
        from,
        to,
        acked,
        segments,
      }),
    );
    const { unreadable, ...answer } = popAnswer(lanes, group.nameJson, lease, keyring);
    span?.link(traceparentsIn(lanes));
    let { taken } = outcome;
    let problem: BrokerError | undefined;
    let putBack: Promise<void> | undefined;
    if (unreadable.length > 0) {
      const isUnreadable = ({ groupLane }: Taken): boolean =>
        unreadable.some(({ lane }) => lane.partition === groupLane.lane.id);
      problem = unreadableError(unreadable[0]!);
      putBack = undeliverable(taken.filter(isUnreadable), lease, problem.message);
      taken = taken.filter((each) => !isUnreadable(each));
    }
    if (!autoAck) {
      delivered(taken, token);
      if (answer.messages > 0) request.onHangUp(() => giveBack(taken, token));
    }
    return { status: 200, ...answer, taken, problem, putBack };
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

  ack(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#ack(request, [parseAckBody(requiredJson(request))], span);
  }

  ackBatch(request: Request, span?: OperationSpan): Promise<Answer> {
    return this.#ack(request, parseAckBatchBody(requiredJson(request)), span);
  }

  async #ack(request: Request, items: readonly AckItem[], span: OperationSpan | undefined): Promise<Answer> {
    const { settler, statistics, now } = this.#options;
    const startedAtMs = now();
    await this.#checkPartitions(request.identity, items);
    await settler.learn(items);
    const results = await Promise.all(
      items.map((item) =>
        item.status === undefined
          ? unknownStatus(item.statusText)
          : settler.ack({ ...item, status: item.status, span }, item.group),
      ),
    );
    statistics.ack.answered(items.length, now() - startedAtMs);
    if (span) describeAck(span, items, results);
    this.#options.meter.acked(items, results);
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

  /** An ack names its partition; whose queue that is, the database may have to say. */
  async #checkPartitions(
    identity: Identity,
    items: readonly { readonly partitionId: string }[],
  ): Promise<void> {
    if (!identity.isLimited) return;
    for (const partitionId of new Set(items.map((item) => item.partitionId))) {
      const partition = parsePartitionId(partitionId);
      const queue = partition === undefined ? undefined : await this.#options.queueOfPartition(partition);
      if (queue !== undefined) identity.checkQueue(queue);
    }
  }

  async #checkTransaction(identity: Identity, { operations }: TransactionBody): Promise<void> {
    checkQueues(
      identity,
      operations.flatMap((operation) => (operation.type === "push" ? [operation.item] : [])),
    );
    await this.#checkPartitions(
      identity,
      operations.flatMap((operation) => (operation.type === "ack" ? [operation.ack] : [])),
    );
  }

  // ----------------------------------------------------------------------------------------- transaction

  async transaction(request: Request, span?: OperationSpan): Promise<Answer> {
    const { transactor, spool, statistics, now, newTransactionId } = this.#options;
    const startedAtMs = now();
    const traceparent = span?.traceparent ?? readTraceparent(request.headers.traceparent);
    const body = parseTransactionBody(
      request.text(),
      newTransactionId,
      request.identity.subject,
      traceparent,
    );
    await this.#checkTransaction(request.identity, body);
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
}

function checkQueues(identity: Identity, items: readonly { readonly queue: string }[]): void {
  if (identity.isLimited) for (const { queue } of items) identity.checkQueue(queue);
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
  headers: {
    "Queen-Empty-Reason": reason,
    ...(reason === "paused" ? { "Retry-After": PAUSED_RETRY_AFTER_S } : {}),
  },
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

/** A queue that was made while a group waited for what is new is new from its beginning. */
function sinceThen(subscription: Subscription, since: string | undefined): Subscription {
  if (subscription.mode !== "new" || since === undefined) return subscription;
  return { mode: "timestamp", from: since };
}
