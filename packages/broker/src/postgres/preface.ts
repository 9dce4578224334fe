/**
 * A preface goes before every call that a pooler may give to any session of the server (PgBouncer in transaction mode
 * and its like). What a session of our own is told once, each transaction is told there: its time limits and its time
 * zone. It also asks on which timeline the server is, because a pooler moves its clients to another primary without a
 * word; undefined: the server takes no writes.
 *
 * Nothing outlives the transaction, so that nobody who shares the server's session meets our settings.
 */
import type { Statement } from "./session.ts";

export interface PrefaceOptions {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Where a server does not tell its origin, it is not asked. */
  readonly asksTimeline: boolean;
}

// The name of the log's file begins with the timeline, in eight hexadecimal digits.
export const TIMELINE = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

export function prefaceOf(options: PrefaceOptions): Statement<number | undefined> {
  const { statementTimeoutMs, lockTimeoutMs, asksTimeline } = options;
  return {
    name: "preface",
    text: `select set_config('statement_timeout', '${Math.trunc(statementTimeoutMs)}', true),
                  set_config('lock_timeout', '${Math.trunc(lockTimeoutMs)}', true),
                  set_config('timezone', 'UTC', true),
                  case when ${asksTimeline} and not pg_is_in_recovery() then ${TIMELINE} end`,
    parameters: [],
    read: (row) => (row.isNull(3) ? undefined : Number.parseInt(row.text(3), 16)),
  };
}
