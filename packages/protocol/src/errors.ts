/** Every error that a client can meet: its stable code, its HTTP status, and whether trying again may help. */
export const ERRORS = {
  VALIDATION_FAILED: { status: 400, retryable: false },
  INVALID_JSON: { status: 400, retryable: false },
  UNAUTHENTICATED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  REQUEST_TIMEOUT: { status: 408, retryable: true },
  CONFLICT: { status: 409, retryable: false },
  BODY_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_ENCODING: { status: 415, retryable: false },
  MAINTENANCE: { status: 503, retryable: true },
  QUEUE_FULL: { status: 429, retryable: true },
  TOO_MANY_REQUESTS: { status: 429, retryable: true },
  OVERLOADED: { status: 503, retryable: true },
  ENCRYPTION_KEY_MISSING: { status: 503, retryable: true },
  DATABASE_UNAVAILABLE: { status: 503, retryable: true },
  IDENTITY_PROVIDER_UNAVAILABLE: { status: 503, retryable: true },
  SPOOL_UNAVAILABLE: { status: 503, retryable: true },
  SHUTTING_DOWN: { status: 503, retryable: true },
  MESSAGE_DAMAGED: { status: 500, retryable: false },
  INTERNAL: { status: 500, retryable: false },
} as const satisfies Record<string, { status: number; retryable: boolean }>;

export type ErrorCode = keyof typeof ERRORS;

/** An error with a code from the table; its message is a sentence for the person who reads the answer. */
export class BrokerError extends Error {
  override readonly name = "BrokerError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable;
  }
}
