/** Handlers of pops: by queue and partition, or by namespace and task. */
import { BrokerError, QUEUE_MODE_GROUP } from "@queen/protocol";
import type { OperationStatistics } from "../batching/operation-statistics.ts";
import type { MaintenanceModes } from "../control/maintenance.ts";
import type { Keyring } from "../operations/encryption.ts";
import { checkName } from "../operations/names.ts";
import { popAnswer, type TakenLane, traceparentsIn, unreadableError } from "../operations/pop-answer.ts";
import type { EmptyReason } from "../popping/empty-reason.ts";
import type { PopOutcome, PopRequest, Subscription, Taken } from "../popping/pop.ts";
import type { OperationSpan } from "../tracing.ts";
import { type Entrants, type PopRaceOptions, racePops } from "./pop-race.ts";
import type { RequestMeter } from "./request-meter.ts";
import type { Answer, Request } from "./route.ts";
import { describePop } from "./span-facts.ts";

export interface PopRoutesOptions extends PopRaceOptions {
  readonly keyring: Keyring;
  /** A pop's messages are on their way to a client, under a lease. */
  readonly delivered: (taken: readonly Taken[], token: number) => void;
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
  /** The time that a text means, as PostgreSQL writes it; undefined: it means none. */
  readonly readTimestamp: (text: string) => Promise<string | undefined>;
  /** Of a group that says nothing at its first pop. */
  readonly subscriptionModeDefault: string;
  readonly statistics: { readonly pop: OperationStatistics };
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

export class PopRoutes {
  readonly #options: PopRoutesOptions;

  constructor(options: PopRoutesOptions) {
    this.#options = options;
  }

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
    const { body, messages, gone, unreadable } = popAnswer(lanes, group.nameJson, lease, keyring);
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
      if (messages > 0) request.onHangUp(() => giveBack(taken, token));
    }
    return { status: 200, body, messages, gone, taken, problem, putBack };
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
}

const emptyAnswer = (reason: EmptyReason): Answer => ({
  status: 204,
  headers: {
    "Queen-Empty-Reason": reason,
    ...(reason === "paused" ? { "Retry-After": PAUSED_RETRY_AFTER_S } : {}),
  },
});

/** A queue that was made while a group waited for what is new is new from its beginning. */
function sinceThen(subscription: Subscription, since: string | undefined): Subscription {
  if (subscription.mode !== "new" || since === undefined) return subscription;
  return { mode: "timestamp", from: since };
}
