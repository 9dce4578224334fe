/**
 * The broker against a model: random operations of several producers, consumers and groups on one queue, each
 * answer compared with what a plain in-memory model of the queue says, and the database's state at the end.
 *
 * A failure prints its seed and path; QUEEN_TEST_SEED=<seed> runs the same operations again.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { messageId, parsePartitionId } from "@queen/protocol";
import fc from "fast-check";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Acknowledgment, type AckResult, HttpClient, type PopAnswer } from "../support/http.ts";
import { Load } from "../support/load.ts";

const SEED = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const PARTITIONS = ["p0", "p1", "p2"];
const GROUPS = ["a", "b"];
const RETRY_LIMIT = 1;
// A night has time for more: QUEEN_TEST_RUNS=2000.
const RUNS = Number(process.env.QUEEN_TEST_RUNS ?? 25);
const COMMANDS_MAX = 60;

// --------------------------------------------------------------------------------------------------- model

interface LeaseModel {
  readonly id: string;
  readonly group: string;
  /** Per partition the offsets that were delivered. */
  readonly delivered: ReadonlyMap<string, readonly number[]>;
}

interface CursorModel {
  readonly finished: Set<number>;
  readonly failures: Map<number, number>;
  readonly dead: Set<number>;
  lease: { readonly id: string; readonly until: number; expired: boolean } | undefined;
}

type Status = "completed" | "failed" | "dlq" | "retry";

/** What the queue should be: logs, and each group's place in them. */
class QueueModel {
  readonly logs = new Map<string, string[]>(PARTITIONS.map((partition) => [partition, []]));
  /** Refused transactions were to push to them: whether they exist without a message is the broker's matter. */
  readonly perhapsMade = new Set<string>();
  readonly #cursors = new Map<string, CursorModel>();
  readonly leases: LeaseModel[] = [];
  transactionCount = 0;

  cursor(partition: string, group: string): CursorModel {
    const key = `${group} ${partition}`;
    let cursor = this.#cursors.get(key);
    if (!cursor) {
      cursor = { finished: new Set(), failures: new Map(), dead: new Set(), lease: undefined };
      this.#cursors.set(key, cursor);
    }
    return cursor;
  }

  committed({ finished }: CursorModel): number {
    let offset = 0;
    while (finished.has(offset)) offset++;
    return offset;
  }

  /** Returns the offset, and whether the transactionId is new there. */
  push(partition: string, transactionId: string): { offset: number; isNew: boolean } {
    const log = this.logs.get(partition)!;
    const known = log.indexOf(transactionId);
    if (known >= 0) return { offset: known, isNew: false };
    log.push(transactionId);
    return { offset: log.length - 1, isNew: true };
  }

  /** Whether a pop could get something of the lane. */
  isClaimable(partition: string, group: string): boolean {
    const cursor = this.cursor(partition, group);
    if (cursor.lease && !cursor.lease.expired) return false;
    return this.committed(cursor) < this.logs.get(partition)!.length;
  }

  /** The attempts that the first unfinished message has used when it is taken now. */
  attempts(cursor: CursorModel): number {
    return (cursor.failures.get(this.committed(cursor)) ?? 0) + (cursor.lease?.expired ? 1 : 0);
  }

  /** What a pop that wants so many messages gets of the lane; undefined: nothing. */
  take(
    partition: string,
    group: string,
    budget: number,
    lease: string,
  ): { offsets: number[]; used: number } | undefined {
    if (!this.isClaimable(partition, group)) return undefined;
    const cursor = this.cursor(partition, group);
    const from = this.committed(cursor);
    const attempts = this.attempts(cursor);
    if (cursor.lease?.expired) {
      cursor.failures.set(from, attempts);
      if (attempts > RETRY_LIMIT + 1) {
        this.#bury(cursor, from);
        cursor.lease = undefined;
        return this.take(partition, group, budget, lease);
      }
    }
    const wanted = attempts > RETRY_LIMIT ? 1 : budget;
    const until = Math.min(from + wanted, this.logs.get(partition)!.length);
    cursor.lease = { id: lease, until, expired: false };
    const offsets = range(from, until).filter((offset) => !cursor.finished.has(offset));
    return { offsets, used: until - from };
  }

