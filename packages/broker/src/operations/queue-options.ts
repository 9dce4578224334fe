/** A queue's options as clients name them, and the columns they are kept in. */
import { BrokerError } from "@queen/protocol";

interface Option {
  readonly column: string;
  readonly kind: "integer" | "boolean";
  readonly max?: number;
  /** What clients are shown while nobody has said anything. */
  readonly unsaid?: number;
}

const YEARS_IN_SECONDS = 100 * 366 * 86_400;
const seconds = (column: string): Option => ({
  column,
  kind: "integer",
  max: Math.min(YEARS_IN_SECONDS, 2 ** 31 - 1),
});

export const QUEUE_OPTIONS: Readonly<Record<string, Option>> = {
  priority: { column: "priority", kind: "integer" },
  leaseTime: { column: "lease_time", kind: "integer", max: 43_200 },
  retryLimit: { column: "retry_limit", kind: "integer", max: 1_000_000 },
  retryDelay: { column: "retry_delay", kind: "integer", max: 86_400_000 },
  maxSize: { column: "max_queue_size", kind: "integer" },
  ttl: { ...seconds("ttl"), unsaid: 3600 },
  deadLetterQueue: { column: "dead_letter_queue", kind: "boolean" },
  dlqAfterMaxRetries: { column: "dlq_after_max_retries", kind: "boolean" },
  delayedProcessing: seconds("delayed_processing"),
  windowBuffer: seconds("window_buffer"),
  retentionSeconds: seconds("retention_seconds"),
  completedRetentionSeconds: seconds("completed_retention_seconds"),
  retentionEnabled: { column: "retention_enabled", kind: "boolean" },
  encryptionEnabled: { column: "encryption_enabled", kind: "boolean" },
  maxWaitTimeSeconds: seconds("max_wait_time_seconds"),
  dedupWindowSeconds: seconds("dedup_window_seconds"),
  dedupMessagesMin: { column: "dedup_messages_min", kind: "integer", max: 100_000 },
  dedupMessagesMax: { column: "dedup_messages_max", kind: "integer", max: 1_000_000 },
};

export interface ParsedOptions {
  /** Column → value, of the options that were named. */
  readonly columns: Readonly<Record<string, number | boolean>>;
  /** Options that do not exist; they are ignored, and the answer names them. */
  readonly unknown: readonly string[];
}

/** `canEncrypt`: whether this broker has a key. */
export function parseQueueOptions(options: unknown, canEncrypt: boolean): ParsedOptions {
  if (options === undefined || options === null) return { columns: {}, unknown: [] };
  if (typeof options !== "object" || Array.isArray(options)) {
    throw new BrokerError("VALIDATION_FAILED", "options must be an object.");
  }
  const columns: Record<string, number | boolean> = {};
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    const option = Object.hasOwn(QUEUE_OPTIONS, name) ? QUEUE_OPTIONS[name] : undefined;
    if (!option) unknown.push(name);
    else if (value !== null) columns[option.column] = check(name, option, value);
  }
  if (columns.encryption_enabled === true && !canEncrypt) {
    throw new BrokerError(
      "VALIDATION_FAILED",
      "options.encryptionEnabled: this broker has no key, so nothing was configured. " +
        "Set QUEEN_ENCRYPTION_KEY on every broker (openssl rand -hex 32 makes a key).",
    );
  }
  return { columns, unknown };
}

function check(name: string, option: Option, value: unknown): number | boolean {
  if (option.kind === "boolean") {
    if (typeof value === "boolean") return value;
    throw new BrokerError("VALIDATION_FAILED", `options.${name} must be true or false.`);
  }
  const max = option.max ?? 2 ** 31 - 1;
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= max) return number;
  throw new BrokerError("VALIDATION_FAILED", `options.${name} must be a whole number from 0 to ${max}.`);
}

/** All options of a queue's row, with the types that clients compare. */
export function showQueueOptions(row: Readonly<Record<string, unknown>>): Record<string, number | boolean> {
  return Object.fromEntries(
    Object.entries(QUEUE_OPTIONS).map(([name, { column, kind, unsaid }]) => [
      name,
      kind === "boolean" ? row[column] === true : ((row[column] ?? unsaid) as number),
    ]),
  );
}

/** As `showQueueOptions`, but null where nobody has said anything and that means something of its own. */
export function saidQueueOptions(
  row: Readonly<Record<string, unknown>>,
): Record<string, number | boolean | null> {
  return Object.fromEntries(
    Object.entries(QUEUE_OPTIONS).map(([name, { column }]) => [
      name,
      (row[column] ?? null) as number | boolean | null,
    ]),
  );
}
