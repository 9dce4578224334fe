/** Query parameters: each checks its text and says what it is. Unknown ones are ignored: newer clients send more. */
import { BrokerError } from "@queen/protocol";
import { checkName } from "../operations/names.ts";
import type { QueryOf, QueryShape } from "./route.ts";

export interface Parameter<T> {
  readonly summary: string;
  /** As JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** The value of a text; null: the parameter is absent. */
  readonly read: (text: string | null, name: string) => T;
}

/** A whole number; one outside of its limits counts as the limit. */
export function integer(
  summary: string,
  { fallback, min, max }: { fallback: number; min: number; max: number },
): Parameter<number> {
  return {
    summary,
    schema: { type: "integer", minimum: min, maximum: max, default: fallback },
    read: (text, name) => {
      if (text === null || text === "") return fallback;
      if (/^[+-]?\d{1,15}$/.test(text)) return clamp(Number(text), min, max);
      throw new BrokerError("VALIDATION_FAILED", `${name} must be an integer, got "${text.slice(0, 40)}".`);
    },
  };
}

/** `true` or `1`; anything else that is not empty is false. */
export function flag(summary: string, fallback = false): Parameter<boolean> {
  return {
    summary,
    schema: { type: "boolean", default: fallback },
    read: (text) => (text === null || text === "" ? fallback : text === "true" || text === "1"),
  };
}

export function text(summary: string): Parameter<string | undefined> {
  return { summary, schema: { type: "string" }, read: (value) => value || undefined };
}

/** The name of a queue, a partition or a group. */
export function named(summary: string): Parameter<string | undefined> {
  return {
    summary,
    schema: { type: "string", maxLength: 255 },
    read: (value, name) => (value ? checkName(value, name) : undefined),
  };
}

/** The name of a queue, which may be empty; undefined: absent. */
export function queueName(summary: string): Parameter<string | undefined> {
  return {
    summary,
    schema: { type: "string", maxLength: 255 },
    read: (value, name) => (value === null ? undefined : checkName(value, name, { allowEmpty: true })),
  };
}

/** A point in time; what the text means is for PostgreSQL to say. */
export function moment(summary: string): Parameter<string | undefined> {
  return { summary, schema: { type: "string", format: "date-time" }, read: (value) => value || undefined };
}

export function oneOf<const T extends string>(
  summary: string,
  values: readonly T[],
): Parameter<T | undefined> {
  return {
    summary,
    schema: { type: "string", enum: values },
    read: (value, name) => {
      if (!value) return undefined;
      const known = values.find((each) => each === value);
      if (known) return known;
      throw new BrokerError(
        "VALIDATION_FAILED",
        `${name} must be one of ${values.join(", ")}, got "${value.slice(0, 40)}".`,
      );
    },
  };
}

export function readQuery<Q extends QueryShape>(shape: Q, query: URLSearchParams): QueryOf<Q> {
  const values: Record<string, unknown> = {};
  for (const name in shape) values[name] = shape[name]!.read(query.get(name), name);
  return values as QueryOf<Q>;
}

const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max);
