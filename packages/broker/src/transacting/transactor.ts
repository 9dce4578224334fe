/**
 * The transactor commits pushes and acks together, or not at all. A transaction holds the turns of the lanes
 * it pushes to, so that their windows stay true. It is tried as a plain one, together with others; whatever is not plain, and
 * whatever must be refused, is a call of its own.
 */
import { BrokerError, messageId, parseLeaseId, parsePartitionId } from "@queen/protocol";
import type { Batcher } from "../batching/batcher.ts";
import type { Directory } from "../lanes/directory.ts";
import { type Lane, type MessageOwner, PendingMessage } from "../lanes/lane.ts";
import type { WindowStore } from "../lanes/window-store.ts";
import type { AckItem } from "../operations/ack-body.ts";
import type { Keyring } from "../operations/encryption.ts";
import { formatRanges, rangesOf } from "../operations/offset-ranges.ts";
import type { PushItem } from "../operations/push-body.ts";
import type { TransactionBody } from "../operations/transaction-body.ts";
import { ConnectionLostError, classify, PostgresError } from "../postgres/errors.ts";
import { APPEND, SETTLE, type TransactResult } from "../postgres/statements.ts";
import { appendParameters, sealedLanes } from "../pushing/append-kind.ts";
import { type LaneBatch, makeLaneBatch } from "../pushing/lane-batch.ts";
import { takeTurns } from "../pushing/lane-turn.ts";
import { type Pusher, prepareMessages } from "../pushing/pusher.ts";
import type { AckStatus, Delivered, PendingAck } from "../settling/delivered.ts";
import { LEASE_LOST, type Settler } from "../settling/settler.ts";
import type { OperationSpan, Place } from "../tracing.ts";
import type { FinishedRange } from "./convoy.ts";
import { Convoys } from "./convoys.ts";
import type { TransactOperation, TransactOutcome } from "./transact-kind.ts";

export interface PushResult {
  readonly type: "push";
  readonly item: PushItem;
  readonly status: "queued" | "duplicate";
  readonly messageId: string;
  readonly partitionId: string;
}

export interface AckResult {
  readonly type: "ack";
  readonly ack: AckItem;
  readonly dlq: boolean;
}

export type TransactionResult = PushResult | AckResult;

/** Nothing of the transaction was kept, and this is why. */
export class TransactionRefused extends Error {
  override readonly name = "TransactionRefused";
}

export interface TransactorOptions {
  readonly directory: Directory;
  readonly windows: WindowStore;
  readonly pusher: Pusher;
  readonly settler: Settler;
  readonly transactions: Batcher<TransactOperation, TransactOutcome>;
  readonly keyring: Keyring;
  /** Rejects where a queue is full; undefined: none has a limit. */
  readonly admit: (items: readonly PushItem[]) => Promise<void> | undefined;
  readonly now: () => number;
  readonly patienceMs: number;
}

interface Push {
  readonly item: PushItem;
  readonly message: PendingMessage;
  readonly index: number;
  /** Where it is, once that is known. */
  stored:
    | { readonly status: "queued" | "duplicate"; readonly lane: Lane; readonly offset: number }
    | undefined;
}

interface LocatedAck {
  readonly ack: AckItem;
  readonly status: AckStatus;
  /** Undefined: finished before this transaction. */
  readonly at: { readonly delivered: Delivered; readonly offset: number } | undefined;
}

// A queue that is deleted costs up to three tries, to learn of it and to make it anew.
const ATTEMPTS_MAX = 50;
const PREPARE_AGAIN = "QN001";

export class Transactor {
  readonly #options: TransactorOptions;
  readonly #convoys: Convoys;

  constructor(options: TransactorOptions) {
    this.#options = options;
    this.#convoys = new Convoys(options);
  }