  /** Acks of one lease on one lane, applied together. Returns whether the lease ended, and what is dead. */
  settle(cursor: CursorModel, acks: readonly { offset: number; status: Status }[]) {
    const { finished, failures, lease } = cursor;
    const dead: number[] = [];
    let again = false;
    const each = (status: Status): number[] =>
      acks.filter((ack) => ack.status === status).map((ack) => ack.offset);
    for (const offset of each("completed")) finished.add(offset);
    for (const offset of each("failed")) {
      if (finished.has(offset)) continue;
      failures.set(offset, (failures.get(offset) ?? 0) + 1);
      if (failures.get(offset)! > RETRY_LIMIT) {
        this.#bury(cursor, offset);
        dead.push(offset);
      } else again = true;
    }
    for (const offset of each("dlq")) {
      if (finished.has(offset)) continue;
      this.#bury(cursor, offset);
      dead.push(offset);
    }
    for (const offset of [...failures.keys()]) if (finished.has(offset)) failures.delete(offset);
    const released = again || each("retry").length > 0 || this.committed(cursor) >= lease!.until;
    if (released) cursor.lease = undefined;
    return { released, dead };
  }

  #bury(cursor: CursorModel, offset: number): void {
    cursor.dead.add(offset);
    cursor.finished.add(offset);
    cursor.failures.delete(offset);
  }
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);

// ---------------------------------------------------------------------------------------------------- real

interface Real {
  readonly queue: string;
  readonly database: TestDatabase;
  readonly clients: readonly HttpClient[];
  readonly partitionIds: Map<string, string>;
}

type Command = fc.AsyncCommand<QueueModel, Real>;

const clientOf = (real: Real, seat: number): HttpClient => real.clients[seat % real.clients.length]!;

/** Reads an answer's messages per partition, in their order. */
function messagesOf(answer: PopAnswer): Map<string, { transactionIds: string[]; leases: Set<string> }> {
  const byPartition = new Map<string, { transactionIds: string[]; leases: Set<string> }>();
  for (const message of answer.messages) {
    const entry = byPartition.get(message.partition) ?? { transactionIds: [], leases: new Set() };
    entry.transactionIds.push(message.transactionId);
    entry.leases.add(message.leaseId);
    assert.equal(message.data, `payload of ${message.transactionId}`);
    byPartition.set(message.partition, entry);
  }
  return byPartition;
}

/** Compares a pop's answer with what the model gives, lane after lane in the order of the answer. */
function comparePop(
  model: QueueModel,
  real: Real,
  answer: PopAnswer,
  {
    group,
    batch,
    partitions,
    autoAck,
  }: { group: string; batch: number; partitions: number; autoAck: boolean },
): void {
  const lease = (answer.json?.leaseId as string | undefined) ?? "";
  const delivered = new Map<string, number[]>();
  let budget = batch;
  const got = messagesOf(answer);
  assert.ok(got.size <= partitions, `${got.size} partitions, asked for ${partitions}`);
  for (const [partition, { transactionIds, leases }] of got) {
    const taken = model.take(partition, group, budget, lease);
    const log = model.logs.get(partition)!;
    assert.deepEqual(
      transactionIds,
      taken?.offsets.map((offset) => log[offset]),
      `${group} at ${partition}`,
    );
    assert.deepEqual([...leases], [lease]);
    budget -= taken!.used;
    delivered.set(partition, taken!.offsets);
    const cursor = model.cursor(partition, group);
    if (autoAck) {
      assert.equal(lease, "");
      for (const offset of range(0, cursor.lease!.until)) {
        cursor.finished.add(offset);
        cursor.failures.delete(offset);
      }
      cursor.lease = undefined;
    } else assert.notEqual(lease, "");
  }
  for (const message of answer.messages) real.partitionIds.set(message.partition, message.partitionId);
  if (!autoAck && got.size > 0) model.leases.push({ id: lease, group, delivered });
}

