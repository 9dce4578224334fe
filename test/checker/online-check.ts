/**
 * The online check looks at a load's events as they come and remembers what is under way, so that it can go
 * along for days. It knows the log without reading it, because values count: a source numbers what it pushes to
 * a lane, 0, 1, 2, …, keyed, always by the same broker, and sends each push until it is answered. So each group
 * has to get offset by offset, and of every source number by number.
 *
 * Rules that need the whole history (the exact count of failures before a dead letter) are left to check().
 */
import { type HistoryEvent, laneOf, type Place, type Popped, type PushAnswered } from "./history.ts";
import { LeaseWatch } from "./leases.ts";
import { numberedOf, type Pushed } from "./numbered.ts";
import { OnlineReader } from "./online-reader.ts";
import type { Report, Rule, Violation } from "./rules.ts";

const EXAMPLES_MAX = 20;
// Beyond any lease, and any time that an ack of it may be under way.
const REMEMBER_MS = 180_000;
const FORGET_EVERY_MS = 10_000;

export class OnlineCheck {
  readonly violations: Violation[] = [];
  readonly counts = new Map<Rule, number>();
  readonly #requestMsMax: number;
  readonly #pushed = new Map<string, Map<string, Pushed>>();
  readonly #readers: OnlineReader[];
  readonly #leases: { readonly group: string; readonly watch: LeaseWatch }[];
  #forgotAtMs = 0;

  constructor(readers: readonly { queue: string; group: string }[], limits: { requestMsMax: number }) {
    this.#requestMsMax = limits.requestMsMax;
    this.#readers = readers.map(
      ({ queue, group }) => new OnlineReader(queue, group, this.#pushed, this.report),
    );
    this.#leases = readers.map(({ queue, group }) => ({
      group,
      watch: new LeaseWatch(queue, group, this.report),
    }));
  }

  /** Of all violations some are kept as examples. */
  readonly report: Report = (rule, message) => {
    this.counts.set(rule, (this.counts.get(rule) ?? 0) + 1);
    if (this.violations.length < EXAMPLES_MAX) this.violations.push({ rule, message });
  };

  /** Deliveries that no consumer asked for. */
  get redelivered(): number {
    return this.#readers.reduce((sum, reader) => sum + reader.redelivered, 0);
  }

  /** Entries that are remembered, of all groups: the check's memory. */
  get remembered(): number {
    return (
      this.#readers.reduce((sum, reader) => sum + reader.size, 0) +
      this.#leases.reduce((sum, { watch }) => sum + watch.size, 0)
    );
  }

  observe(event: HistoryEvent): void {
    if (event.type === "push-sent") for (const place of event.items) this.#send(place);
    else if (event.type === "push-answered") this.#answer(event);
    else if (event.type === "request") {
      if (event.tookMs > event.waitMs + this.#requestMsMax)
        this.report("liveness", `a ${event.operation} took ${Math.round(event.tookMs)} ms (${event.status})`);
    } else if ("group" in event) {
      for (const reader of this.#readers) if (reader.group === event.group) reader.observe(event);
      for (const { group, watch } of this.#leases) if (group === event.group) watch.observe(event);
      if (event.type === "popped") this.#forget(event);
    }
  }

  /** What is missing when everything was consumed. Dead letters are finished without a completed ack. */
  finish(isDead: (group: string, lane: string, offset: number) => boolean): void {
    for (const reader of this.#readers) reader.finish(isDead);
  }

  #send(place: Place): void {
    const { source, number } = numberedOf(place.value);
    const pushed = this.#of(laneOf(place), source);
    pushed.sent = Math.max(pushed.sent, number + 1);
  }

  #answer({ outcome, items }: PushAnswered): void {
    if (outcome === "unknown") return;
    for (const place of items) {
      const { source, number } = numberedOf(place.value);
      if (outcome === "refused")
        this.report("liveness", `${laneOf(place)}/${place.value} was refused; no fault excuses that`);
      else {
        const pushed = this.#of(laneOf(place), source);
        pushed.answered = Math.max(pushed.answered, number + 1);
      }
    }
  }

  #of(lane: string, source: string): Pushed {
    const sources = this.#pushed.get(lane) ?? new Map<string, Pushed>();
    this.#pushed.set(lane, sources);
    const pushed = sources.get(source) ?? { sent: 0, answered: 0 };
    sources.set(source, pushed);
    return pushed;
  }

  #forget({ atMs }: Popped): void {
    if (atMs - this.#forgotAtMs < FORGET_EVERY_MS) return;
    this.#forgotAtMs = atMs;
    for (const reader of this.#readers) reader.forgetBefore(atMs - REMEMBER_MS);
    for (const { watch } of this.#leases) watch.forgetBefore(atMs - REMEMBER_MS);
  }
}
