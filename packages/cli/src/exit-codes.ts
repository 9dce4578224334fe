/** What the command says to the shell with its exit code, and the errors that lead to one. */
export const EXIT_CODES = {
  ok: 0,
  usage: 1,
  server: 2,
  notAllowed: 3,
  empty: 4,
} as const;

export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES];

/** For the manual and `--help`. */
export const EXIT_CODE_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT_CODES.ok, "it is done"],
  [EXIT_CODES.usage, "the command, or what it sends, is wrong"],
  [
    EXIT_CODES.server,
    "the broker or a database cannot be reached, refused or failed; or it is not as it should be (doctor, adopt)",
  ],
  [EXIT_CODES.notAllowed, "the token is missing, wrong, or its role does not allow it"],
  [EXIT_CODES.empty, "there is no message (pop, tail)"],
];

/** An error with an exit code of its own; the message says what to do. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export class UsageError extends CommandError {
  override readonly name = "UsageError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, EXIT_CODES.usage, options);
  }
}

/** The server, the database or the file that the command needs did not do it. */
export class ServerError extends CommandError {
  override readonly name = "ServerError";

  constructor(message: string, options?: ErrorOptions) {
    super(message, EXIT_CODES.server, options);
  }
}

/** The exit code for an HTTP status: a request that is wrong in itself counts as wrong usage. */
export function exitCodeOf(status: number | undefined): ExitCode {
  if (status === 400 || status === 413) return EXIT_CODES.usage;
  if (status === 401 || status === 403) return EXIT_CODES.notAllowed;
  return EXIT_CODES.server;
}
