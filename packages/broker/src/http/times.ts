/** Times that clients name: anything that PostgreSQL reads as a point in time, but not an infinite one. */
import { BrokerError } from "@queen/protocol";

/** The time that a text means, as PostgreSQL writes it in UTC; undefined: it means none. */
export type ReadTimestamp = (text: string) => Promise<string | undefined>;

export async function checkTime(text: unknown, field: string, read: ReadTimestamp): Promise<string> {
  const time = typeof text === "string" ? await read(text) : undefined;
  if (time !== undefined && !time.endsWith("infinity")) return time;
  throw new BrokerError(
    "VALIDATION_FAILED",
    `${field} must be a time such as 2026-11-15T19:00:00Z, got ${JSON.stringify(text)?.slice(0, 40)}.`,
  );
}

/** `2026-11-15 19:00:00.5+00` as the wire shows it. */
export const isoTime = (time: string): string => time.replace(" ", "T").replace(/\+00$/, "Z");