  async run(body: TransactionBody, span?: OperationSpan): Promise<TransactionResult[]> {
    const deadlineAtMs = this.#options.now() + this.#options.patienceMs;
    const pushes: Push[] = [];
    const owner: MessageOwner = {
      queued: (index, lane, offset) => {
        pushes[index]!.stored = { status: "queued", lane, offset };
      },
      duplicate: (index, lane, offset) => {
        pushes[index]!.stored = { status: "duplicate", lane, offset };
      },
      failed: (_index, error) => {
        throw error;
      },
      stranded: (_index, reason) => {
        throw reason;
      },
    };
    for (const operation of body.operations) {
      if (operation.type !== "push") continue;
      const { item } = operation;
      const index = pushes.length;
      pushes.push({
        item,
        index,
        message: new PendingMessage(owner, index, item, deadlineAtMs),
        stored: undefined,
      });
    }
    const acks = await this.#locate(body);
    if (span) describe(span, pushes, acks);
    await this.#options.admit(pushes.map((push) => push.item));
    const settles = settlementsOf(acks);
    const required = requiredLeases(body, acks);
    for (let attempt = 1; ; attempt++) {
      try {
        if (attempt === 1 && (await this.#tryTogether(pushes, acks, settles, required, span))) {
          return results(body, pushes, new Set());
        }
        const buried = await this.#attempt(pushes, acks, settles, required, span);
        return results(body, pushes, buried);
      } catch (error) {
        if (!this.#mayRepeat(error, pushes)) throw error;
        if (attempt >= ATTEMPTS_MAX || this.#options.now() > deadlineAtMs) throw givenUp(error);
      }
    }
  }

  #mayRepeat(error: unknown, pushes: readonly Push[]): boolean {
    if (error instanceof LaneGone) return true;
    if (isPrepareAgain(error)) return true;
    if (error instanceof PostgresError && error.sqlstate === "QN409") {
      throw new TransactionRefused(`ACK operation failed: ${error.message}`);
    }
    // Sent and not answered: the replay finds what was stored, or stores it now.
    return error instanceof ConnectionLostError && pushes.every((push) => push.stored === undefined);
  }

  async #locate(body: TransactionBody): Promise<LocatedAck[]> {
    const leases = body.requiredLeases.map((leaseId) => ({ leaseId, lease: parseLeaseId(leaseId) }));
    if (leases.some(({ lease }) => !lease)) throw new TransactionRefused(LEASE_LOST);
    return Promise.all(
      body.operations.flatMap((operation) => {
        if (operation.type !== "ack") return [];
        const { ack } = operation;
        const { status } = ack;
        if (status === undefined)
          throw new TransactionRefused(`ACK operation failed: unknown status ${ack.statusText}`);
        const partition = parsePartitionId(ack.partitionId);
        const leaseId =
          ack.leaseId ??
          leases.find(({ lease }) => partition !== undefined && lease!.partitions.includes(partition))
            ?.leaseId;
        return this.#options.settler.locate({ ...ack, leaseId }, ack.group).then((located): LocatedAck => {
          if ("offset" in located) return { ack, status, at: located };
          if (located.success) return { ack, status, at: undefined };
          throw new TransactionRefused(`ACK operation failed: ${located.error}`);
        });
      }),
    );
  }

  /** As one that only pushes and finishes messages. Whether it was done; if not, nothing of it was. */
  async #tryTogether(
    pushes: readonly Push[],
    acks: readonly LocatedAck[],
    settles: readonly Settlement[],
    required: readonly RequiredLease[],
    span: OperationSpan | undefined,
  ): Promise<boolean> {
    const isPlain =
      acks.every(({ status, at }) => at && status === "completed") &&
      required.every(({ partition, token }) =>
        settles.some(({ delivered }) => delivered.lane.id === partition && delivered.token === token),
      );
    if (!isPlain || pushes.length + acks.length === 0) return false;
    const finished = settles.flatMap(finishedRanges);
    return this.#convoys.go({
      messages: await this.#messagesByLane(pushes),
      finished,
      span,
      committed: (batches, { appended, settled }) => {
        batches.forEach((batch, index) => {
          this.#stored(batch, appended[index]!.atOffset, appended[index]!.createdAtUs);
        });
        for (const { delivered, acks } of settles) {
          const { committed, released } =
            settled[finished.findIndex((range) => range.delivered === delivered)]!;
          const settlement = { acks, release: false, status: SETTLE.done, committed, released, buried: [] };
          this.#options.settler.settled(delivered, settlement);
        }
      },
    });
  }

  async #messagesByLane(pushes: readonly Push[]): Promise<Map<Lane, PendingMessage[]>> {
    const messages = new Map<Lane, PendingMessage[]>();
    for (const { item, message } of pushes) {
      const lane = await this.#open(item);
      const before = messages.get(lane);
      if (before) before.push(message);
      else messages.set(lane, [message]);
    }
    return messages;
  }

  /** One try, with every lane it pushes to in hand. Returns the acks' messages that were dead-lettered. */
  async #attempt(
    pushes: readonly Push[],
    acks: readonly LocatedAck[],
    settles: readonly Settlement[],
    required: readonly RequiredLease[],
    span: OperationSpan | undefined,
  ): Promise<ReadonlySet<AckItem>> {
    const messages = await this.#messagesByLane(pushes.filter((push) => push.stored === undefined));
    const endTurns = await takeTurns([...messages.keys()]);
    const batches: LaneBatch[] = [];
    try {
      for (const [lane, own] of messages) {
        for (const message of own) message.sealFor(lane, this.#options.keyring);
        const left = await prepareMessages(lane, own, this.#options.windows);
        if (lane.gone) {
          this.#options.directory.forget(lane);
          for (const message of own) message.freshTo = -1;
          throw new LaneGone(lane.name);
        }
        const batch = left.length === 0 ? undefined : makeLaneBatch(lane, left);
        if (!batch) continue;
        if (batch.messages.length + batch.twins.size < left.length) {
          throw new BrokerError(
            "VALIDATION_FAILED",
            "The transaction is too large for one partition. Split it.",
          );
        }
        batches.push(batch);
      }
      return await this.#send(batches, acks, settles, required, span);
    } catch (error) {
      for (const lane of plainLanes(error, batches)) lane.queue.mustEncrypt();
      for (const batch of batches) {
        const doubtFrom = batch.lane.window?.completeTo ?? 0;
        this.#options.windows.drop(batch.lane);
        for (const message of batch.messages) {
          message.inWindow = false;
          if (error instanceof ConnectionLostError)
            message.doubtFrom = Math.min(message.doubtFrom, doubtFrom);
        }
      }
      throw error;
    } finally {
      endTurns();
    }
  }

  async #open(item: PushItem): Promise<Lane> {
    const { directory } = this.#options;
    const lane = directory.lane(item.queue, item.partition) ?? (await directory.open(item, true));
    if (!lane) throw new LaneGone(item.partition);
    return lane;
  }

  async #send(
    batches: readonly LaneBatch[],
    acks: readonly LocatedAck[],
    settles: readonly Settlement[],
    required: readonly RequiredLease[],
    span: OperationSpan | undefined,
  ): Promise<ReadonlySet<AckItem>> {
    const isReplay = batches.length === 0;
    if (!isReplay && acks.some((located) => !located.at)) {
      throw new TransactionRefused("ACK operation failed: Message already acknowledged");
    }
    const parameters = [
      ...appendParameters(batches),
      JSON.stringify(settles.map((settle) => settle.parameters)),
      required.map(({ partition }) => partition),
      required.map(({ token }) => token),
      sealedLanes(batches),
    ];
    const result = (await this.#options.transactions.submit({ parameters, span })) as TransactResult;
    for (const row of result.appended) this.#stored(batches[row.lane]!, row.at, row.created);
    const buried = new Set<AckItem>();
    result.settled.forEach((row, index) => {
      const { delivered, located, acks } = settles[index]!;
      for (const { ack, at } of located) if (row.buried.includes(at!.offset)) buried.add(ack);
      if (row.committed === null) return;
      this.#options.settler.settled(delivered, {
        acks,
        release: false,
        status: row.status,
        committed: row.committed,
        released: row.released,
        buried: row.buried,
      });
    });
    return buried;
  }

  #stored(batch: LaneBatch, atOffset: number, createdAtUs: number): void {
    // What others added since the window was complete is not told here: then it is read anew.
    if (atOffset !== batch.lane.window?.completeTo) this.#options.windows.drop(batch.lane);
    this.#options.pusher.stored(batch, { atOffset, createdAtUs, missed: [] });
  }
}