class PushCommand implements Command {
  readonly items: readonly { partition: string; repeat: number | undefined }[];
  readonly seat: number;

  constructor(items: PushCommand["items"], seat: number) {
    this.items = items;
    this.seat = seat;
  }

  check(): boolean {
    return true;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const items = this.items.map(({ partition, repeat }) => {
      const transactionId = transactionIdFor(model, partition, repeat);
      return { queue: real.queue, partition, transactionId, payload: `payload of ${transactionId}` };
    });
    const results = await clientOf(real, this.seat).push(items);
    for (const [index, { partition, transactionId }] of items.entries()) {
      const { offset, isNew } = model.push(partition, transactionId);
      const result = results[index]!;
      assert.deepEqual(
        [result.index, result.status, result.transaction_id],
        [index, isNew ? "queued" : "duplicate", transactionId],
      );
      if (isNew) real.partitionIds.set(partition, result.partition_id!);
      assert.equal(
        result.message_id,
        messageId(parsePartitionId(real.partitionIds.get(partition)!)!, offset),
      );
    }
  }

  toString(): string {
    return `push ${JSON.stringify(this.items)} at ${this.seat}`;
  }
}

/** One that the partition has already, where `repeat` asks for it and there is one. */
function transactionIdFor(model: QueueModel, partition: string, repeat: number | undefined): string {
  const log = model.logs.get(partition)!;
  return repeat !== undefined && log.length > 0 ? log[repeat % log.length]! : `t${model.transactionCount++}`;
}

class PopNamedCommand implements Command {
  readonly partition: string;
  readonly group: string;
  readonly batch: number;
  readonly autoAck: boolean;
  readonly seat: number;

  constructor(partition: string, group: string, batch: number, autoAck: boolean, seat: number) {
    this.partition = partition;
    this.group = group;
    this.batch = batch;
    this.autoAck = autoAck;
    this.seat = seat;
  }

  check(): boolean {
    return true;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const { partition, group, batch, autoAck } = this;
    const cursor = model.cursor(partition, group);
    const isEmpty = model.logs.get(partition)!.length === 0;
    const reason = isEmpty
      ? "partition_not_found"
      : cursor.lease && !cursor.lease.expired
        ? "lease_held"
        : "no_available_partition";
    const answer = await clientOf(real, this.seat).pop(real.queue, {
      partition,
      consumerGroup: group,
      batch,
      autoAck,
    });
    comparePop(model, real, answer, { group, batch, partitions: 1, autoAck });
    if (answer.messages.length > 0) return;
    assert.equal(
      model.take(partition, group, batch, "nobody"),
      undefined,
      `${group} got nothing of ${partition}`,
    );
    assert.equal(answer.status, 204);
    const mayBeMade = isEmpty && model.perhapsMade.has(partition);
    if (mayBeMade && answer.emptyReason === "no_available_partition") return;
    assert.equal(answer.emptyReason, reason);
  }

  toString(): string {
    return `pop ${this.batch} of ${this.partition} for ${this.group}${this.autoAck ? " autoAck" : ""} at ${this.seat}`;
  }
}

class PopAnyCommand implements Command {
  readonly group: string;
  readonly batch: number;
  readonly partitions: number;
  readonly autoAck: boolean;
  readonly seat: number;

  constructor(group: string, batch: number, partitions: number, autoAck: boolean, seat: number) {
    this.group = group;
    this.batch = batch;
    this.partitions = partitions;
    this.autoAck = autoAck;
    this.seat = seat;
  }

