/** The rules that the checker knows, and how it reports that one was broken. */
export type Rule =
  | "lost"
  | "phantom"
  | "duplicate entry"
  | "gap"
  | "log order"
  | "delivery order"
  | "skip"
  | "redelivered after ack"
  | "finished without ack"
  | "overlap"
  | "fencing"
  | "exactly once"
  | "dead letter"
  | "redelivery budget"
  | "liveness"
  | "state";

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
}

export type Report = (rule: Rule, message: string) => void;

/** What a run allows. */
export interface Limits {
  /** Retries before a message is a dead letter, by queue, at most 9; of others it is not known. */
  readonly retryLimits?: Readonly<Record<string, number>>;
  /** Deliveries of a message after another delivery that no consumer gave back or let run out. */
  readonly redeliveriesMax?: number;
  /** How long a request may take beyond what its client allowed it to wait. */
  readonly requestMsMax?: number;
  /** From the last fault's end to the next stored push and the next delivery. */
  readonly healMsMax?: number;
  /** From the last push to everything consumed. */
  readonly drainMsMax?: number;
}
