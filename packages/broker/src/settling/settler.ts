/**
 * The settler applies acks: by lease, many messages of a lease in one row update, one update of a lease in
 * flight at a time. A lease that this worker did not serve, or no longer remembers, is read from the database.
 */
import { BrokerError, type Lease, parseLeaseId, parsePartitionId } from "@queen/protocol";
import type { Batcher } from "../batching/batcher.ts";
import type { Directory } from "../lanes/directory.ts";
import type { Lane } from "../lanes/lane.ts";
import type { AckRange } from "../operations/ack-body.ts";
import { countWithin, inRanges, type OffsetSpan, parseRanges } from "../operations/offset-ranges.ts";
import { transactionIdJson } from "../operations/segment.ts";
import { transactionKeyBytes } from "../operations/transaction-key.ts";
import type { Session } from "../postgres/session.ts";
import * as statements from "../postgres/statements.ts";
import type { OperationSpan } from "../tracing.ts";
import { type AckOutcome, type AckStatus, Delivered, type DeliveredLeases } from "./delivered.ts";
import type { SettleResult } from "./settle-kind.ts";

export interface AckTarget {
  readonly transactionId: string;
  readonly transactionIdJson: string;
  readonly partitionId: string;
  readonly leaseId: string | undefined;
}

export interface Ack extends AckTarget {
  readonly status: AckStatus;
  readonly error: string | undefined;
}

export interface AckResult extends AckOutcome {
  readonly lane: Lane | undefined;
  /** What the messages carry, for an ack that has a span. */
  readonly traceparents?: readonly (string | undefined)[] | undefined;
}

export interface SettlerOptions {
  readonly directory: Directory;
  readonly leases: DeliveredLeases;
  readonly settles: Batcher<Delivered, SettleResult>;
  readonly use: <T>(work: (session: Session) => Promise<T>) => Promise<T>;
  /** The lane is free for the group; what is left may be delivered after a pause. */
  readonly released: (
    lane: Lane,
    groupId: number,
    committed: number,
    pauseMs: number,
    servedHere: boolean,
  ) => void;
  readonly now: () => number;
  readonly busyPauseMs: number;
  readonly patienceMs: number;
}

export const LEASE_LOST = "Invalid or expired lease";
export const MESSAGE_NOT_FOUND = "Message not found";
const FAILED_WITHOUT_REASON = "Retries exhausted";
// An ack of a message that is no longer leased is looked for among so many messages before the group's place.
const LOOK_BACK_MESSAGES = 200_000;

/** Where a message to be acked is, or why it can't be. */
export type Located = { readonly delivered: Delivered; readonly offset: number } | AckResult;

/** A group's place in a lane, and what is under lease there if the lease that was asked for is held. */
interface Place {
  readonly lane: Lane;
  readonly committed: number;
  readonly acked: string | null;
  readonly delivered: Delivered | undefined;
}

export class Settler {
  readonly #options: SettlerOptions;
  readonly #groupIds = new Map<string, number>();