  check(): boolean {
    return true;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const { group, batch, partitions, autoAck } = this;
    const claimable = PARTITIONS.filter((partition) => model.isClaimable(partition, group));
    // What became free at another broker, or by a clock that was turned, is found a moment later.
    const isSure = real.clients.length === 1 && claimable.some((p) => !model.cursor(p, group).lease);
    const wait = claimable.length > 0 && !isSure;
    const answer = await clientOf(real, this.seat).pop(real.queue, {
      consumerGroup: group,
      batch,
      partitions,
      autoAck,
      ...(wait ? { wait, timeout: 20_000 } : {}),
    });
    comparePop(model, real, answer, { group, batch, partitions, autoAck });
    assert.equal(answer.messages.length > 0, claimable.length > 0, `claimable: ${claimable}`);
    assert.equal(answer.status, claimable.length > 0 ? 200 : 204);
  }

  toString(): string {
    return `pop ${this.batch} of any ${this.partitions} for ${this.group}${this.autoAck ? " autoAck" : ""} at ${this.seat}`;
  }
}

/** Acks some messages of some lease: the newest, or one from long ago, with its id or without one. */
class AckCommand implements Command {
  readonly leaseFromEnd: number;
  readonly picks: readonly { pick: number; status: Status }[];
  readonly withLease: boolean;
  readonly seat: number;

  constructor(leaseFromEnd: number, picks: AckCommand["picks"], withLease: boolean, seat: number) {
    this.leaseFromEnd = leaseFromEnd;
    this.picks = picks;
    this.withLease = withLease;
    this.seat = seat;
  }

  check(model: Readonly<QueueModel>): boolean {
    return model.leases.length > 0;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const lease = leaseAt(model, this.leaseFromEnd);
    const chosen = pickMessages(lease, this.picks).map((ack) => {
      const { finished } = model.cursor(ack.partition, lease.group);
      return finished.has(ack.offset) ? { ...ack, status: "completed" as const } : ack;
    });
    const results = await clientOf(real, this.seat).ack(
      chosen.map(
        ({ partition, offset, status }): Acknowledgment => ({
          transactionId: model.logs.get(partition)![offset]!,
          partitionId: real.partitionIds.get(partition)!,
          status,
          error: "on purpose",
          ...(this.withLease ? { leaseId: lease.id } : {}),
        }),
      ),
      lease.group,
    );
    for (const partition of new Set(chosen.map((ack) => ack.partition))) {
      const acks = chosen.flatMap((ack, index) => (ack.partition === partition ? [{ ...ack, index }] : []));
      const cursor = model.cursor(partition, lease.group);
      if (!this.withLease) {
        this.#compareWithoutLease(model, cursor, acks, results);
        continue;
      }
      if (cursor.lease?.id === lease.id) {
        const open = acks.filter(({ offset }) => !cursor.finished.has(offset));
        const { released, dead } =
          open.length > 0 ? model.settle(cursor, open) : { released: false, dead: [] };
        for (const { offset, index } of open) {
          const { success, error, leaseReleased, dlq } = results[index]!;
          assert.deepEqual(
            [success, error, leaseReleased, dlq],
            [true, null, released, dead.includes(offset)],
          );
        }
        for (const { index } of acks) assert.equal(results[index]!.success, true, "finished stays finished");
        continue;
      }
      const committed = model.committed(cursor);
      // A stale lease changes nothing. What is finished below the group's place may be acked again.
      for (const { offset, index } of acks) {
        const { success, error, leaseReleased, dlq } = results[index]!;
        if (offset < committed) assert.equal(success, true, `${partition} ${offset} is finished`);
        else if (success) assert.ok(cursor.finished.has(offset), `${partition} ${offset} is not finished`);
        else assert.equal(error, "Invalid or expired lease");
        assert.deepEqual([leaseReleased, dlq], [false, false]);
      }
    }
  }

