/** Who holds a lane when: from an answered pop to what may have ended it. */
import {
  type Acked,
  type AckSent,
  arrivedInTime,
  type Delivery,
  entryOf,
  type HistoryEvent,
  keyOf,
  laneOf,
  leasedUntilMs,
  type Popped,
} from "./history.ts";
import type { Report } from "./rules.ts";

interface Held {
  readonly lease: string;
  /** Of its messages, those for which no ack was sent yet. */
  readonly offsets: Set<number>;
  readonly untilMs: number;
}

interface Entry {
  /** The leases under which it was delivered, in their order, and those under which an ack was sent. */
  readonly deliveredUnder: string[];
  readonly ackedUnder: Set<string>;
  /** The leases whose acks were sent when another had the message. */
  readonly tooLate: Set<string>;
  lastMs: number;
}

export function checkLeases(
  history: readonly HistoryEvent[],
  queue: string,
  group: string,
  report: Report,
): void {
  const watch = new LeaseWatch(queue, group, report);
  for (const event of history) if ("group" in event && event.group === group) watch.observe(event);
}

/** Looks at the events of one group, one by one. */
export class LeaseWatch {
  readonly #queue: string;
  readonly #group: string;
  readonly #report: Report;
  readonly #holders = new Map<string, Held>();
  readonly #entries = new Map<string, Entry>();

  constructor(queue: string, group: string, report: Report) {
    this.#queue = queue;
    this.#group = group;
    this.#report = report;
  }

  observe(event: HistoryEvent): void {
    if (event.type === "popped") this.#deliver(event);
    else if (event.type === "ack-sent") this.#send(event);
    else if (event.type === "acked") this.#finish(event);
  }

  /** What nobody has asked about since then is asked about no more. */
  forgetBefore(atMs: number): void {
    for (const [entry, { lastMs }] of this.#entries) if (lastMs < atMs) this.#entries.delete(entry);
  }

  /** Entries that are remembered. */
  get size(): number {
    return this.#entries.size;
  }

  #own(messages: readonly Delivery[]): Delivery[] {
    return messages.filter((message) => message.queue === this.#queue);
  }

  #entry(message: Delivery, atMs: number): Entry {
    const name = entryOf(message);
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = { deliveredUnder: [], ackedUnder: new Set(), tooLate: new Set(), lastMs: atMs };
      this.#entries.set(name, entry);
    }
    entry.lastMs = atMs;
    return entry;
  }

  #deliver(event: Popped): void {
    if (!arrivedInTime(event)) return;
    const lanes = new Map<string, Set<number>>();
    for (const message of this.#own(event.messages)) {
      const lane = laneOf(message);
      const offsets = lanes.get(lane);
      if (offsets) offsets.add(message.offset);
      else lanes.set(lane, new Set([message.offset]));
      this.#entry(message, event.atMs).deliveredUnder.push(event.lease);
    }
    for (const [lane, offsets] of lanes) {
      const holder = this.#holders.get(lane);
      if (holder && holder.lease !== event.lease && holder.untilMs > event.atMs)
        this.#report("overlap", `${this.#group} got ${lane} by ${event.lease} while ${holder.lease} held it`);
      this.#holders.set(lane, { lease: event.lease, offsets, untilMs: leasedUntilMs(event) });
    }
  }

  #send(event: AckSent): void {
    for (const message of this.#own(event.messages)) {
      const entry = this.#entry(message, event.atMs);
      entry.ackedUnder.add(event.lease);
      // Delivered again, so it was not finished then.
      const leases = entry.deliveredUnder;
      if (leases.includes(event.lease) && leases.at(-1) !== event.lease) entry.tooLate.add(event.lease);
      const holder = this.#holders.get(laneOf(message));
      if (holder?.lease !== event.lease) continue;
      // It may have been carried out at once, and then the lease may be over.
      holder.offsets.delete(message.offset);
      const ends = event.status === "failed" || event.status === "retry" || holder.offsets.size === 0;
      if (ends) this.#holders.delete(laneOf(message));
    }
  }

  #finish(event: Acked): void {
    for (const message of this.#own(event.messages)) {
      // Nobody else has finished it since, so this ack did.
      const { tooLate, ackedUnder } = this.#entry(message, event.atMs);
      if (tooLate.has(event.lease) && ackedUnder.size === 1)
        this.#report(
          "fencing",
          `${event.lease} acked ${keyOf(message)} for ${this.#group} after it was replaced`,
        );
    }
  }
}
