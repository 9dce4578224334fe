/** A queue as this worker knows it: its options, and the lanes and readers it has met. */

import type { WindowLimits } from "../operations/dedup-window.ts";
import { encodeString } from "../operations/json-scanner.ts";
import type { Lane } from "./lane.ts";

export interface QueueOptions {
  readonly namespace: string;
  readonly task: string;
  readonly priority: number;
  readonly leaseSeconds: number;
  /** -1: a message is retried until it succeeds. */
  readonly retryLimit: number;
  readonly retryDelayMs: number;
  readonly delaySeconds: number;
  readonly windowSeconds: number;
  /** Payloads are encrypted before they are stored. */
  readonly isEncrypted: boolean;
  readonly dedup: WindowLimits;
}

// A lease of no length would be lost at once; upstream reads 0 as a minute, and so do we.
const LEASE_SECONDS_FALLBACK = 60;

export function queueOptions(row: Readonly<Record<string, unknown>>): QueueOptions {
  const deadLetters = (row.dlq_after_max_retries ?? row.dead_letter_queue ?? true) as boolean;
  return {
    namespace: row.namespace as string,
    task: row.task as string,
    priority: row.priority as number,
    leaseSeconds: (row.lease_time as number) > 0 ? (row.lease_time as number) : LEASE_SECONDS_FALLBACK,
    retryLimit: deadLetters ? Math.max(0, row.retry_limit as number) : -1,
    retryDelayMs: row.retry_delay as number,
    delaySeconds: row.delayed_processing as number,
    windowSeconds: row.window_buffer as number,
    isEncrypted: row.encryption_enabled as boolean,
    dedup: {
      windowUs: (row.dedup_window_seconds as number) * 1_000_000,
      messagesMin: row.dedup_messages_min as number,
      messagesMax: row.dedup_messages_max as number,
    },
  };
}

export class Queue {
  readonly id: number;
  readonly name: string;
  readonly nameJson: string;
  readonly lanes = new Map<string, Lane>();
  options: QueueOptions;
  /** Somebody pops this queue here, so recent segments are worth keeping. */
  hasReaders = false;

  constructor(id: number, name: string, options: QueueOptions) {
    this.id = id;
    this.name = name;
    this.nameJson = encodeString(name);
    this.options = options;
  }

  /** The database refused plain text: encryption was switched on, and the hint of it is still on its way. */
  mustEncrypt(): void {
    this.options = { ...this.options, isEncrypted: true };
  }
}