  /** Each message is looked up by itself: it must be in the lease that is held, or finished. */
  #compareWithoutLease(
    model: QueueModel,
    cursor: CursorModel,
    acks: readonly { offset: number; status: Status; index: number }[],
    results: readonly AckResult[],
  ): void {
    const until = cursor.lease?.until ?? 0;
    const held = acks.filter(({ offset }) => offset < until && !cursor.finished.has(offset));
    const { released } = held.length > 0 ? model.settle(cursor, held) : { released: false };
    for (const { offset, index } of acks) {
      const { success, error } = results[index]!;
      assert.deepEqual(
        [success, error],
        cursor.finished.has(offset) ? [true, null] : [false, "Invalid or expired lease"],
      );
    }
    assert.equal(
      acks.some(({ index }) => results[index]!.leaseReleased),
      released,
    );
  }

  toString(): string {
    return `ack ${JSON.stringify(this.picks)} of lease -${this.leaseFromEnd}${this.withLease ? "" : " without its id"} at ${this.seat}`;
  }
}

/** Completes what a lease has of one lane from one message to another, whatever is finished in between. */
class AckRangeCommand implements Command {
  readonly leaseFromEnd: number;
  readonly picks: readonly [lane: number, one: number, other: number];
  readonly seat: number;

  constructor(leaseFromEnd: number, picks: AckRangeCommand["picks"], seat: number) {
    this.leaseFromEnd = leaseFromEnd;
    this.picks = picks;
    this.seat = seat;
  }

  check(model: Readonly<QueueModel>): boolean {
    return model.leases.length > 0;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const lease = leaseAt(model, this.leaseFromEnd);
    const [lane, ...ends] = this.picks;
    const [partition, offsets] = [...lease.delivered][lane % lease.delivered.size]!;
    const [first, last] = ends
      .map((pick) => offsets[pick % offsets.length]!)
      .sort((one, other) => one - other) as [number, number];
    const id = parsePartitionId(real.partitionIds.get(partition)!)!;
    const answer = await clientOf(real, this.seat).request("POST", "/api/v1/ack/batch", {
      consumerGroup: lease.group,
      acknowledgments: [{ firstId: messageId(id, first), lastId: messageId(id, last), leaseId: lease.id }],
    });
    const [{ success, error, leaseReleased, dlq, messages }] = answer.json;
    const cursor = model.cursor(partition, lease.group);
    const acks = range(first, last + 1).map((offset) => ({ offset, status: "completed" as const }));
    const open = acks.filter(({ offset }) => !cursor.finished.has(offset));
    assert.deepEqual([dlq, messages], [false, acks.length]);
    if (open.length === 0) {
      assert.deepEqual([success, error], [true, null], "finished stays finished");
    } else if (cursor.lease?.id === lease.id) {
      const { released } = model.settle(cursor, acks);
      assert.deepEqual([success, error, leaseReleased], [true, null, released]);
    } else {
      assert.deepEqual([success, error, leaseReleased], [false, "Invalid or expired lease", false]);
    }
  }

  toString(): string {
    return `ack range ${this.picks} of lease -${this.leaseFromEnd} at ${this.seat}`;
  }
}

const leaseAt = (model: Readonly<QueueModel>, fromEnd: number): LeaseModel =>
  model.leases.at(-1 - (fromEnd % model.leases.length))!;

/** Different messages of a lease, each once. */
function pickMessages(
  lease: LeaseModel,
  picks: readonly { pick: number; status: Status }[],
): { partition: string; offset: number; status: Status }[] {
  const all = [...lease.delivered].flatMap(([partition, offsets]) =>
    offsets.map((offset) => ({ partition, offset })),
  );
  const chosen = new Map<string, { partition: string; offset: number; status: Status }>();
  for (const { pick, status } of picks) {
    const message = all[pick % all.length]!;
    const key = `${message.partition} ${message.offset}`;
    if (!chosen.has(key)) chosen.set(key, { ...message, status });
  }
  return [...chosen.values()];
}

class RenewCommand implements Command {
  readonly leaseFromEnd: number;
  readonly seat: number;

