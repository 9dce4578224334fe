/**
 * The checker reads what clients of one queue saw, in the order in which they saw it, and what the database
 * holds in the end, and names every promise that was broken. It is a pure function: a history that breaks a
 * promise can be written by hand, and checker.test.ts has one for every rule.
 *
 * A value is a message: it stands in its payload and, where it must be stored once, is its transactionId.
 * The place of an event in the history is its time; `atMs` only tells how long a lease has lasted.
 */

/** Where a message belongs; groups read lanes. */
export interface Place {
  readonly partition: string;
  readonly value: string;
}

export type AckStatus = "completed" | "failed" | "dlq" | "retry";

export type HistoryEvent =
  | { readonly type: "push-sent"; readonly atMs: number; readonly items: readonly Place[] }
  /** `stored`: queued or a duplicate of what is; `refused`: nothing of it will ever be there. */
  | {
      readonly type: "push-answered";
      readonly atMs: number;
      readonly items: readonly Place[];
      readonly outcome: "stored" | "refused";
    }
  | {
      readonly type: "popped";
      readonly atMs: number;
      /** When the pop was sent: no lease of its answer began before. */
      readonly sentAtMs: number;
      readonly group: string;
      readonly lease: string;
      readonly leaseMs: number;
      readonly messages: readonly Place[];
    }
  | {
      readonly type: "ack-sent";
      readonly atMs: number;
      readonly group: string;
      readonly lease: string;
      readonly status: AckStatus;
      readonly messages: readonly Place[];
    }
  /** Only the messages for which the answer said success. */
  | {
      readonly type: "acked";
      readonly atMs: number;
      readonly group: string;
      readonly lease: string;
      readonly status: AckStatus;
      readonly messages: readonly Place[];
    };

export interface LogEntry extends Place {
  readonly offset: number;
}

export interface FinalState {
  readonly groups: readonly string[];
  readonly log: readonly LogEntry[];
  readonly deadLetters: readonly (Place & { readonly group: string })[];
}

export type Rule =
  | "lost"
  | "phantom"
  | "duplicate entry"
  | "gap"
  | "log order"
  | "delivery order"
  | "redelivered after ack"
  | "overlap"
  | "fencing";

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
}

// The database's clock began a lease a little before the answer was here, and clocks are read at different times.
const LEASE_MARGIN_MS = 500;

const keyOf = ({ partition, value }: Place): string => `${partition}/${value}`;

export function check(history: readonly HistoryEvent[], state: FinalState): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: Rule, message: string): void => {
    violations.push({ rule, message });
  };
  const pushes = readPushes(history);
  const offsets = checkLog(state.log, pushes, report);
  for (const group of state.groups) {
    checkDeliveries(history, group, state, pushes, offsets, report);
    checkLeases(history, group, report);
  }
  return violations;
}

interface Push {
  readonly place: Place;
  sentAt: number;
  storedAt: number;
  /** Every attempt of it was refused. */
  isRefused: boolean;
}

function readPushes(history: readonly HistoryEvent[]): Map<string, Push> {
  const pushes = new Map<string, Push>();
  const refusals = new Map<string, number>();
  const attempts = new Map<string, number>();
  for (const [at, event] of history.entries()) {
    if (event.type !== "push-sent" && event.type !== "push-answered") continue;
    for (const place of event.items) {
      const key = keyOf(place);
      if (event.type === "push-sent") {
        attempts.set(key, (attempts.get(key) ?? 0) + 1);
        if (!pushes.has(key)) pushes.set(key, { place, sentAt: at, storedAt: Infinity, isRefused: false });
      } else if (event.outcome === "refused") refusals.set(key, (refusals.get(key) ?? 0) + 1);
      else {
        const push = pushes.get(key);
        if (push) push.storedAt = Math.min(push.storedAt, at);
      }
    }
  }
  for (const [key, push] of pushes) push.isRefused = refusals.get(key) === attempts.get(key);
  return pushes;
}

type Report = (rule: Rule, message: string) => void;

/** The log against the pushes. Returns where each message is. */
function checkLog(
  log: readonly LogEntry[],
  pushes: ReadonlyMap<string, Push>,
  report: Report,
): Map<string, number> {
  const offsets = new Map<string, number>();
  const byPartition = new Map<string, LogEntry[]>();
  for (const entry of log) {
    const key = keyOf(entry);
    if (offsets.has(key))
      report("duplicate entry", `${key} is at ${offsets.get(key)} and at ${entry.offset}`);
    else offsets.set(key, entry.offset);
    const push = pushes.get(key);
    if (!push) report("phantom", `${key} is stored and was never pushed`);
    else if (push.isRefused) report("phantom", `${key} is stored and was refused`);
    byPartition.set(entry.partition, [...(byPartition.get(entry.partition) ?? []), entry]);
  }
  for (const { place, storedAt } of pushes.values()) {
    if (storedAt < Infinity && !offsets.has(keyOf(place))) {
      report("lost", `${keyOf(place)} was answered and is not in the log`);
    }
  }
  for (const [partition, entries] of byPartition) {
    entries.sort((a, b) => a.offset - b.offset);
    const gap = entries.findIndex((entry, index) => entry.offset !== entries[0]!.offset + index);
    const isRepeated = gap > 0 && entries[gap]!.offset === entries[gap - 1]!.offset;
    if (gap > 0) {
      report(
        "gap",
        `${partition} goes from ${entries[gap - 1]!.offset} to ${entries[gap]!.offset}${isRepeated ? " twice" : ""}`,
      );
    }
    // What was answered before another was even sent stands before it.
    let earliest: Push | undefined;
    for (const entry of entries.toReversed()) {
      const push = pushes.get(keyOf(entry));
      if (!push || offsets.get(keyOf(entry)) !== entry.offset) continue;
      if (earliest && earliest.storedAt < push.sentAt) {
        report(
          "log order",
          `${keyOf(entry)} stands before ${keyOf(earliest.place)}, which was answered first`,
        );
      }
      if (!earliest || push.storedAt < earliest.storedAt) earliest = push;
    }
  }
  return offsets;
}

