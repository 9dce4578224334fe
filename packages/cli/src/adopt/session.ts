/** A connection for an adoption: patient with long statements, and plain about what is wrong. */
import { type DatabaseSettings, describe, Session } from "@queen/broker";
import { ServerError } from "../exit-codes.ts";

const CONNECT_TIMEOUT_MS = 10_000;
// Counting a large log takes its time.
const CALL_TIMEOUT_MS = 3_600_000;

export async function connectTo(settings: DatabaseSettings, applicationName: string): Promise<Session> {
  try {
    return await Session.connect(settings, {
      applicationName,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      callTimeoutMs: CALL_TIMEOUT_MS,
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
      idleInTransactionTimeoutMs: 0,
    });
  } catch (error) {
    throw new ServerError(`${describe(settings)} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
