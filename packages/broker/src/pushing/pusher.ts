/**
 * The pusher brings messages into their lanes and says for each where it is.
 *
 * Per lane, one at a time: messages wait; the window of recent keys is there; what it suspects is looked up
 * in the database; the rest is appended together with other lanes' messages. What was not stored because the
 * lane was busy, deleted or changed by somebody else goes to its head again and is tried anew. An append
 * with an unknown outcome is tried again by the same transactionIds, so nothing is stored twice. Payloads of an
 * encrypted queue are sealed when they enter the lane, before they wait anywhere.
 *
 * When the database is away, or has taken nothing for a while, messages are not tried any more: they are stranded,
 * and it is for their owner to say where they go.
 */
import { BrokerError } from "@queen/protocol";
import type { Batcher } from "../batching/batcher.ts";
import { crashPoint } from "../crash-point.ts";
import type { Directory } from "../lanes/directory.ts";
import { type Doubt, type Lane, type MessageOwner, PendingMessage } from "../lanes/lane.ts";
import type { SegmentCache } from "../lanes/segment-cache.ts";
import type { WindowStore } from "../lanes/window-store.ts";
import type { Keyring } from "../operations/encryption.ts";
import type { PushItem } from "../operations/push-body.ts";
import { classify, isAway, isDeterministic } from "../postgres/errors.ts";
import { APPEND } from "../postgres/statements.ts";
import type { OperationSpan } from "../tracing.ts";
import { AppendError, type AppendResult } from "./append-kind.ts";
import { giveBackLaneBatch, isSuspect, type LaneBatch } from "./lane-batch.ts";
import { takeTurn } from "./lane-turn.ts";

/** One request's messages, and what became of each. */
export class PushRequest implements MessageOwner {
  readonly items: readonly PushItem[];
  readonly lanes: Lane[];
  readonly offsets: number[];
  readonly isDuplicate: boolean[];
  readonly span: OperationSpan | undefined;
  /** The first failure; what else was stored stays stored. */
  error: Error | undefined;
  /** Items that the database did not take, by index, with where they may be nevertheless. */
  strandedItems: Map<number, Doubt | undefined> | undefined;
  /** Why they are stranded; undefined: they were not tried. */
  strandedBy: Error | undefined;
  readonly #done: () => void;
  #left: number;

  constructor(items: readonly PushItem[], span: OperationSpan | undefined, done: () => void) {
    this.items = items;
    this.span = span;
    this.lanes = new Array(items.length);
    this.offsets = new Array(items.length).fill(0);
    this.isDuplicate = new Array(items.length).fill(false);
    this.#left = items.length;
    this.#done = done;
  }

