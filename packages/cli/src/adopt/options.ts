/** A queue's options as they come over: those that act, with the values of the source. */
import type { SourceQueue } from "./source.ts";
import type { QueueOptions } from "./target.ts";

const NUMBERS = [
  "priority",
  "lease_time",
  "retry_limit",
  "retry_delay",
  "max_queue_size",
  "delayed_processing",
  "window_buffer",
  "retention_seconds",
  "completed_retention_seconds",
  "max_wait_time_seconds",
] as const;
const BOOLEANS = ["retention_enabled", "encryption_enabled"] as const;
// False is what the source has where nothing was said, and it dead-letters all the same.
const SAID_IF_TRUE = ["dead_letter_queue", "dlq_after_max_retries"] as const;
const TTL_DEFAULT = 3_600;
// What the source takes for a lease of no length.
const LEASE_SECONDS_OF_ZERO = 60;

export function optionsOf({ columns }: SourceQueue): QueueOptions {
  const options: Record<string, unknown> = {};
  for (const name of NUMBERS) {
    const value = columns[name];
    if (typeof value === "number") options[name] = Math.max(0, value);
  }
  if (options.lease_time === 0) options.lease_time = LEASE_SECONDS_OF_ZERO;
  for (const name of BOOLEANS) if (typeof columns[name] === "boolean") options[name] = columns[name];
  for (const name of SAID_IF_TRUE) if (columns[name] === true) options[name] = true;
  return options;
}

/** What a person should know about a queue's options: what had no effect there and has one here. */
export function optionNotes({ name, columns }: SourceQueue): string[] {
  const notes: string[] = [];
  const { ttl, max_queue_size: maxSize } = columns;
  if (typeof ttl === "number" && ttl > 0 && ttl !== TTL_DEFAULT) {
    notes.push(
      `Queue ${name}: ttl=${ttl} had no effect there and would expire messages here. It is left out; ` +
        `if it is meant:  queen queue configure ${name} ttl=${ttl}`,
    );
  }
  if (typeof maxSize === "number" && maxSize > 0) {
    notes.push(`Queue ${name}: maxSize=${maxSize} had no effect there; here pushes beyond it are refused`);
  }
  return notes;
}
