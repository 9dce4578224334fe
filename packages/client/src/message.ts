/** A message as it is pushed, as it is popped, and what becomes of it. */

/** What is pushed. */
export interface NewMessage<T = unknown> {
  readonly data: T;
  /** Names the message in its partition: pushed again, it is stored once. A new UUID if absent. */
  readonly transactionId?: string;
  /** A UUID. */
  readonly traceId?: string;
  /** Instead of the partition that the queue's `partition()` names. */
  readonly partition?: string;
}

export interface PushResult {
  /** The place in what was pushed. */
  readonly index: number;
  /** `duplicate`: it was stored before. `buffered`: it is on the broker's disk until the database is back. */
  readonly status: "queued" | "duplicate" | "buffered";
  readonly transactionId: string;
  /** Not known of a buffered message. */
  readonly messageId: string | undefined;
  readonly partitionId: string | undefined;
}

/** What is popped. */
export interface Message<T = unknown> {
  readonly id: string;
  readonly transactionId: string;
  readonly traceId: string | null;
  readonly data: T;
  readonly producerSub: string | null;
  /** W3C trace context of the push, where it had one. */
  readonly traceparent?: string;
  /** UTC, such as 2026-11-15T19:00:00.000000Z. */
  readonly createdAt: string;
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: string;
  /** Empty after a pop with `autoAck`. */
  readonly leaseId: string;
  readonly consumerGroup: string;
}

/** A message in a loop: `signal` is aborted when its lease is lost and somebody else may get it. */
export interface LeasedMessage<T = unknown> extends Message<T> {
  readonly signal: AbortSignal;
}

/**
 * `completed`: finished. `failed`: tried again after the queue's `retryDelay`, `retryLimit` times at most.
 * `retry`: delivered again, nothing counted. `dlq`: to the dead letters at once.
 */
export type AckStatus = "completed" | "failed" | "retry" | "dlq";

export interface AckResult {
  readonly transactionId: string;
  readonly success: boolean;
  /** Why not. */
  readonly error: string | null;
  /** Whether the partition is free for others now. */
  readonly leaseReleased: boolean;
  /** Whether the message went to the dead letters. */
  readonly dlq: boolean;
}

export const QUEUE_MODE_GROUP = "__QUEUE_MODE__";
export const DEFAULT_PARTITION = "Default";