function checkDeliveries(
  history: readonly HistoryEvent[],
  group: string,
  state: FinalState,
  pushes: ReadonlyMap<string, Push>,
  offsets: ReadonlyMap<string, number>,
  report: Report,
): void {
  const delivered = new Set<string>();
  const finished = new Set<string>();
  const lastOffsets = new Map<string, LogEntry>();
  for (const event of history) {
    if (event.type === "acked" && event.group === group) {
      if (event.status !== "completed") continue;
      for (const place of event.messages) finished.add(keyOf(place));
    }
    if (event.type !== "popped" || event.group !== group) continue;
    for (const place of event.messages) {
      const key = keyOf(place);
      const offset = offsets.get(key);
      if (!pushes.has(key)) report("phantom", `${group} got ${key}, which was never pushed`);
      else if (offset === undefined) report("phantom", `${group} got ${key}, which is not in the log`);
      if (finished.has(key))
        report("redelivered after ack", `${group} got ${key} after its ack was answered`);
      if (delivered.has(key)) continue;
      delivered.add(key);
      const last = lastOffsets.get(place.partition);
      if (offset === undefined) continue;
      if (last && offset < last.offset) {
        report("delivery order", `${group} got ${key} (${offset}) after ${keyOf(last)} (${last.offset})`);
      } else lastOffsets.set(place.partition, { ...place, offset });
    }
  }
  const dead = new Set(state.deadLetters.filter((letter) => letter.group === group).map(keyOf));
  for (const key of offsets.keys()) {
    if (!delivered.has(key) && !dead.has(key)) report("lost", `${group} never got ${key}`);
  }
}

interface Held {
  readonly lease: string;
  /** Of its messages, those for which no ack was sent yet. */
  readonly values: Set<string>;
  readonly untilMs: number;
}

/** Who holds a lane when: from an answered pop to what may have ended it. */
function checkLeases(history: readonly HistoryEvent[], group: string, report: Report): void {
  const holders = new Map<string, Held>();
  const deliveredUnder = new Map<string, string[]>(); // by message: its leases, in their order
  const ackedUnder = new Map<string, Set<string>>(); // by message: the leases under which an ack was sent
  const tooLate = new Set<string>(); // lease and message of acks that were sent when another had the message
  for (const event of history) {
    if (!("group" in event) || event.group !== group) continue;
    if (event.type === "popped") {
      const partitions = new Map<string, Set<string>>();
      for (const place of event.messages) {
        const { partition, value } = place;
        partitions.set(partition, (partitions.get(partition) ?? new Set()).add(value));
        deliveredUnder.set(keyOf(place), [...(deliveredUnder.get(keyOf(place)) ?? []), event.lease]);
      }
      for (const [partition, values] of partitions) {
        const holder = holders.get(partition);
        if (holder && holder.lease !== event.lease && holder.untilMs > event.atMs) {
          report("overlap", `${group} got ${partition} by ${event.lease} while ${holder.lease} held it`);
        }
        const untilMs = event.sentAtMs + event.leaseMs - LEASE_MARGIN_MS;
        holders.set(partition, { lease: event.lease, values, untilMs });
      }
    }
    if (event.type === "ack-sent") {
      for (const place of event.messages) {
        const key = keyOf(place);
        ackedUnder.set(key, (ackedUnder.get(key) ?? new Set()).add(event.lease));
        // Delivered again, so it was not finished then.
        const leases = deliveredUnder.get(key) ?? [];
        if (leases.includes(event.lease) && leases.at(-1) !== event.lease)
          tooLate.add(`${event.lease} ${key}`);
        const holder = holders.get(place.partition);
        if (holder?.lease !== event.lease) continue;
        // It may have been carried out at once, and then the lease may be over.
        holder.values.delete(place.value);
        const ends = event.status === "failed" || event.status === "retry" || holder.values.size === 0;
        if (ends) holders.delete(place.partition);
      }
    }
    if (event.type === "acked") {
      for (const place of event.messages) {
        // Nobody else has finished it since, so this ack did.
        if (tooLate.has(`${event.lease} ${keyOf(place)}`) && ackedUnder.get(keyOf(place))?.size === 1) {
          report("fencing", `${event.lease} acked ${keyOf(place)} for ${group} after it was replaced`);
        }
      }
    }
  }
}
