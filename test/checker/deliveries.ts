/** What a group got: everything, in the log's order, nothing again that it has finished. */
import type { FinalState, Reader } from "./final-state.ts";
import {
  type Abandoned,
  type AckSent,
  arrivedInTime,
  entryOf,
  type HistoryEvent,
  keyOf,
  laneOf,
  type Popped,
} from "./history.ts";
import { isRefused, type Push } from "./pushes.ts";
import type { Report } from "./rules.ts";

/** The redeliveries that no consumer asked for. */
export function checkDeliveries(
  history: readonly HistoryEvent[],
  { queue, group, from = "beginning" }: Reader,
  state: FinalState,
  pushes: ReadonlyMap<string, Push>,
  report: Report,
): number {
  const log = new Map(
    state.log.filter((entry) => entry.queue === queue).map((entry) => [entryOf(entry), entry]),
  );
  const dead = new Set(
    state.deadLetters.filter((letter) => letter.queue === queue && letter.group === group).map(entryOf),
  );
  const delivered = new Map<string, string>(); // by entry: the lease of its last delivery
  const acked = new Set<string>(); // entries that somebody said to have finished
  const finished = new Map<string, number>(); // by entry: when its ack was answered
  const ended = new Set<string>(); // lease and lane of what consumers gave back or let run out
  const nextOffsets = new Map<string, number>(); // by lane: every entry below was delivered
  const starts = new Map<string, number>();
  let redeliveries = 0;

  const deliver = (event: Popped): void => {
    for (const message of event.messages) {
      if (message.queue !== queue) continue;
      const key = keyOf(message);
      const entry = entryOf(message);
      const lane = laneOf(message);
      const push = pushes.get(key);
      if (!push) report("phantom", `${group} got ${key}, which was never pushed`);
      else if (isRefused(push)) report("phantom", `${group} got ${key}, which was refused`);
      else if (message.offset >= (state.starts?.[lane] ?? 0) && log.get(entry)?.value !== message.value)
        report("phantom", `${group} got ${key} at ${message.offset}, where the log has another message`);
      const finishedAtMs = finished.get(entry);
      if (finishedAtMs !== undefined && (finishedAtMs < event.sentAtMs || arrivedInTime(event)))
        report("redelivered after ack", `${group} got ${key} after its ack was answered`);
      const before = delivered.get(entry);
      if (before !== undefined) {
        if (!ended.has(`${before} ${lane}`)) redeliveries++;
      } else order(message.offset, lane, key);
      delivered.set(entry, event.lease);
    }
  };
  const order = (offset: number, lane: string, key: string): void => {
    const start = from === "beginning" ? (state.starts?.[lane] ?? 0) : offset;
    if (!starts.has(lane)) starts.set(lane, start);
    let next = nextOffsets.get(lane) ?? Math.min(offset, start);
    if (offset < next) report("delivery order", `${group} got ${key} (${offset}) after ${lane}@${next - 1}`);
    for (; next < offset; next++) {
      const missing = `${lane}@${next}`;
      if (log.has(missing) && !delivered.has(missing) && !dead.has(missing))
        report("skip", `${group} got ${key} (${offset}) before ${missing}`);
    }
    nextOffsets.set(lane, Math.max(next, offset + 1));
  };
  const giveBack = (event: AckSent | Abandoned): void => {
    for (const message of event.messages) ended.add(`${event.lease} ${laneOf(message)}`);
  };

  for (const event of history) {
    if (!("group" in event) || event.group !== group) continue;
    if (event.type === "popped") deliver(event);
    else if (event.type === "ack-sent" && (event.status === "completed" || event.status === "dlq"))
      for (const message of event.messages) acked.add(entryOf(message));
    else if (event.type === "ack-sent" || event.type === "abandoned") giveBack(event);
    else {
      const done = event.status === "completed" ? event.messages : (event.dead ?? []);
      for (const message of done) finished.set(entryOf(message), event.atMs);
    }
  }

  for (const [entry, { offset, value }] of log) {
    const lane = entry.slice(0, entry.lastIndexOf("@"));
    if (delivered.has(entry) || dead.has(entry) || offset < (starts.get(lane) ?? 0)) continue;
    // In a lane that it never met, a group that starts anywhere may have started behind.
    if (from === "first delivery" && !starts.has(lane)) continue;
    report("lost", `${group} never got ${lane}/${value} (${offset})`);
  }
  const cursors = (state.cursors ?? []).filter((cursor) => cursor.queue === queue && cursor.group === group);
  const byLane = new Map(cursors.map((cursor) => [laneOf(cursor), cursor]));
  for (const [entry, { offset, value }] of log) {
    const lane = entry.slice(0, entry.lastIndexOf("@"));
    const cursor = byLane.get(lane);
    if (!cursor || !delivered.has(entry) || acked.has(entry) || dead.has(entry)) continue;
    if (offset < cursor.committed || cursor.acked.some(([from, to]) => offset >= from && offset < to))
      report(
        "finished without ack",
        `${group} has finished ${lane}/${value} (${offset}), which nobody acked`,
      );
  }
  return redeliveries;
}