  constructor(leaseFromEnd: number, seat: number) {
    this.leaseFromEnd = leaseFromEnd;
    this.seat = seat;
  }

  check(model: Readonly<QueueModel>): boolean {
    return model.leases.length > 0;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const lease = leaseAt(model, this.leaseFromEnd);
    const [result] = (await clientOf(real, this.seat).extend(lease.id, 600)).json;
    const held = [...lease.delivered.keys()]
      .map((partition) => model.cursor(partition, lease.group))
      .filter((cursor) => cursor.lease?.id === lease.id);
    for (const cursor of held) cursor.lease!.expired = false;
    assert.deepEqual(
      [result.success, result.error],
      held.length > 0 ? [true, null] : [false, "Lease not found"],
    );
  }

  toString(): string {
    return `renew lease -${this.leaseFromEnd} at ${this.seat}`;
  }
}

/** Turns the clock for one lease. */
class ExpireCommand implements Command {
  readonly partition: string;
  readonly group: string;
  readonly seat: number;

  constructor(partition: string, group: string, seat: number) {
    this.partition = partition;
    this.group = group;
    this.seat = seat;
  }

  check(model: Readonly<QueueModel>): boolean {
    return model.cursor(this.partition, this.group).lease !== undefined;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const { partition, group } = this;
    const rows = await real.database.query(
      `update queen.partition_consumers c set lease_expires_at = clock_timestamp() - interval '1 second'
         from queen.partitions p, queen.queues q, queen.consumer_groups g
        where p.id = c.partition_id and q.id = p.queue_id and g.id = c.group_id
          and q.name = $1 and p.name = $2 and g.name = $3 and c.lease_token is not null
       returning 1`,
      [real.queue, partition, group],
    );
    assert.equal(rows.length, 1);
    const cursor = model.cursor(partition, group);
    cursor.lease!.expired = true;
    // A message whose attempts are used up is buried by the next pop of its lane, whoever sends it.
    if (model.attempts(cursor) > RETRY_LIMIT + 1) {
      await new PopNamedCommand(partition, group, 3, false, this.seat).run(model, real);
    }
  }

  toString(): string {
    return `expire ${this.partition} for ${this.group}`;
  }
}

/** Completed acks of one lease and pushes, all or nothing. */
class TransactionCommand implements Command {
  readonly leaseFromEnd: number;
  readonly picks: readonly number[];
  readonly pushes: readonly { partition: string; repeat: number | undefined }[];
  readonly seat: number;

  constructor(
    leaseFromEnd: number,
    picks: readonly number[],
    pushes: TransactionCommand["pushes"],
    seat: number,
  ) {
    this.leaseFromEnd = leaseFromEnd;
    this.picks = picks;
    this.pushes = pushes;
    this.seat = seat;
  }

  check(model: Readonly<QueueModel>): boolean {
    return model.leases.length > 0;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    const lease = leaseAt(model, this.leaseFromEnd);
    const acks = pickMessages(
      lease,
      this.picks.map((pick) => ({ pick, status: "completed" })),
    ).filter(({ partition, offset }) => !model.cursor(partition, lease.group).finished.has(offset));
    const pushes = this.pushes.map(({ partition, repeat }) => ({
      partition,
      transactionId: transactionIdFor(model, partition, repeat),
    }));
    const isHeld = acks.every(({ partition }) => model.cursor(partition, lease.group).lease?.id === lease.id);
    const answer = await clientOf(real, this.seat).transaction([
      ...acks.map(({ partition, offset }) => ({
        type: "ack",
        transactionId: model.logs.get(partition)![offset]!,
        partitionId: real.partitionIds.get(partition)!,
        consumerGroup: lease.group,
        leaseId: lease.id,
      })),
      {
        type: "push",
        items: pushes.map(({ partition, transactionId }) => ({
          queue: real.queue,
          partition,
          transactionId,
          payload: `payload of ${transactionId}`,
        })),
      },
    ]);
    assert.deepEqual([answer.status, answer.json.success], isHeld ? [200, true] : [409, false]);
    if (!isHeld) {
      for (const { partition } of pushes) model.perhapsMade.add(partition);
      return;
    }
    for (const partition of new Set(acks.map((ack) => ack.partition))) {
      model.settle(
        model.cursor(partition, lease.group),
        acks.filter((ack) => ack.partition === partition),
      );
    }
    for (const [index, { partition, transactionId }] of pushes.entries()) {
      const { offset, isNew } = model.push(partition, transactionId);
      const result = answer.json.results[acks.length + index];
      assert.deepEqual([result.type, result.status], ["push", isNew ? "queued" : "duplicate"]);
      real.partitionIds.set(partition, result.partitionId);
      assert.equal(result.messageId, messageId(parsePartitionId(result.partitionId)!, offset));
    }
  }

