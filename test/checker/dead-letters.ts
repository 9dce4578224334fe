/** A dead letter is the message as it was, once, and only after its failures. */
import type { FinalState, Reader } from "./final-state.ts";
import { entryOf, type HistoryEvent } from "./history.ts";
import type { Limits, Report } from "./rules.ts";

interface Failures {
  /** Acks that said `failed` and were sent; those of them that were answered, and counted. */
  sent: number;
  answered: number;
  /** Who got it last. */
  lease: string;
  /** Acks that said `dlq`. */
  deadSent: number;
  /** An answer said that the message is a dead letter. */
  isDead: boolean;
}

export function checkDeadLetters(
  history: readonly HistoryEvent[],
  { queue, group }: Reader,
  state: FinalState,
  limits: Limits,
  report: Report,
): void {
  const failures = new Map<string, Failures>();
  const of = (entry: string): Failures => {
    let found = failures.get(entry);
    if (!found) {
      found = { sent: 0, answered: 0, lease: "", deadSent: 0, isDead: false };
      failures.set(entry, found);
    }
    return found;
  };
  for (const event of history) {
    if (event.type === "popped" && event.group === group) {
      for (const message of event.messages)
        if (message.queue === queue) of(entryOf(message)).lease = event.lease;
    }
    if ((event.type !== "ack-sent" && event.type !== "acked") || event.group !== group) continue;
    for (const message of event.messages) {
      if (message.queue !== queue || event.status === "completed" || event.status === "retry") continue;
      const found = of(entryOf(message));
      if (event.type === "acked") {
        // Of a message that is finished, or with somebody else, an ack that comes too late tells nothing.
        const counts = event.status === "failed" && !found.isDead && event.lease === found.lease;
        found.answered += counts ? 1 : 0;
      } else if (event.status === "failed") found.sent++;
      else found.deadSent++;
    }
    if (event.type === "acked") {
      for (const message of event.dead ?? []) if (message.queue === queue) of(entryOf(message)).isDead = true;
    }
  }

  const limit = limits.retryLimits?.[queue];
  const log = new Map(state.log.map((entry) => [entryOf(entry), entry.value]));
  const letters = new Set<string>();
  for (const letter of state.deadLetters) {
    if (letter.queue !== queue || letter.group !== group) continue;
    const entry = entryOf(letter);
    if (letters.has(entry)) report("dead letter", `${group} has two letters of ${entry}`);
    letters.add(entry);
    if (log.has(entry) && log.get(entry) !== letter.value)
      report("dead letter", `${group}'s letter of ${entry} holds ${letter.value}, not ${log.get(entry)}`);
    const { sent = 0, deadSent = 0 } = failures.get(entry) ?? {};
    if (deadSent > 0) continue;
    // A lease that ran out is a failure too, one that the database counts by itself.
    const byConsumers = letter.failures.filter((error) => error !== "lease expired").length;
    if (byConsumers > sent)
      report("dead letter", `${group}'s letter of ${entry} has ${byConsumers} failures; ${sent} were sent`);
    if (limit !== undefined && letter.failures.length <= limit)
      report(
        "dead letter",
        `${group} gave ${entry} up after ${letter.failures.length} failures, not ${limit + 1}`,
      );
    if (letter.failures.at(-1) !== letter.error)
      report(
        "dead letter",
        `${group}'s letter of ${entry} says "${letter.error}", not "${letter.failures.at(-1)}"`,
      );
  }
  for (const [entry, { answered, isDead }] of failures) {
    const isLate = limit !== undefined && answered > limit + (letters.has(entry) ? 1 : 0);
    if (isLate)
      report("dead letter", `${group} failed ${entry} ${answered} times; ${limit + 1} make a letter`);
    if (isDead && !letters.has(entry))
      report("dead letter", `${group} was told of a letter of ${entry} that is not there`);
  }
}
