/** Who holds a lane when: from an answered pop to what may have ended it. */
import {
  arrivedInTime,
  type Delivery,
  entryOf,
  type HistoryEvent,
  keyOf,
  laneOf,
  leasedUntilMs,
} from "./history.ts";
import type { Report } from "./rules.ts";

interface Held {
  readonly lease: string;
  /** Of its messages, those for which no ack was sent yet. */
  readonly offsets: Set<number>;
  readonly untilMs: number;
}

export function checkLeases(
  history: readonly HistoryEvent[],
  queue: string,
  group: string,
  report: Report,
): void {
  const holders = new Map<string, Held>();
  const deliveredUnder = new Map<string, string[]>(); // by entry: its leases, in their order
  const ackedUnder = new Map<string, Set<string>>(); // by entry: the leases under which an ack was sent
  const tooLate = new Set<string>(); // lease and entry of acks that were sent when another had the message
  const own = (messages: readonly Delivery[]): Delivery[] =>
    messages.filter((message) => message.queue === queue);

  for (const event of history) {
    if (!("group" in event) || event.group !== group || event.type === "abandoned") continue;
    if (event.type === "popped") {
      if (!arrivedInTime(event)) continue;
      const lanes = new Map<string, Set<number>>();
      for (const message of own(event.messages)) {
        const lane = laneOf(message);
        lanes.set(lane, (lanes.get(lane) ?? new Set()).add(message.offset));
        const leases = deliveredUnder.get(entryOf(message));
        if (leases) leases.push(event.lease);
        else deliveredUnder.set(entryOf(message), [event.lease]);
      }
      for (const [lane, offsets] of lanes) {
        const holder = holders.get(lane);
        if (holder && holder.lease !== event.lease && holder.untilMs > event.atMs)
          report("overlap", `${group} got ${lane} by ${event.lease} while ${holder.lease} held it`);
        holders.set(lane, { lease: event.lease, offsets, untilMs: leasedUntilMs(event) });
      }
    }
    if (event.type === "ack-sent") {
      for (const message of own(event.messages)) {
        const entry = entryOf(message);
        ackedUnder.set(entry, (ackedUnder.get(entry) ?? new Set()).add(event.lease));
        // Delivered again, so it was not finished then.
        const leases = deliveredUnder.get(entry) ?? [];
        if (leases.includes(event.lease) && leases.at(-1) !== event.lease)
          tooLate.add(`${event.lease} ${entry}`);
        const holder = holders.get(laneOf(message));
        if (holder?.lease !== event.lease) continue;
        // It may have been carried out at once, and then the lease may be over.
        holder.offsets.delete(message.offset);
        const ends = event.status === "failed" || event.status === "retry" || holder.offsets.size === 0;
        if (ends) holders.delete(laneOf(message));
      }
    }
    if (event.type === "acked") {
      for (const message of own(event.messages)) {
        // Nobody else has finished it since, so this ack did.
        const entry = entryOf(message);
        if (tooLate.has(`${event.lease} ${entry}`) && ackedUnder.get(entry)?.size === 1)
          report("fencing", `${event.lease} acked ${keyOf(message)} for ${group} after it was replaced`);
      }
    }
  }
}
