/**
 * The errors that PostgreSQL and the way to it can give, and what the broker makes of them.
 *
 * A `PostgresError` is an answer: the server refused the call and nothing of it was done. A
 * `ConnectionLostError` is the lack of one. Their translation to the codes that clients meet is here only.
 */
import { BrokerError, type ErrorCode } from "@queen/protocol";

export interface PostgresErrorFields {
  readonly sqlstate: string;
  readonly severity: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  readonly routine?: string | undefined;
}

export class PostgresError extends Error {
  override readonly name = "PostgresError";
  readonly sqlstate: string;
  /** ERROR, FATAL or PANIC, whatever language the server speaks. */
  readonly severity: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  /** The function in PostgreSQL's source that raised the error. */
  readonly routine: string | undefined;

  constructor(fields: PostgresErrorFields) {
    super(fields.message);
    this.sqlstate = fields.sqlstate;
    this.severity = fields.severity;
    this.detail = fields.detail;
    this.hint = fields.hint;
    this.routine = fields.routine;
  }
}

export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
  /** True if the call was sent: PostgreSQL may or may not have committed it. */
  readonly outcomeUnknown: boolean;

  constructor(message: string, options: { outcomeUnknown: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

// QNxxx codes are raised by our own procedures.
const BY_SQLSTATE: Readonly<Record<string, ErrorCode>> = {
  QN400: "VALIDATION_FAILED",
  QN404: "NOT_FOUND",
  QN409: "CONFLICT",
  QN429: "QUEUE_FULL",
  "25006": "DATABASE_UNAVAILABLE", // read_only_sql_transaction: this server is no longer the primary
  "40001": "DATABASE_UNAVAILABLE", // serialization_failure
  "40P01": "DATABASE_UNAVAILABLE", // deadlock_detected
  "55P03": "DATABASE_UNAVAILABLE", // lock_not_available
  "57014": "DATABASE_UNAVAILABLE", // query_canceled: the statement timeout
};

// The first two characters of a SQLSTATE are its class.
const BY_CLASS: Readonly<Record<string, ErrorCode>> = {
  "08": "DATABASE_UNAVAILABLE", // connection exception
  "22": "VALIDATION_FAILED", // data exception
  "23": "INTERNAL", // integrity constraint violation
  "28": "DATABASE_UNAVAILABLE", // invalid authorization: an operator can mend it while the broker runs
  "3D": "DATABASE_UNAVAILABLE", // invalid catalog name: the database is not there (yet)
  "42": "INTERNAL", // syntax error or access rule violation
  "53": "DATABASE_UNAVAILABLE", // insufficient resources: connections, memory, disk
  "54": "VALIDATION_FAILED", // program limit exceeded
  "57": "DATABASE_UNAVAILABLE", // operator intervention: shutdown, crash, not yet accepting connections
  "58": "DATABASE_UNAVAILABLE", // system error outside PostgreSQL
};

const DETERMINISTIC_CLASSES: ReadonlySet<string> = new Set(["22", "23", "42", "54", "QN"]);

/** The error that a client is told. The original is kept as its cause. */
export function classify(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  return new BrokerError(codeOf(error), error instanceof Error ? error.message : String(error), {
    cause: error,
  });
}

/**
 * Whether the same call may succeed later. It says nothing about whether the call was done: see
 * `outcomeUnknown`.
 */
export function isRetryable(error: unknown): boolean {
  return classify(error).retryable;
}

/** Whether the values of the call made it fail, so that the same call fails again however often it is tried. */
export function isDeterministic(error: unknown): boolean {
  return error instanceof PostgresError && DETERMINISTIC_CLASSES.has(error.sqlstate.slice(0, 2));
}

const ROLLED_BACK: ReadonlySet<string> = new Set(["40001", "40P01", "55P03"]);

/** Whether others were in the way (a deadlock, a lock not got in time): nothing was done, try at once again. */
export function isRolledBack(error: unknown): boolean {
  return error instanceof PostgresError && ROLLED_BACK.has(error.sqlstate);
}

/** Whether the database or the way to it failed, and not what was asked of it. */
export function isDatabaseFault(error: unknown): boolean {
  if (error instanceof PostgresError && error.sqlstate.startsWith("QN")) return false;
  return classify(error).code !== "VALIDATION_FAILED";
}

/**
 * Whether the database cannot take anything now: it cannot be reached, is starting or stopping, is no primary, or has
 * no room. A lock that was not got and a statement that took too long are no signs of that.
 */
export function isAway(error: unknown): boolean {
  const known = classify(error);
  const cause = known.cause ?? error;
  if (known.code !== "DATABASE_UNAVAILABLE" || isRolledBack(cause)) return false;
  return !(cause instanceof PostgresError && cause.sqlstate === "57014");
}

function codeOf(error: unknown): ErrorCode {
  if (error instanceof ConnectionLostError) return "DATABASE_UNAVAILABLE";
  if (!(error instanceof PostgresError)) return "INTERNAL";
  return BY_SQLSTATE[error.sqlstate] ?? BY_CLASS[error.sqlstate.slice(0, 2)] ?? "INTERNAL";
}
