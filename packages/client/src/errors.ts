/**
 * Every error of the client is a QueenError with a `code`. What the server refused is a ServerError with the
 * server's code and status; the others are the client's own. A call that its AbortSignal ended rejects with
 * the signal's reason, as `fetch` does.
 */
import type { AckResult } from "./message.ts";
import type { SchemaIssue } from "./standard-schema.ts";

export class QueenError extends Error {
  override readonly name: string = "QueenError";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Codes that servers send today; a newer server may send others. */
export type ServerErrorCode =
  | "VALIDATION_FAILED"
  | "INVALID_JSON"
  | "UNAUTHENTICATED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "REQUEST_TIMEOUT"
  | "CONFLICT"
  | "BODY_TOO_LARGE"
  | "MAINTENANCE"
  | "QUEUE_FULL"
  | "TOO_MANY_REQUESTS"
  | "UNSUPPORTED_ENCODING"
  | "OVERLOADED"
  | "ENCRYPTION_KEY_MISSING"
  | "DATABASE_UNAVAILABLE"
  | "IDENTITY_PROVIDER_UNAVAILABLE"
  | "SPOOL_UNAVAILABLE"
  | "SHUTTING_DOWN"
  | "MESSAGE_DAMAGED"
  | "INTERNAL";

export interface ServerAnswer {
  readonly status: number;
  readonly code: ServerErrorCode | (string & {});
  /** What the header `Retry-After` says, or null. */
  readonly retryAfterMillis: number | null;
  readonly requestId: string | null;
  /** The whole body, as JSON where it is JSON, otherwise as text. */
  readonly body: unknown;
}

/** The server answered, with an error. */
export class ServerError extends QueenError {
  override readonly name: string = "ServerError";
  declare readonly code: ServerErrorCode | (string & {});
  readonly status: number;
  readonly retryAfterMillis: number | null;
  readonly requestId: string | null;
  readonly body: unknown;

  constructor(message: string, answer: ServerAnswer) {
    super(answer.code, message);
    this.status = answer.status;
    this.retryAfterMillis = answer.retryAfterMillis;
    this.requestId = answer.requestId;
    this.body = answer.body;
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.status === 408 || this.status === 429 || this.status === 502 || this.status >= 503;
  }
}

/** 400, 413 and the like: the request must change. */
export class InvalidRequestError extends ServerError {
  override readonly name = "InvalidRequestError";
}
/** 401: no credential, or not a valid one. */
export class UnauthenticatedError extends ServerError {
  override readonly name = "UnauthenticatedError";
}
/** 403: the credential does not allow it. */
export class ForbiddenError extends ServerError {
  override readonly name = "ForbiddenError";
}
/** 404: what the path names does not exist. */
export class NotFoundError extends ServerError {
  override readonly name = "NotFoundError";
}
/** 409: the present state does not allow it. */
export class ConflictError extends ServerError {
  override readonly name = "ConflictError";
}
/** 429: too much at once, or a queue at its `maxSize`. */
export class TooManyRequestsError extends ServerError {
  override readonly name = "TooManyRequestsError";
}
/** 5xx: the server or its database cannot do it now. */
export class UnavailableError extends ServerError {
  override readonly name = "UnavailableError";
}

export function serverError(message: string, answer: ServerAnswer): ServerError {
  const { status } = answer;
  if (status === 401) return new UnauthenticatedError(message, answer);
  if (status === 403) return new ForbiddenError(message, answer);
  if (status === 404) return new NotFoundError(message, answer);
  if (status === 409) return new ConflictError(message, answer);
  if (status === 429) return new TooManyRequestsError(message, answer);
  if (status >= 500) return new UnavailableError(message, answer);
  return new InvalidRequestError(message, answer);
}

/** No answer came. `inDoubt`: the request may have been done all the same. */
export class ConnectionError extends QueenError {
  override readonly name: string = "ConnectionError";
  readonly inDoubt: boolean;

  constructor(message: string, inDoubt: boolean, options?: ErrorOptions) {
    super("CONNECTION_FAILED", message, options);
    this.inDoubt = inDoubt;
  }
}

/** No answer came in time. The request may have been done all the same. */
export class TimeoutError extends QueenError {
  override readonly name = "TimeoutError";

  constructor(message: string) {
    super("TIMEOUT", message);
  }
}

/** The client was closed. */
export class ClosedError extends QueenError {
  override readonly name = "ClosedError";

  constructor(message = "The client is closed: make a new Queen.") {
    super("CLOSED", message);
  }
}

/** The lease is no longer held: it ran out, or an operator ended it. Others may have the messages. */
export class LeaseLostError extends QueenError {
  override readonly name = "LeaseLostError";
  readonly leaseId: string;
  /** In the broker's words. */
  readonly reason: string;

  constructor(leaseId: string, reason: string) {
    super(
      "LEASE_LOST",
      `The lease is lost (${reason}): others may get its messages, so stop working on them.`,
    );
    this.leaseId = leaseId;
    this.reason = reason;
  }
}

/** Some acks had no effect; `results` says which and why. */
export class AckError extends QueenError {
  override readonly name = "AckError";
  readonly results: readonly AckResult[];

  constructor(results: readonly AckResult[]) {
    const refused = results.filter((result) => !result.success);
    const [first] = refused;
    super(
      "ACK_REFUSED",
      `${refused.length} of ${results.length} acks had no effect; message ${first?.transactionId}: ${first?.error}.`,
    );
    this.results = results;
  }
}

/** A payload does not match the queue's schema. Nothing was pushed. */
export class InvalidPayloadError extends QueenError {
  override readonly name = "InvalidPayloadError";
  /** The place in what was pushed. */
  readonly index: number;
  readonly issues: readonly SchemaIssue[];

  constructor(index: number, issues: readonly SchemaIssue[], text: string) {
    super("INVALID_PAYLOAD", `Item ${index} was not pushed: ${text}.`);
    this.index = index;
    this.issues = issues;
  }
}
