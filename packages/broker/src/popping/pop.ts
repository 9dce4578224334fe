/** One pop request: what it wants, and where it is in its life (see operations/pop-state.ts). */
import type { Link } from "../linked-list.ts";
import type { OffsetRanges } from "../operations/offset-ranges.ts";
import { isFinal, nextPopState, type PopEvent, type PopState } from "../operations/pop-state.ts";
import type { Segment } from "../operations/segment.ts";
import type { OperationSpan } from "../tracing.ts";
import type { EmptyReason } from "./empty-reason.ts";
import type { Group } from "./group.ts";
import type { GroupLane } from "./group-lane.ts";

export interface Subscription {
  readonly mode: "all" | "new" | "timestamp";
  /** A time as PostgreSQL writes it, with mode `timestamp`. */
  readonly from: string | null;
}

export interface PopRequest {
  readonly queue: string;
  /** Undefined: any partition. */
  readonly partition: string | undefined;
  readonly group: string;
  readonly batch: number;
  readonly partitions: number;
  readonly autoAck: boolean;
  readonly waitMs: number;
  readonly subscription: Subscription;
  readonly span: OperationSpan | undefined;
}

/** What a pop got of one lane. */
export interface Taken {
  readonly groupLane: GroupLane;
  readonly groupId: number;
  readonly from: number;
  readonly to: number;
  readonly acked: OffsetRanges;
  readonly segments: readonly Segment[];
}

export type PopOutcome =
  | {
      readonly status: "messages";
      readonly taken: readonly Taken[];
      readonly token: number;
      readonly group: Group;
    }
  | { readonly status: "empty"; readonly reason: EmptyReason };

/** How often each state was left and how long it lasted in all. */
export class PopStateTimes {
  readonly #now: () => number;
  readonly #byState = new Map<PopState, { count: number; ms: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): number {
    return this.#now();
  }

  left(state: PopState, sinceMs: number): void {
    const entry = this.#byState.get(state) ?? { count: 0, ms: 0 };
    this.#byState.set(state, entry);
    entry.count++;
    entry.ms += this.#now() - sinceMs;
  }

  figures(): Record<string, { count: number; ms_avg: number }> {
    return Object.fromEntries(
      [...this.#byState].map(([state, { count, ms }]) => [
        state,
        { count, ms_avg: Math.round((ms / count) * 1000) / 1000 },
      ]),
    );
  }
}

export class Pop {
  readonly request: PopRequest;
  readonly group: Group;
  state: PopState = "PENDING";
  reason: EmptyReason;
  deadline: NodeJS.Timeout | undefined;
  /** Where it stands among its group's pops of any lane. */
  waiting: Link<Pop> | undefined = undefined;
  readonly startedAtMs: number;
  readonly #times: PopStateTimes;
  /** Undefined once it was told: an ended pop, which sets that it was in may still hold, holds nobody. */
  #done: ((outcome: PopOutcome | Error) => void) | undefined;
  #sinceMs: number;

  constructor(
    request: PopRequest,
    group: Group,
    times: PopStateTimes,
    done: (outcome: PopOutcome | Error) => void,
  ) {
    this.request = request;
    this.group = group;
    this.reason = request.partition === undefined ? "no_available_partition" : "partition_not_found";
    this.#times = times;
    this.#done = done;
    this.#sinceMs = this.startedAtMs = times.now();
  }

  get isLive(): boolean {
    return !isFinal(this.state);
  }

  move(event: PopEvent): PopState {
    const next = nextPopState(this.state, event);
    if (next !== this.state) {
      this.#times.left(this.state, this.#sinceMs);
      this.#sinceMs = this.#times.now();
      this.state = next;
      if (isFinal(next)) {
        clearTimeout(this.deadline);
        this.deadline = undefined;
        this.#times.left(next, this.#sinceMs);
        if (next === "EMPTY") this.deliver({ status: "empty", reason: this.reason });
      }
    }
    return next;
  }

  /** A call that leases lanes for it is on its way. */
  lease(): void {
    if (this.state === "PARKED") this.move("woken");
    this.move("lanes");
  }

  deliver(outcome: PopOutcome | Error): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(outcome);
  }

  fail(error: Error): void {
    if (!this.isLive) return;
    if (this.move("error") === "FAILED") this.deliver(error);
  }
}