  constructor(options: SettlerOptions) {
    this.#options = options;
    options.directory.onQueueGone(() => this.#groupIds.clear());
  }

  ack(ack: Ack, groupName: string, span?: OperationSpan): AckResult | Promise<AckResult> {
    const known = this.#locateKnown(ack, groupName);
    if (known) return "offset" in known ? this.#settleOne(known.delivered, known.offset, ack, span) : known;
    return this.locate(ack, groupName).then((located) =>
      "offset" in located ? this.#settleOne(located.delivered, located.offset, ack, span) : located,
    );
  }

  /** Completes what a lease has from one offset to before another. */
  async ackRange(range: AckRange, span?: OperationSpan): Promise<AckResult> {
    const { partition, group, from, to } = range;
    const lease = parseLeaseId(range.leaseId);
    let delivered = this.#heldHere(lease, partition, group);
    if (!delivered) {
      const place = await this.#placeOf(partition, group, lease?.token ?? null);
      if (!("committed" in place)) return place;
      const { lane, committed } = place;
      const finished = countWithin([0, committed, ...parseRanges(place.acked)], from, to);
      if (finished === to - from) return { success: true, error: null, released: false, dlq: false, lane };
      delivered = place.delivered;
      if (!delivered) return leaseLost(lane);
    }
    if (to > delivered.to) return leaseLost(delivered.lane);
    return this.#settleSpan(delivered, range, "completed", undefined, span);
  }

  /**
   * Reads the leases of these acks that this worker does not know, once each: then the acks of one lease are
   * found in memory and applied together, as where they were served. Undefined: there is nothing to read.
   */
  learn(acks: readonly (AckTarget & { readonly group: string })[]): Promise<unknown> | undefined {
    const unknown = new Map<string, AckTarget & { readonly group: string }>();
    let last: AckTarget | undefined;
    for (const ack of acks) {
      if (ack.leaseId === last?.leaseId && ack.partitionId === last?.partitionId) continue;
      last = ack;
      const lease = ack.leaseId === undefined ? undefined : parseLeaseId(ack.leaseId);
      const partition = parsePartitionId(ack.partitionId);
      if (!lease || partition === undefined || this.#options.leases.find(lease.token, partition)) continue;
      unknown.set(`${partition} ${lease.token} ${ack.group}`, ack);
    }
    if (unknown.size === 0 || unknown.size === acks.length) return undefined;
    return Promise.all([...unknown.values()].map((ack) => this.locate(ack, ack.group)));
  }

  #settleOne(delivered: Delivered, offset: number, ack: Ack, span?: OperationSpan): Promise<AckResult> {
    return this.#settleSpan(delivered, { from: offset, to: offset + 1 }, ack.status, ack.error, span);
  }

  #settleSpan(
    delivered: Delivered,
    { from, to }: OffsetSpan,
    status: AckStatus,
    reason: string | undefined,
    span: OperationSpan | undefined,
  ): Promise<AckResult> {
    const { lane } = delivered;
    return new Promise((resolve, reject) => {
      delivered.pending.push({
        from,
        to,
        status,
        error: reason ?? FAILED_WITHOUT_REASON,
        span,
        decided: ({ success, error, released, dlq }) =>
          resolve({
            success,
            error,
            released,
            dlq,
            lane,
            traceparents: span && delivered.traceparentsIn({ from, to }),
          }),
        failed: reject,
      });
      if (!delivered.settling) void this.#settle(delivered);
    });
  }

  /** Finishes the places in a lease that hold no message any more; nobody will ack them. */
  async finishGone(delivered: Delivered): Promise<void> {
    await Promise.all(
      delivered
        .goneOffsets()
        .map((offset) =>
          this.#settleSpan(delivered, { from: offset, to: offset + 1 }, "completed", undefined, undefined),
        ),
    );
  }

  /** Gives a lease back: its messages are free for others, and nothing is counted. */
  async giveBack(delivered: Delivered): Promise<void> {
    delivered.release = true;
    if (!delivered.settling) await this.#settle(delivered);
  }

