/** Query parameters of a pop, checked. Unknown parameters are ignored: newer clients send more. */
import { BrokerError, POP_BATCH_MAX, POP_PARTITIONS_MAX, QUEUE_MODE_GROUP } from "@queen/protocol";
import { checkName } from "../operations/names.ts";

export interface PopDefaults {
  readonly timeoutMs: number;
  readonly batch: number;
  readonly subscriptionMode: string;
}

export interface PopParameters {
  readonly batch: number;
  readonly waitMs: number;
  readonly group: string;
  readonly autoAck: boolean;
  readonly partitions: number;
  readonly subscriptionMode: string;
  readonly subscriptionFrom: string;
}

const WAIT_MS_MAX = 3_600_000;

export function popParameters(query: URLSearchParams, defaults: PopDefaults): PopParameters {
  const group = query.get("consumerGroup");
  return {
    batch: clamp(integer(query, "batch", defaults.batch), 1, POP_BATCH_MAX),
    waitMs: flag(query, "wait") ? clamp(integer(query, "timeout", defaults.timeoutMs), 0, WAIT_MS_MAX) : 0,
    group: group ? checkName(group, "consumerGroup") : QUEUE_MODE_GROUP,
    autoAck: flag(query, "autoAck"),
    partitions: clamp(integer(query, "partitions", 1), 1, POP_PARTITIONS_MAX),
    subscriptionMode: query.get("subscriptionMode") || defaults.subscriptionMode,
    subscriptionFrom: query.get("subscriptionFrom") ?? "",
  };
}

export function integer(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null || text === "") return fallback;
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
  throw new BrokerError("VALIDATION_FAILED", `${name} must be an integer, got "${text.slice(0, 40)}".`);
}

const flag = (query: URLSearchParams, name: string): boolean => {
  const text = query.get(name);
  return text === "true" || text === "1";
};

export const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max);
