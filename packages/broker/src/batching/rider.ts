/**
 * A rider is a take that goes with an append, in its transaction and its round trip, because it waits for nothing else.
 */
import type { Step } from "../postgres/session.ts";
import type { TakeRow } from "../postgres/statements.ts";

export interface Rider {
  readonly step: Step<TakeRow>;
  /** Who rides, if it is one pop that waits for one lane. */
  readonly only: Waiter | undefined;
  /** The transaction is committed. */
  arrived(rows: readonly TakeRow[]): void;
  /** Nothing happened, or nobody knows. */
  failed(error: Error): void;
}

export interface Waiter {
  readonly groupId: number;
  readonly token: number;
  readonly leaseSeconds: number;
  readonly autoAck: boolean;
  /** How many messages it takes. */
  readonly budget: number;
}
