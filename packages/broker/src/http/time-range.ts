/** The stretch of time that a request is about, and the buckets that it is cut into. */
import { BrokerError } from "@queen/protocol";
import type { Range } from "../control/analytics.ts";
import { checkTime, isoTime, type ReadTimestamp } from "./times.ts";

export interface TimeQuery {
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** 0: not said. */
  readonly minutes?: number;
}

const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Longer stretches have longer buckets, so that a chart has some dozens of points. */
export function bucketMinutes(rangeMs: number): number {
  if (rangeMs <= HOUR_MS) return 1;
  if (rangeMs <= 6 * HOUR_MS) return 5;
  if (rangeMs <= DAY_MS) return 15;
  return rangeMs <= 7 * DAY_MS ? 60 : 360;
}

/** Until now, and from `lengthMs` before its end, where the request does not say. */
export async function readRange(
  query: TimeQuery,
  lengthMs: number,
  nowMs: number,
  read: ReadTimestamp,
): Promise<Range> {
  const timeOf = async (text: string | undefined, field: string): Promise<number | undefined> => {
    if (text === undefined) return undefined;
    const ms = Date.parse(isoTime(await checkTime(text, field, read)));
    if (Number.isNaN(ms))
      throw new BrokerError("VALIDATION_FAILED", `${field} must be a time after the year 0.`);
    return ms;
  };
  const toMs = (await timeOf(query.to, "to")) ?? nowMs;
  const fromMs =
    (await timeOf(query.from, "from")) ?? toMs - (query.minutes ? query.minutes * MINUTE_MS : lengthMs);
  if (fromMs > toMs) {
    throw new BrokerError(
      "VALIDATION_FAILED",
      `from must not be after to: ${new Date(fromMs).toISOString()} is after ${new Date(toMs).toISOString()}.`,
    );
  }
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    bucketMinutes: bucketMinutes(toMs - fromMs),
  };
}
