/** What one group gets of one queue, looked at delivery by delivery. */
import {
  type Acked,
  type AckSent,
  arrivedInTime,
  type HistoryEvent,
  laneOf,
  type Popped,
} from "./history.ts";
import { numberedOf, type Pushed } from "./numbered.ts";
import type { Report } from "./rules.ts";

/** An entry of the log that was delivered: finished lately, or not yet. */
interface Entry {
  readonly value: string;
  /** Of its last delivery. */
  lease: string;
  /** Whether somebody said to have finished it, and when the answer came. */
  isAckSent: boolean;
  finishedAtMs: number;
}

interface Lane {
  /** Every entry below was delivered. */
  nextOffset: number;
  /** By source: every number below was delivered. */
  readonly nextNumbers: Map<string, number>;
  /** Numbers below, that were passed over. */
  readonly missing: Set<string>;
  readonly entries: Map<number, Entry>;
  /** Leases that consumers gave back, or let run out. */
  readonly ended: Map<string, number>;
}

export class OnlineReader {
  readonly group: string;
  readonly #queue: string;
  readonly #pushed: ReadonlyMap<string, ReadonlyMap<string, Pushed>>;
  readonly #report: Report;
  readonly #lanes = new Map<string, Lane>();
  redelivered = 0;

  constructor(
    queue: string,
    group: string,
    pushed: ReadonlyMap<string, ReadonlyMap<string, Pushed>>,
    report: Report,
  ) {
    this.#queue = queue;
    this.group = group;
    this.#pushed = pushed;
    this.#report = report;
  }

  get size(): number {
    let size = 0;
    for (const { entries } of this.#lanes.values()) size += entries.size;
    return size;
  }

  observe(event: HistoryEvent): void {
    if (event.type === "popped") this.#deliver(event);
    else if (event.type === "ack-sent") this.#send(event);
    else if (event.type === "acked") this.#acked(event);
    else if (event.type === "abandoned")
      for (const message of event.messages) this.#lane(message)?.ended.set(event.lease, event.atMs);
  }

  /** What was finished before then: should it come again, it is known by its offset. */
  forgetBefore(atMs: number): void {
    for (const { entries, ended } of this.#lanes.values()) {
      for (const [offset, { finishedAtMs }] of entries) if (finishedAtMs < atMs) entries.delete(offset);
      for (const [lease, endedAtMs] of ended) if (endedAtMs < atMs) ended.delete(lease);
    }
  }

  finish(isDead: (group: string, lane: string, offset: number) => boolean): void {
    for (const [name, sources] of this.#pushed) {
      if (!name.startsWith(`${this.#queue}/`)) continue;
      const lane = this.#lanes.get(name);
      for (const [source, { answered }] of sources) {
        const got = lane?.nextNumbers.get(source) ?? 0;
        if (got < answered)
          this.#report(
            "lost",
            `${this.group} never got ${name}/${source}:${got} and ${answered - got - 1} behind it`,
          );
      }
      for (const value of lane?.missing ?? [])
        this.#report("lost", `${this.group} never got ${name}/${value}`);
      for (const [offset, { value, isAckSent, finishedAtMs }] of lane?.entries ?? [])
        if (!isAckSent && finishedAtMs === Infinity && !isDead(this.group, name, offset))
          this.#report(
            "finished without ack",
            `${this.group} has finished ${name}/${value} (${offset}), which nobody acked`,
          );
    }
  }

  #lane(message: { queue: string; partition: string }): Lane | undefined {
    return message.queue === this.#queue ? this.#lanes.get(laneOf(message)) : undefined;
  }

  #deliver(event: Popped): void {
    for (const message of event.messages) {
      if (message.queue !== this.#queue) continue;
      const name = laneOf(message);
      let lane = this.#lanes.get(name);
      if (!lane) {
        lane = {
          nextOffset: 0,
          nextNumbers: new Map(),
          missing: new Set(),
          entries: new Map(),
          ended: new Map(),
        };
        this.#lanes.set(name, lane);
      }
      const { offset, value } = message;
      if (offset >= lane.nextOffset) this.#first(name, lane, offset, value);
      else this.#again(name, lane, offset, value, event);
      const known = lane.entries.get(offset);
      if (known) known.lease = event.lease;
      else lane.entries.set(offset, { value, lease: event.lease, isAckSent: false, finishedAtMs: Infinity });
    }
  }

  #first(name: string, lane: Lane, offset: number, value: string): void {
    if (offset > lane.nextOffset)
      this.#report("skip", `${this.group} got ${name}@${offset} before ${name}@${lane.nextOffset}`);
    lane.nextOffset = offset + 1;
    const { source, number } = numberedOf(value);
    const next = lane.nextNumbers.get(source) ?? 0;
    if (!(number < (this.#pushed.get(name)?.get(source)?.sent ?? 0)))
      this.#report("phantom", `${this.group} got ${name}/${value}, which was never pushed`);
    else if (lane.missing.delete(value))
      this.#report("log order", `${name}/${value} stands at ${offset}, behind what was pushed later`);
    else if (number < next)
      this.#report("duplicate entry", `${name}/${value} is at ${offset}, and somewhere before`);
    else {
      for (let missing = next; missing < number; missing++) lane.missing.add(`${source}:${missing}`);
      lane.nextNumbers.set(source, number + 1);
    }
  }

  #again(name: string, lane: Lane, offset: number, value: string, event: Popped): void {
    const known = lane.entries.get(offset);
    if (
      !known ||
      known.finishedAtMs < event.sentAtMs ||
      (known.finishedAtMs < Infinity && arrivedInTime(event))
    )
      this.#report(
        "redelivered after ack",
        `${this.group} got ${name}/${value} (${offset}) after its ack was answered`,
      );
    if (!known) return;
    if (known.value !== value)
      this.#report("phantom", `${this.group} got ${name}/${value} at ${offset}, where ${known.value} was`);
    if (!lane.ended.has(known.lease)) this.redelivered++;
  }

  #send(event: AckSent): void {
    const isDone = event.status === "completed" || event.status === "dlq";
    for (const message of event.messages) {
      const lane = this.#lane(message);
      if (!lane) continue;
      const entry = lane.entries.get(message.offset);
      if (!isDone) lane.ended.set(event.lease, event.atMs);
      else if (entry) entry.isAckSent = true;
    }
  }

  #acked(event: Acked): void {
    for (const message of event.status === "completed" ? event.messages : (event.dead ?? [])) {
      const entry = this.#lane(message)?.entries.get(message.offset);
      if (entry) entry.finishedAtMs = Math.min(entry.finishedAtMs, event.atMs);
    }
  }
}
