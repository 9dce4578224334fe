/** A rider is a call that goes with another one, in its transaction and its round trip, because it waits for nothing else. */
import type { Step } from "../postgres/session.ts";

export interface Rider<Row = unknown> {
  readonly step: Step<Row>;
  /** The transaction is committed. */
  arrived(rows: Row[]): void;
  /** Nothing happened, or nobody knows. */
  failed(error: Error): void;
}
