/**
 * A history is what clients saw, event by event, in the order of their clock. It is written while a load runs,
 * one JSON line per event, and read by the checker afterwards.
 *
 * A value is a message: it stands in its payload, and no two messages of a run have the same, so that a value
 * is known wherever it turns up. `atMs` is one monotonic clock for all processes of the machine.
 */

/** Where a message belongs; groups read lanes. */
export interface Place {
  readonly queue: string;
  readonly partition: string;
  readonly value: string;
}

/** A message as it was delivered: its id says which entry of the log it is. */
export interface Delivery extends Place {
  readonly offset: number;
}

export type AckStatus = "completed" | "failed" | "dlq" | "retry";

/**
 * `stored`: queued, or a duplicate of what is; `buffered`: on the broker's disk; `refused`: nothing of this
 * attempt will ever be there; `unknown`: it had no answer, or one that says nothing.
 */
export type PushOutcome = "stored" | "buffered" | "refused" | "unknown";

export interface PushSent {
  readonly type: "push-sent";
  readonly atMs: number;
  /** The broker that it was sent to. */
  readonly broker: string;
  /** Whether the messages carry transactionIds, so that they are stored once. */
  readonly keyed: boolean;
  readonly items: readonly Place[];
}

export interface PushAnswered {
  readonly type: "push-answered";
  readonly atMs: number;
  readonly broker: string;
  readonly items: readonly Place[];
  readonly outcome: PushOutcome;
}

export interface Popped {
  readonly type: "popped";
  readonly atMs: number;
  /** When the pop was sent: no lease of its answer began before. */
  readonly sentAtMs: number;
  readonly group: string;
  readonly lease: string;
  readonly leaseMs: number;
  readonly messages: readonly Delivery[];
}

/** An ack by itself, or as a part of a transaction. */
export interface AckSent {
  readonly type: "ack-sent";
  readonly atMs: number;
  readonly group: string;
  readonly lease: string;
  readonly status: AckStatus;
  readonly messages: readonly Delivery[];
}

/** Only the messages for which the answer said success; `dead`: those of them that are dead letters now. */
export interface Acked {
  readonly type: "acked";
  readonly atMs: number;
  readonly group: string;
  readonly lease: string;
  readonly status: AckStatus;
  readonly messages: readonly Delivery[];
  readonly dead?: readonly Delivery[];
}

/** The consumer lets its lease run out on purpose. */
export interface Abandoned {
  readonly type: "abandoned";
  readonly atMs: number;
  readonly group: string;
  readonly lease: string;
  readonly messages: readonly Delivery[];
}

/** A request that ended; `status` is 0 where the connection broke, and -1 where the client gave it up. */
export interface RequestEnded {
  readonly type: "request";
  readonly atMs: number;
  readonly operation: "push" | "pop" | "ack" | "transaction";
  readonly status: number;
  readonly tookMs: number;
  /** How long the client allowed it to wait for messages. */
  readonly waitMs: number;
  /** What an answer said that no fault excuses. */
  readonly detail?: string;
  /** What an answer said that asked to try again. */
  readonly later?: string;
}

/** What the rig did: a fault, the end of all faults, the end of the pushes, everything consumed. */
export interface Mark {
  readonly type: "mark";
  readonly atMs: number;
  readonly what: "fault" | "healed" | "pushes-ended" | "drained";
  readonly name: string;
}

export type HistoryEvent =
  | PushSent
  | PushAnswered
  | Popped
  | AckSent
  | Acked
  | Abandoned
  | RequestEnded
  | Mark;

/** The clock of histories. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

export const keyOf = ({ queue, partition, value }: Place): string => `${queue}/${partition}/${value}`;
export const laneOf = ({ queue, partition }: Omit<Place, "value">): string => `${queue}/${partition}`;
/** An entry of the log. */
export const entryOf = (entry: Delivery): string => `${laneOf(entry)}@${entry.offset}`;

// The database's clock began a lease a little before the answer was here, and clocks are read at different times.
const LEASE_MARGIN_MS = 500;

/** Until when a lease surely lasts, if nothing ends it before. */
export const leasedUntilMs = ({ sentAtMs, leaseMs }: Popped): number => sentAtMs + leaseMs - LEASE_MARGIN_MS;

/**
 * Whether the lease surely lasted when its messages arrived. An answer may be on its way for longer than that,
 * and then others may have had the messages meanwhile.
 */
export const arrivedInTime = (popped: Popped): boolean => leasedUntilMs(popped) > popped.atMs;