  toString(): string {
    return `transaction of lease -${this.leaseFromEnd}: ${JSON.stringify(this.picks)} and ${JSON.stringify(this.pushes)} at ${this.seat}`;
  }
}

/** What the database holds in the end is what the model holds. */
async function compareState(model: QueueModel, { database, queue }: Real): Promise<void> {
  const log = await database.query(
    `select p.name, m.message_offset as "offset", m.transaction_id
       from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by p.name, m.message_offset`,
    [queue],
  );
  for (const partition of PARTITIONS) {
    assert.deepEqual(
      log.filter((row) => row.name === partition).map((row) => [row.offset, row.transaction_id]),
      model.logs.get(partition)!.map((transactionId, offset) => [offset, transactionId]),
    );
  }
  const cursors = await database.query(
    `select p.name as partition, g.name as "group", c.committed, c.lease_until, c.failures,
            c.lease_token is not null as leased,
            array(select o from generate_series(0, p.next_offset - 1) as o
                   where o < c.committed or c.acked @> o order by o) as finished,
            array(select d.message_offset from queen.dead_letters d
                   where d.partition_id = p.id and d.group_id = g.id order by 1) as dead
       from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.consumer_groups g on g.id = c.group_id join queen.queues q on q.id = p.queue_id
      where q.name = $1`,
    [queue],
  );
  const sorted = (offsets: Iterable<number>): number[] => [...offsets].sort((a, b) => a - b);
  for (const row of cursors) {
    if (!PARTITIONS.includes(row.partition)) continue;
    const cursor = model.cursor(row.partition, row.group);
    const failures = Object.entries((row.failures ?? {}) as Record<string, { n: number }>)
      .map(([offset, { n }]) => [Number(offset), n] as const)
      .filter(([offset]) => offset >= row.committed);
    assert.deepEqual(
      { ...row, failures: new Map(failures) },
      {
        partition: row.partition,
        group: row.group,
        committed: model.committed(cursor),
        lease_until: cursor.lease?.until ?? null,
        failures: new Map([...cursor.failures].sort(([a], [b]) => a - b)),
        leased: cursor.lease !== undefined,
        finished: sorted(cursor.finished),
        dead: sorted(cursor.dead),
      },
    );
  }
}

const partition = fc.constantFrom(...PARTITIONS);
const group = fc.constantFrom(...GROUPS);
const seat = fc.nat({ max: 1 });
const batch = fc.integer({ min: 1, max: 6 });
const autoAck = fc.boolean().chain((maybe) => (maybe ? fc.boolean() : fc.constant(false)));
const lease = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: 12 }) },
);
const item = fc.record({ partition, repeat: fc.option(fc.nat({ max: 30 }), { nil: undefined, freq: 2 }) });
const status = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Status>("completed") },
  { weight: 2, arbitrary: fc.constant<Status>("failed") },
  { weight: 1, arbitrary: fc.constantFrom<Status>("retry", "dlq") },
);
const picks = fc.array(fc.record({ pick: fc.nat({ max: 20 }), status }), { minLength: 1, maxLength: 5 });
const completed = fc.array(
  fc.record({ pick: fc.nat({ max: 20 }), status: fc.constant<Status>("completed") }),
  {
    minLength: 1,
    maxLength: 8,
  },
);

