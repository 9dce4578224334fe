/** The log against the pushes: nothing lost, invented, stored twice or out of order. */
import type { FinalState, LogEntry } from "./final-state.ts";
import { type HistoryEvent, keyOf, laneOf, type Place } from "./history.ts";
import type { Report } from "./rules.ts";

/** A message that was pushed; times are places in the history. */
export interface Push {
  readonly place: Place;
  readonly keyed: boolean;
  readonly sentAt: number;
  /** The brokers it was sent to. */
  readonly brokers: Set<string>;
  storedAt: number;
  bufferedAt: number;
  bufferedBy: string;
  attempts: number;
  refusals: number;
}

export const isRefused = (push: Push): boolean => push.refusals === push.attempts;
const isAnswered = (push: Push): boolean => push.storedAt < Infinity || push.bufferedAt < Infinity;

export function readPushes(history: readonly HistoryEvent[]): Map<string, Push> {
  const pushes = new Map<string, Push>();
  for (const [at, event] of history.entries()) {
    if (event.type !== "push-sent" && event.type !== "push-answered") continue;
    for (const place of event.items) {
      const key = keyOf(place);
      let push = pushes.get(key);
      if (event.type === "push-sent") {
        push ??= {
          place,
          keyed: event.keyed,
          sentAt: at,
          brokers: new Set(),
          storedAt: Infinity,
          bufferedAt: Infinity,
          bufferedBy: "",
          attempts: 0,
          refusals: 0,
        };
        pushes.set(key, push);
        push.brokers.add(event.broker);
        push.attempts++;
        continue;
      }
      if (!push) continue;
      if (event.outcome === "refused") push.refusals++;
      if (event.outcome === "stored") push.storedAt = Math.min(push.storedAt, at);
      if (event.outcome === "buffered" && at < push.bufferedAt) {
        push.bufferedAt = at;
        push.bufferedBy = event.broker;
      }
    }
  }
  return pushes;
}

/** `delivered`: the entries that some group got, for what retention has taken out of the log since. */
export function checkLog(
  state: FinalState,
  pushes: ReadonlyMap<string, Push>,
  delivered: ReadonlySet<string>,
  report: Report,
): void {
  const stored = new Map<string, number[]>();
  const keys = new Map<string, number>();
  const lanes = new Map<string, LogEntry[]>();
  for (const entry of state.log) {
    const key = keyOf(entry);
    const lane = laneOf(entry);
    append(stored, key, entry.offset);
    append(lanes, lane, entry);
    const push = pushes.get(key);
    if (!push) report("phantom", `${key} is stored and was never pushed`);
    else if (isRefused(push)) report("phantom", `${key} is stored and was refused`);
    if (entry.transactionId === undefined) continue;
    const other = keys.get(`${lane}/${entry.transactionId}`);
    if (other !== undefined && other !== entry.offset)
      report(
        "duplicate entry",
        `transactionId ${lane}/${entry.transactionId} is at ${other} and at ${entry.offset}`,
      );
    keys.set(`${lane}/${entry.transactionId}`, entry.offset);
  }
  for (const [key, offsets] of stored) {
    const push = pushes.get(key);
    // Without a transactionId every attempt that was not refused may have stored it.
    if (offsets.length > (push && !push.keyed ? Math.max(1, push.attempts - push.refusals) : 1))
      report("duplicate entry", `${key} is at ${offsets.join(" and at ")}`);
  }
  for (const push of pushes.values()) {
    const key = keyOf(push.place);
    const isTrimmed = (state.starts?.[laneOf(push.place)] ?? 0) > 0 && delivered.has(key);
    if (isAnswered(push) && !stored.has(key) && !isTrimmed)
      report("lost", `${key} was answered and is not in the log`);
  }
  for (const [lane, entries] of lanes) checkLane(lane, entries, pushes, report);
}

function append<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function checkLane(
  lane: string,
  entries: LogEntry[],
  pushes: ReadonlyMap<string, Push>,
  report: Report,
): void {
  entries.sort((a, b) => a.offset - b.offset);
  for (const [index, entry] of entries.entries()) {
    const before = entries[index - 1];
    if (before && entry.offset === before.offset) report("gap", `${lane} has ${entry.offset} twice`);
    else if (before && entry.offset !== before.offset + 1)
      report("gap", `${lane} goes from ${before.offset} to ${entry.offset}`);
  }
  // What was answered before another was even sent stands before it. What a broker has on its disk is in order
  // only with what was pushed to the same broker.
  const first = new Set<string>();
  const isFirst = entries.map((entry) => !first.has(keyOf(entry)) && first.add(keyOf(entry)) !== undefined);
  let earliest: Push | undefined;
  const buffered = new Map<string, Push>();
  for (let index = entries.length - 1; index >= 0; index--) {
    const push = pushes.get(keyOf(entries[index]!));
    if (!push || !isFirst[index]) continue;
    const own = push.brokers.size === 1 ? buffered.get([...push.brokers][0]!) : undefined;
    for (const [other, answeredAt] of [
      [earliest, earliest?.storedAt ?? Infinity],
      [own, own?.bufferedAt ?? Infinity],
    ] as const) {
      if (other && answeredAt < push.sentAt)
        report(
          "log order",
          `${keyOf(push.place)} stands before ${keyOf(other.place)}, which was answered first`,
        );
    }
    if (push.storedAt < (earliest?.storedAt ?? Infinity)) earliest = push;
    if (push.bufferedAt < (buffered.get(push.bufferedBy)?.bufferedAt ?? Infinity))
      buffered.set(push.bufferedBy, push);
  }
}