  queued(index: number, lane: Lane, offset: number): void {
    this.lanes[index] = lane;
    this.offsets[index] = offset;
    if (--this.#left === 0) this.#done();
  }

  duplicate(index: number, lane: Lane, offset: number): void {
    this.isDuplicate[index] = true;
    this.queued(index, lane, offset);
  }

  failed(_index: number, error: Error): void {
    this.error ??= error;
    if (--this.#left === 0) this.#done();
  }

  stranded(index: number, reason: Error | undefined, doubt: Doubt | undefined): void {
    this.strandedBy ??= reason;
    this.strandedItems ??= new Map();
    this.strandedItems.set(index, doubt);
    if (--this.#left === 0) this.#done();
  }
}

export interface PusherOptions {
  readonly directory: Directory;
  readonly windows: WindowStore;
  readonly cache: SegmentCache;
  readonly appends: Batcher<Lane, AppendResult | AppendError>;
  readonly keyring: Keyring;
  /** Messages for the lane wait to be appended; it was not known before. */
  readonly opened: (lane: Lane) => void;
  /** The lane has so many new messages, committed. */
  readonly appended: (lane: Lane, messages: number) => void;
  readonly now: () => number;
  /** How long a message may wait for its lane before its producer is told to try again. */
  readonly patienceMs: number;
  readonly busyPauseMs: number;
  /** After so long without a single append that the database took, messages that wait for one are stranded. */
  readonly stallMs: number;
}

// Time is counted in steps that this process lived through: one that stood still itself has not waited.
const STALL_STEPS = 8;

export class Pusher {
  readonly #options: PusherOptions;
  readonly #draining = new Set<Lane>();
  /** Messages whose lane is not known yet. */
  readonly #opening = new Set<PendingMessage>();
  #silentSteps = 0;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: PusherOptions) {
    this.#options = options;
  }

  /** Resolves when every item is decided. Those that must not be tried are stranded at once. */
  push(
    items: readonly PushItem[],
    span?: OperationSpan,
    mustNotTry?: readonly boolean[],
  ): Promise<PushRequest> {
    return new Promise((resolve) => {
      const request = new PushRequest(items, span, () => resolve(request));
      const deadlineAtMs = this.#options.now() + this.#options.patienceMs;
      for (let index = 0; index < items.length; index++) {
        if (mustNotTry?.[index]) request.stranded(index, undefined, undefined);
        else this.add(request, index, items[index]!, deadlineAtMs);
      }
    });
  }

  /** Brings one message into its lane; its owner hears what became of it. */
  add(owner: MessageOwner, index: number, item: PushItem, deadlineAtMs: number): void {
    const message = new PendingMessage(owner, index, item, deadlineAtMs);
    const lane = this.#options.directory.lane(item.queue, item.partition);
    if (lane) this.#enqueue(lane, message);
    else this.#openAndEnqueue(item.queue, item.partition, message);
  }

  #openAndEnqueue(queue: string, partition: string, message: PendingMessage): void {
    this.#opening.add(message);
    this.#startWatch();
    this.#options.directory.open({ queue, partition }, true).then(
      (lane) => {
        this.#opening.delete(message);
        this.#silentSteps = 0;
        if (lane) {
          this.#options.opened(lane);
          this.#enqueue(lane, message);
        } else if (this.#options.now() < message.deadlineAtMs)
          this.#openAndEnqueue(queue, partition, message);
        else message.failed(new BrokerError("OVERLOADED", `Queue ${queue} is being deleted. Try again.`));
      },
      (error) => {
        this.#opening.delete(message);
        if (isAway(error)) message.strand(error as Error);
        else message.failed(error as Error);
      },
    );
  }

  #enqueue(lane: Lane, message: PendingMessage): void {
    if (message.isStranded) return;
    if (!this.#seal(lane, message)) return;
    // A new array: one that waited empty is old by now, and would keep what it held until a full collection.
    if (lane.pending.length === 0) lane.pending = [message];
    else lane.pending.push(message);
    lane.pendingBytes += message.fragment.length;
    if (this.#draining.has(lane)) return;
    this.#draining.add(lane);
    this.#startWatch();
    void this.#drain(lane);
  }

  /** Returns whether the message may be stored; without a key it is refused. */
  #seal(lane: Lane, message: PendingMessage): boolean {
    try {
      message.sealFor(lane, this.#options.keyring);
      return true;
    } catch (error) {
      message.failed(error as Error);
      return false;
    }
  }

  /** Runs while messages wait, and for a step longer. */
  #startWatch(): void {
    if (this.#watch) return;
    this.#silentSteps = 0;
    this.#watch = setInterval(() => {
      if (this.#draining.size === 0 && this.#opening.size === 0) {
        clearInterval(this.#watch);
        this.#watch = undefined;
      } else if (++this.#silentSteps >= STALL_STEPS) this.#strandAll();
    }, this.#options.stallMs / STALL_STEPS);
    this.#watch.unref();
  }

  #strandAll(): void {
    const reason = new BrokerError(
      "DATABASE_UNAVAILABLE",
      `PostgreSQL has taken no message for ${this.#options.stallMs} ms. Try again later.`,
    );
    for (const lane of this.#draining) {
      const doubtFrom = lane.window?.completeTo ?? 0;
      for (const message of lane.inFlight) {
        message.doubtFrom = Math.min(message.doubtFrom, doubtFrom);
        message.strand(reason, lane);
      }
      this.#strandPending(lane, reason);
    }
    for (const message of this.#opening) message.strand(reason);
  }

  #strandPending(lane: Lane, reason: Error): void {
    const { pending } = lane;
    lane.pending = [];
    lane.pendingBytes = 0;
    for (const message of pending) message.strand(reason, lane);
  }

  async #drain(lane: Lane): Promise<void> {
    let endTurn: (() => void) | undefined;
    try {
      endTurn = await takeTurn(lane);
      while (lane.pending.length > 0 && !lane.gone) {
        this.#dropLate(lane);
        if (lane.pending.length === 0) break;
        if (!lane.window || isSuspect(lane, lane.pending[0]!)) await this.#prepare(lane);
        if (lane.gone || lane.pending.length === 0) continue;
        crashPoint("push-before-append");
        const result = await this.#options.appends.submit(lane);
        lane.inFlight = [];
        const pauseMs = result instanceof AppendError ? this.#failed(result) : this.#finished(result);
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    } catch (error) {
      if (isAway(error)) this.#strandPending(lane, error as Error);
      for (const message of lane.pending.splice(0)) message.failed(error as Error);
      lane.pendingBytes = 0;
    } finally {
      this.#draining.delete(lane);
      endTurn?.();
    }
    if (lane.gone) this.#moveOn(lane);
  }

  async #prepare(lane: Lane): Promise<void> {
    const waiting = lane.pending;
    const left = new Set(await prepareMessages(lane, waiting, this.#options.windows));
    const decided = new Set(waiting.filter((message) => !left.has(message) && !message.isStranded));
    if (decided.size === 0) return;
    for (const message of decided) lane.pendingBytes -= message.fragment.length;
    lane.pending = lane.pending.filter((message) => !decided.has(message)); // more may have come meanwhile
  }

  /** The partition was deleted: what waits for it goes to the one that now has its name. */
  #moveOn(lane: Lane): void {
    this.#options.directory.forget(lane);
    for (const message of lane.pending.splice(0)) {
      message.inWindow = false;
      message.freshTo = -1;
      this.#openAndEnqueue(lane.queue.name, lane.name, message);
    }
    lane.pendingBytes = 0;
  }

  #dropLate(lane: Lane): void {
    const nowMs = this.#options.now();
    if (lane.pending[0]!.deadlineAtMs > nowMs) return;
    const late = lane.pending.filter((message) => message.deadlineAtMs <= nowMs);
    lane.pending = lane.pending.filter((message) => message.deadlineAtMs > nowMs);
    for (const message of late) {
      lane.pendingBytes -= message.fragment.length;
      message.failed(
        new BrokerError(
          "OVERLOADED",
          `Partition ${lane.name} of ${lane.queue.name} is held by another transaction. Try again later.`,
        ),
      );
    }
  }

  /** Returns how long to wait before the lane is tried again. */
  #finished(result: AppendResult): number {
    const { batch } = result;
    if (batch.messages.length > 0) this.#silentSteps = 0;
    switch (result.status) {
      case APPEND.appended:
        if (batch.lane.alone > 0) batch.lane.alone--;
        if (batch.messages.length > 0) this.stored(batch, result);
        return 0;
      case APPEND.busy:
        giveBackLaneBatch(batch);
        return this.#options.busyPauseMs;
      case APPEND.gone:
        giveBackLaneBatch(batch);
        batch.lane.gone = true;
        return 0;
      case APPEND.plain:
        giveBackLaneBatch(batch);
        batch.lane.queue.mustEncrypt();
        this.#sealPending(batch.lane);
        return 0;
      default:
        this.compareAgain(batch);
        return 0;
    }
  }