const commands = fc.commands(
  [
    fc.tuple(fc.array(item, { minLength: 1, maxLength: 5 }), seat).map((args) => new PushCommand(...args)),
    fc.tuple(fc.array(item, { minLength: 1, maxLength: 5 }), seat).map((args) => new PushCommand(...args)),
    fc.tuple(partition, group, batch, autoAck, seat).map((args) => new PopNamedCommand(...args)),
    fc
      .tuple(group, batch, fc.integer({ min: 1, max: 3 }), autoAck, seat)
      .map((args) => new PopAnyCommand(...args)),
    fc.tuple(lease, picks, fc.constant(true), seat).map((args) => new AckCommand(...args)),
    fc.tuple(lease, completed, fc.constant(true), seat).map((args) => new AckCommand(...args)),
    fc.tuple(lease, completed, fc.constant(false), seat).map((args) => new AckCommand(...args)),
    fc
      .tuple(lease, fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 9 }), fc.nat({ max: 9 })), seat)
      .map((args) => new AckRangeCommand(...args)),
    fc.tuple(lease, seat).map((args) => new RenewCommand(...args)),
    fc.tuple(partition, group, seat).map((args) => new ExpireCommand(...args)),
    fc
      .tuple(
        lease,
        fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 4 }),
        fc.array(item, { minLength: 1, maxLength: 3 }),
        seat,
      )
      .map((args) => new TransactionCommand(...args)),
  ],
  { maxCommands: COMMANDS_MAX, size: "max" },
);

describe("the broker does what the model says", () => {
  let database: TestDatabase;
  let brokers: BrokerProcess[];
  let clients: HttpClient[];
  let runs = 0;

  before(async () => {
    database = await createDatabase();
    const env = { NUM_WORKERS: "1", POP_WAIT_MAX_INTERVAL_MS: "50" };
    brokers = await Promise.all([0, 1].map(() => startBrokerProcess({ databaseUrl: database.url, env })));
    clients = brokers.map((broker) => new HttpClient(broker.url));
  });

  after(async () => {
    for (const client of clients) client.close();
    await Promise.all(brokers.map((broker) => broker.stop()));
    await database.drop();
    for (const broker of brokers) assert.doesNotMatch(broker.output(), /uncaught|http\.failed/);
  });

  for (const count of [1, 2]) {
    test(`with ${count === 1 ? "one broker" : "two brokers"}`, async () => {
      await fc.assert(
        fc.asyncProperty(commands, async (sequence) => {
          const model = new QueueModel();
          const real: Real = {
            queue: `run-${++runs}`,
            database,
            clients: clients.slice(0, count),
            partitionIds: new Map(),
          };
          await clients[0]!.configure(real.queue, { leaseTime: 600, retryLimit: RETRY_LIMIT, retryDelay: 0 });
          await fc.asyncModelRun(() => ({ model, real }), sequence);
          await compareState(model, real);
        }),
        { numRuns: RUNS, seed: SEED, interruptAfterTimeLimit: RUNS * 5_000 },
      );
    });
  }

  test("consumers that ack in parts, fail, give back and die, all at once, break no promise", async () => {
    const load = new Load({
      database,
      urls: () => brokers.map((broker) => broker.url),
      queue: "concurrent",
      partitions: 5,
      groups: GROUPS,
      producers: 3,
      itemsPerPush: 5,
      consumersPerGroup: 5,
      leaseSeconds: 2,
      chaos: true,
      seed: SEED,
    });
    await load.start();
    await load.progress(1_500);
    assert.deepEqual((await load.finish()).slice(0, 20), [], `seed ${SEED}`);
    assert.deepEqual(load.surprises.slice(0, 20), [], `seed ${SEED}`);
  });
});