function describe(span: OperationSpan, pushes: readonly Push[], acks: readonly LocatedAck[]): void {
  const acked = acks.flatMap(({ at }) => at ?? []);
  const places: Place[] = [
    ...pushes.map(({ item }) => item),
    ...acked.map(({ delivered: { lane } }) => ({ queue: lane.queue.name, partition: lane.name })),
  ];
  span.about(pushes.length + acks.length, places);
  span.link(
    acked.flatMap(({ delivered, offset }) => delivered.traceparentsIn({ from: offset, to: offset + 1 })),
  );
}

class LaneGone extends Error {
  override readonly name = "LaneGone";
}

const isPrepareAgain = (error: unknown): error is PostgresError =>
  error instanceof PostgresError && error.sqlstate === PREPARE_AGAIN;

/** The lanes that the database refused plain text for. */
function plainLanes(error: unknown, batches: readonly LaneBatch[]): Lane[] {
  if (!isPrepareAgain(error)) return [];
  const rows = JSON.parse(error.detail ?? "[]") as TransactResult["appended"];
  return rows.flatMap((row) => (row.status === APPEND.plain ? [batches[row.lane]!.lane] : []));
}

/** What the client is told after the last try. */
function givenUp(error: unknown): BrokerError {
  if (!(error instanceof LaneGone) && !isPrepareAgain(error)) return classify(error);
  return new BrokerError("OVERLOADED", "The transaction's partitions change all the time. Try again.", {
    cause: error,
  });
}