  /** The queue's encryption was switched on while messages waited. */
  #sealPending(lane: Lane): void {
    lane.pending = lane.pending.filter((message) => this.#seal(lane, message));
    lane.pendingBytes = lane.pending.reduce((bytes, message) => bytes + message.fragment.length, 0);
  }

  /** Others appended what this worker does not know: the window is read anew, the messages compared again. */
  compareAgain(batch: LaneBatch): void {
    this.#options.windows.drop(batch.lane);
    for (const message of batch.messages) message.inWindow = false;
    giveBackLaneBatch(batch);
  }

  /** The batch is committed. Readers hear of it before the producers do. */
  stored(batch: LaneBatch, result: Pick<AppendResult, "atOffset" | "createdAtUs" | "missed">): void {
    const { lane } = batch;
    const window = lane.window;
    if (window) {
      // First its own keys, which are in the window already: those of others may be much older.
      window.stamp(result.createdAtUs);
      for (const row of result.missed) window.addSegment(row.keys!, row.createdAtUs!);
      const before = window.completeTo;
      window.completeTo = result.atOffset + batch.messages.length;
      this.#options.windows.grew(lane, before, window.completeTo);
    }
    lane.nextOffset = Math.max(lane.nextOffset, result.atOffset + batch.messages.length);
    if (lane.queue.hasReaders) {
      this.#options.cache.keep(
        lane,
        batch.segments.map((segment) => ({
          firstOffset: result.atOffset + segment.relative,
          count: segment.count,
          createdAtUs: result.createdAtUs,
          ends: segment.ends.toString("latin1"),
          body: segment.body,
        })),
      );
    }
    crashPoint("push-after-append");
    this.#options.appended(lane, batch.messages.length);
    for (let index = 0; index < batch.messages.length; index++) {
      batch.messages[index]!.queued(lane, result.atOffset + index);
    }
    for (const [message, index] of batch.twins) message.duplicate(lane, result.atOffset + index);
  }

  #failed(failure: AppendError): number {
    const { batch, cause } = failure;
    const { lane } = batch;
    const doubtFrom = lane.window?.completeTo ?? 0;
    this.compareAgain(batch);
    const error = classify(cause);
    if (isDeterministic(cause)) {
      // One message is to blame. Alone, it is refused; until then each goes in an append of its own.
      if (failure.alone && batch.messages.length === 1) {
        lane.pendingBytes -= lane.pending[0]!.fragment.length;
        lane.pending.shift()!.failed(error);
      } else lane.alone = batch.messages.length;
      return 0;
    }
    for (const message of batch.messages) message.doubtFrom = Math.min(message.doubtFrom, doubtFrom);
    if (error.code === "SHUTTING_DOWN") throw error;
    return this.#options.busyPauseMs;
  }
}

/**
 * Gives the lane its window and decides about those of the messages that the window suspects. Returns the
 * messages that are still to be stored.
 */
export async function prepareMessages(
  lane: Lane,
  messages: readonly PendingMessage[],
  windows: WindowStore,
): Promise<readonly PendingMessage[]> {
  if (!lane.window) await windows.load(lane);
  if (!lane.window || lane.gone) return messages;
  const suspects = messages.filter((message) => isSuspect(lane, message));
  if (suspects.length === 0) return messages;
  const found = await windows.verify(lane, suspects);
  return messages.filter((message) => {
    const offset = found.get(message);
    if (offset === undefined) return true;
    if (offset >= message.doubtFrom) message.queued(lane, offset);
    else message.duplicate(lane, offset);
    return false;
  });
}