  /** From memory, where this worker delivered the message itself. */
  #locateKnown(ack: AckTarget, groupName: string): Located | undefined {
    const partition = parsePartitionId(ack.partitionId);
    if (partition === undefined) return notFound(undefined);
    if (ack.leaseId === undefined) return undefined;
    const delivered = this.#heldHere(parseLeaseId(ack.leaseId), partition, groupName);
    const offset = delivered?.offsetOf(ack.transactionIdJson);
    return delivered && offset !== undefined ? { delivered, offset } : undefined;
  }

  #heldHere(lease: Lease | undefined, partition: number, groupName: string): Delivered | undefined {
    const delivered = lease && this.#options.leases.find(lease.token, partition);
    return delivered?.groupName === groupName ? delivered : undefined;
  }

  async locate(ack: AckTarget, groupName: string): Promise<Located> {
    const known = this.#locateKnown(ack, groupName);
    if (known) return known;
    const token = ack.leaseId === undefined ? undefined : (parseLeaseId(ack.leaseId)?.token ?? null);
    const place = await this.#placeOf(parsePartitionId(ack.partitionId)!, groupName, token);
    if (!("committed" in place)) return place;
    const { lane, committed, acked, delivered } = place;
    const leased = delivered?.offsetOf(ack.transactionIdJson);
    if (delivered && leased !== undefined) return { delivered, offset: leased };
    // Not in a lease that is held: it may be finished already, and then acking it again is no error.
    const offset = await this.#find(lane, ack, committed);
    if (offset === undefined) return notFound(lane);
    const isFinished = offset < committed || inRanges(parseRanges(acked), offset);
    return isFinished ? { success: true, error: null, released: false, dlq: false, lane } : leaseLost(lane);
  }

  /** From the database. `wanted` undefined: whatever lease is held; null: none can be. */
  async #placeOf(
    partition: number,
    groupName: string,
    wanted: number | null | undefined,
  ): Promise<Place | AckResult> {
    const lane = await this.#options.directory.openById(partition);
    if (!lane) return notFound(undefined);
    const groupId = await this.#groupId(lane, groupName);
    if (groupId === undefined) return notFound(lane);
    const rows = await this.#options.use((session) =>
      session.run(statements.readLeases, [[lane.id], [groupId]]),
    );
    const row = rows[0];
    if (!row) {
      // The group may have been deleted and made again.
      this.#groupIds.delete(`${lane.queue.id}/${groupName}`);
      return (await this.#groupId(lane, groupName)) === groupId
        ? notFound(lane)
        : this.#placeOf(partition, groupName, wanted);
    }
    lane.nextOffset = Math.max(lane.nextOffset, row.nextOffset);
    const { committed, acked, token } = row;
    if (token === null || (wanted !== undefined && wanted !== token))
      return { lane, committed, acked, delivered: undefined };
    let delivered = this.#options.leases.find(token, lane.id);
    if (!delivered) {
      delivered = new Delivered({
        token,
        lane,
        groupId,
        groupName,
        from: committed,
        to: row.leaseUntil!,
        segments: rows.flatMap((each) => (each.segment ? [each.segment] : [])),
        servedHere: false,
      });
      this.#options.leases.add(delivered);
    }
    return { lane, committed, acked, delivered };
  }

  async #find(lane: Lane, ack: AckTarget, committed: number): Promise<number | undefined> {
    const rows = await this.#options.use((session) =>
      session.run(statements.findMessages, [
        [lane.id],
        [transactionKeyBytes(ack.transactionId)],
        [Math.max(0, committed - LOOK_BACK_MESSAGES)],
      ]),
    );
    return rows.find((row) => transactionIdJson(row.fragment) === ack.transactionIdJson)?.atOffset;
  }

  async #groupId(lane: Lane, groupName: string): Promise<number | undefined> {
    const name = `${lane.queue.id}/${groupName}`;
    const known = this.#groupIds.get(name);
    if (known !== undefined) return known;
    const [id] = await this.#options.use((session) =>
      session.run(statements.findGroup, [lane.id, groupName]),
    );
    if (id !== undefined) this.#groupIds.set(name, id);
    return id;
  }

  /** Sends what waits on a lease, until nothing does. */
  async #settle(delivered: Delivered): Promise<void> {
    delivered.settling = true;
    const deadlineAtMs = this.#options.now() + this.#options.patienceMs;
    try {
      while (delivered.pending.length > 0 || delivered.release) {
        const result = await this.#options.settles.submit(delivered);
        if (result.status === statements.SETTLE.busy) {
          delivered.pending = [...result.acks, ...delivered.pending];
          delivered.release ||= result.release;
          if (this.#options.now() > deadlineAtMs) {
            throw new BrokerError(
              "OVERLOADED",
              `The place of ${delivered.groupName} in ${delivered.lane.name} is held by another transaction. Try again.`,
            );
          }
          await new Promise((resolve) => setTimeout(resolve, this.#options.busyPauseMs));
          continue;
        }
        this.settled(delivered, result);
      }
    } catch (error) {
      delivered.release = false;
      for (const ack of delivered.pending.splice(0)) ack.failed(error as Error);
    } finally {
      delivered.settling = false;
    }
  }

  /** Tells what became of acks that were applied, or refused. */
  settled(delivered: Delivered, result: SettleResult): void {
    const { lane } = delivered;
    const isDone = result.status === statements.SETTLE.done;
    // A call whose answer was lost is made again, and then finds its lease ended by itself.
    const isOver = !isDone || result.released || result.committed >= delivered.to;
    if (isOver) {
      this.#options.leases.remove(delivered);
      const again = result.acks.some((ack) => ack.status === "failed" && !result.buried.includes(ack.from));
      const pauseMs = again ? lane.queue.options.retryDelayMs : 0;
      this.#options.released(lane, delivered.groupId, result.committed, pauseMs, delivered.servedHere);
    }
    for (const ack of result.acks) {
      const success = isDone || (result.status === statements.SETTLE.stale && ack.to <= result.committed);
      const dlq = result.buried.includes(ack.from);
      const error = success
        ? null
        : result.status === statements.SETTLE.gone
          ? MESSAGE_NOT_FOUND
          : LEASE_LOST;
      ack.decided({ success, error, released: isDone && result.released, dlq });
    }
  }
}

const refused = (lane: Lane | undefined, error: string): AckResult => ({
  success: false,
  error,
  released: false,
  dlq: false,
  lane,
});
const notFound = (lane: Lane | undefined): AckResult => refused(lane, MESSAGE_NOT_FOUND);
const leaseLost = (lane: Lane): AckResult => refused(lane, LEASE_LOST);
