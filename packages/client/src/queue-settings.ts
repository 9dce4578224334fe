/** What a queue's fluent methods say, as one immutable record. */
import type { PopRequest } from "./data-plane.ts";

export interface QueueSettings {
  readonly queue: string | undefined;
  readonly partition: string | undefined;
  readonly namespace: string | undefined;
  readonly task: string | undefined;
  readonly group: string | undefined;
  readonly batch: number;
  readonly partitions: number;
  readonly concurrency: number;
  readonly wait: boolean;
  readonly timeoutMillis: number;
  /** Undefined: as it is usual where it is used: consume acks, pop does not. */
  readonly autoAck: boolean | undefined;
  readonly renewSeconds: number | false;
  readonly limit: number;
  readonly idleMillis: number;
  readonly subscriptionMode: string | undefined;
  readonly subscriptionFrom: string | undefined;
  readonly config: QueueConfig;
}

/** Options of a queue; see docs/http-api.md, "Queues". An option that is not named gets its default. */
export interface QueueConfig {
  /** Seconds. */
  readonly leaseTime?: number;
  readonly retryLimit?: number;
  /** Milliseconds. */
  readonly retryDelay?: number;
  /** Seconds before a message can be delivered. */
  readonly delayedProcessing?: number;
  /** Seconds of silence in a partition before it is delivered. */
  readonly windowBuffer?: number;
  readonly deadLetterQueue?: boolean;
  readonly dlqAfterMaxRetries?: boolean;
  readonly priority?: number;
  readonly encryptionEnabled?: boolean;
  readonly dedupWindowSeconds?: number;
  readonly dedupMessagesMin?: number;
  readonly dedupMessagesMax?: number;
  readonly retentionEnabled?: boolean;
  readonly retentionSeconds?: number;
  readonly completedRetentionSeconds?: number;
  readonly maxWaitTimeSeconds?: number;
  readonly ttl?: number;
  readonly maxSize?: number;
}

export const DEFAULT_SETTINGS: QueueSettings = {
  queue: undefined,
  partition: undefined,
  namespace: undefined,
  task: undefined,
  group: undefined,
  batch: 1,
  partitions: 1,
  concurrency: 1,
  wait: false,
  timeoutMillis: 30_000,
  autoAck: undefined,
  renewSeconds: 60,
  limit: Number.POSITIVE_INFINITY,
  idleMillis: Number.POSITIVE_INFINITY,
  subscriptionMode: undefined,
  subscriptionFrom: undefined,
  config: {},
};

export function popRequest(settings: QueueSettings): PopRequest {
  if (settings.queue === undefined && settings.namespace === undefined && settings.task === undefined)
    throw new TypeError("Name a queue, a namespace or a task to pop from.");
  const { queue, partition, namespace, task, group, batch, partitions, wait, timeoutMillis } = settings;
  const { subscriptionMode, subscriptionFrom } = settings;
  // A pop of a queue asks for the queue alone: its namespace and task are what it was made with.
  const place = queue === undefined ? { namespace, task } : { namespace: undefined, task: undefined };
  const autoAck = settings.autoAck ?? false;
  return {
    queue,
    partition,
    ...place,
    group,
    batch,
    partitions,
    wait,
    timeoutMillis,
    autoAck,
    subscriptionMode,
    subscriptionFrom,
  };
}

export function wholeNumber(name: string, value: number, min: number): number {
  if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= min)) return value;
  throw new TypeError(`${name} must be a whole number from ${min} on, not ${value}.`);
}
