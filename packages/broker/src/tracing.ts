/**
 * Tracing tells a collector what the broker did, as spans. This is what the broker's parts know of it;
 * open-telemetry.ts does it, and is loaded only where a collector is configured.
 *
 * Push, pop and ack are requests of different clients at different times, so they are different traces, or
 * the client's own. What ties them together is the traceparent that a message carries: the spans of its pop
 * and of its ack link to it.
 */
export type TracedOperation = "push" | "pop" | "ack" | "transaction";

export interface Place {
  readonly queue: string;
  readonly partition?: string | undefined;
}

/** The span of one client's operation. */
export interface OperationSpan {
  /** What the messages carry that it stores. */
  readonly traceparent: string;
  /** How many messages it was about, and where they are; said once. */
  about(messages: number, places: Iterable<Place>, group?: string): void;
  /** Links to where messages came from, by what they carry. */
  link(traceparents: Iterable<string | undefined>): void;
  /** The status of its answer. */
  end(status: number): void;
  fail(code: string): void;
}

/** Ends the span of a call to the database. */
export type EndCall = (error?: unknown) => void;

export interface Tracing {
  /** Undefined: this one is not recorded. */
  start(operation: TracedOperation, parent: string | undefined, requestId: string): OperationSpan | undefined;
  /** One call for the operations of many clients. Undefined: none of them is recorded. */
  call(procedure: string, operations: Iterable<OperationSpan | undefined>): EndCall | undefined;
  /** Sends what is there, as far as that is done in time. */
  stop(withinMs: number): Promise<void>;
}