interface RequiredLease {
  readonly partition: number;
  readonly token: number;
}

/** Of a required lease the partitions that are acked; where none is, all of them. */
function requiredLeases(body: TransactionBody, acks: readonly LocatedAck[]): RequiredLease[] {
  return body.requiredLeases.flatMap((leaseId) => {
    const lease = parseLeaseId(leaseId)!;
    const acked = lease.partitions.filter((partition) =>
      acks.some((located) => parsePartitionId(located.ack.partitionId) === partition),
    );
    return (acked.length > 0 ? acked : lease.partitions).map((partition) => ({
      partition,
      token: lease.token,
    }));
  });
}

type Settlement = ReturnType<typeof settlement>;

function settlementsOf(acks: readonly LocatedAck[]): Settlement[] {
  const byLease = new Map<Delivered, LocatedAck[]>();
  for (const located of acks) {
    if (!located.at) continue;
    const before = byLease.get(located.at.delivered);
    if (before) before.push(located);
    else byLease.set(located.at.delivered, [located]);
  }
  return [...byLease].map(([delivered, located]) => settlement(delivered, located));
}

function finishedRanges({ delivered, acks }: Settlement): FinishedRange[] {
  const ranges = rangesOf(acks);
  return Array.from({ length: ranges.length / 2 }, (_, index) => ({
    delivered,
    from: ranges[index * 2]!,
    to: ranges[index * 2 + 1]!,
  }));
}

function settlement(delivered: Delivered, located: readonly LocatedAck[]) {
  const offsets = (status: AckStatus): number[] =>
    located.filter((each) => each.status === status).map((each) => each.at!.offset);
  const errors = (status: AckStatus): string[] =>
    located.filter((each) => each.status === status).map((each) => each.ack.error ?? "Retries exhausted");
  const { options } = delivered.lane.queue;
  const acks = located.map(
    (each): PendingAck => ({
      from: each.at!.offset,
      to: each.at!.offset + 1,
      status: each.status,
      error: each.ack.error ?? "",
      decided: () => undefined,
      failed: () => undefined,
    }),
  );
  const parameters = {
    partition: delivered.lane.id,
    group: delivered.groupId,
    token: delivered.token,
    done: formatRanges(rangesOf(acks.filter((ack) => ack.status === "completed"))),
    failed: offsets("failed"),
    dead: offsets("dlq"),
    errors: [...errors("failed"), ...errors("dlq")],
    release: offsets("retry").length > 0,
    retryLimit: options.retryLimit,
    retryDelayMs: options.retryDelayMs,
  };
  return { delivered, located, acks, parameters };
}

function results(
  body: TransactionBody,
  pushes: readonly Push[],
  buried: ReadonlySet<AckItem>,
): TransactionResult[] {
  const remaining = [...pushes];
  return body.operations.map((operation): TransactionResult => {
    if (operation.type === "ack") return { type: "ack", ack: operation.ack, dlq: buried.has(operation.ack) };
    const { item, stored } = remaining.shift()!;
    if (!stored) throw new Error("a push was left undecided");
    return {
      type: "push",
      item,
      status: stored.status,
      messageId: messageId(stored.lane.id, stored.offset),
      partitionId: stored.lane.partitionId,
    };
  });
}
