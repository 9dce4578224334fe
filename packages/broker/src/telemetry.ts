/**
 * The log tells what happened as events: a name such as `worker.died`, a level, and fields.
 *
 * On a terminal an event is a line for a person, elsewhere it is one line of JSON. A warning that repeats
 * (same event, same message) is written once per 5 s, with the number of times it was held back. Writing
 * never throws: a log that fails must not take the broker with it.
 *
 *   12:34:56 warn  worker.died signal SIGKILL worker=1 pauseMs=100
 *   {"time":"2026-01-31T12:34:56.789Z","level":"warn","event":"worker.died","message":"signal SIGKILL",…}
 */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Record<string, unknown>;

/** `message` is the field for a sentence, `error` the one for an Error. */
export interface Log {
  trace(fields: LogFields, event: string): void;
  debug(fields: LogFields, event: string): void;
  info(fields: LogFields, event: string): void;
  warn(fields: LogFields, event: string): void;
  error(fields: LogFields, event: string): void;
  /** Whether events of a level are written, for who would gather their fields only then. */
  writes(level: LogLevel): boolean;
  /** A log whose events all carry these fields too. */
  child(base: LogFields): Log;
}

export interface LogOptions {
  /** The least severe level that is written. */
  readonly level: LogLevel;
  readonly json: boolean;
  /** Takes a line without its newline; standard error unless given. */
  readonly write?: (line: string) => void;
  readonly base?: LogFields;
}

const REPEAT_WINDOW_MS = 5_000;
// Warnings that each name something else would otherwise fill the memory: beyond, they are just written.
const REPEAT_KEYS_MAX = 1_000;
const CAUSES_SHOWN_MAX = 3;

export function createLog(options: LogOptions): Log {
  const lines = new LogLines(options);
  return logWith(lines, options.base ?? {});
}

/** The log of this process. A line of JSON names it; who reads a terminal knows which one it is. */
export function processLog(level: LogLevel): Log {
  const json = !process.stderr.isTTY;
  return createLog({ level, json, base: json ? { pid: process.pid } : {} });
}

function logWith(lines: LogLines, base: LogFields): Log {
  const at =
    (level: LogLevel) =>
    (fields: LogFields, event: string): void =>
      lines.add(level, { ...base, ...fields }, event);
  return {
    trace: at("trace"),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    writes: (level) => lines.writes(level),
    child: (more) => logWith(lines, { ...base, ...more }),
  };
}

interface Repeated {
  /** Times that the warning came and was not written since its last line. */
  heldBack: number;
  fields: LogFields;
}

class LogLines {
  readonly #levelMin: number;
  readonly #json: boolean;
  readonly #showsStacks: boolean;
  readonly #write: (line: string) => void;
  readonly #repeated = new Map<string, Repeated>();

  constructor({ level, json, write }: LogOptions) {
    this.#levelMin = LOG_LEVELS.indexOf(level);
    this.#json = json;
    this.#showsStacks = this.#levelMin <= LOG_LEVELS.indexOf("debug");
    this.#write = write ?? writeToStderr();
  }

  writes(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= this.#levelMin;
  }

  add(level: LogLevel, fields: LogFields, event: string): void {
    if (!this.writes(level)) return;
    try {
      if (level === "warn" && this.#isHeldBack(fields, event)) return;
      this.#writeLine(level, fields, event);
    } catch {
      // Nobody is left to be told.
    }
  }

  #writeLine(level: LogLevel, fields: LogFields, event: string): void {
    const time = new Date();
    let line: string;
    try {
      line = this.#json
        ? jsonLine(time, level, event, fields, this.#showsStacks)
        : textLine(time, level, event, fields, this.#showsStacks);
    } catch (error) {
      const unreadable = { message: `its fields cannot be written: ${describeThrown(error)}` };
      line = this.#json
        ? jsonLine(time, level, event, unreadable, false)
        : textLine(time, level, event, unreadable, false);
    }
    this.#write(line);
  }

  #isHeldBack(fields: LogFields, event: string): boolean {
    const key = `${event}\n${messageOf(fields)}`;
    const earlier = this.#repeated.get(key);
    if (earlier !== undefined) {
      earlier.heldBack += 1;
      earlier.fields = fields;
      return true;
    }
    if (this.#repeated.size < REPEAT_KEYS_MAX) {
      this.#repeated.set(key, { heldBack: 0, fields });
      this.#endWindowLater(key, event);
    }
    return false;
  }

  /** At the end of a window the warning is forgotten, or written with its count and held back again. */
  #endWindowLater(key: string, event: string): void {
    setTimeout(() => {
      const { heldBack, fields } = this.#repeated.get(key)!;
      if (heldBack === 0) {
        this.#repeated.delete(key);
        return;
      }
      this.#repeated.set(key, { heldBack: 0, fields });
      this.#endWindowLater(key, event);
      try {
        this.#writeLine("warn", { ...fields, repeated: heldBack }, event);
      } catch {
        // Nobody is left to be told.
      }
    }, REPEAT_WINDOW_MS).unref();
  }
}

let ignoresStderrErrors = false;

function writeToStderr(): (line: string) => void {
  // Who closes the other end of the pipe no longer wants to read; that is no reason to stop.
  if (!ignoresStderrErrors) process.stderr.on("error", () => {});
  ignoresStderrErrors = true;
  return (line) => {
    process.stderr.write(`${line}\n`);
  };
}

function messageOf(fields: LogFields): string {
  if (fields.message !== undefined) return String(fields.message);
  return fields.error instanceof Error ? errorText(fields.error) : String(fields.error ?? "");
}

function jsonLine(time: Date, level: LogLevel, event: string, fields: LogFields, stacks: boolean): string {
  const above = new Set<object>();
  const plain = (value: unknown): unknown => {
    if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function")
      return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (above.has(value)) return "(contains itself)";
    above.add(value);
    const copy = plainObject(value);
    above.delete(value);
    return copy;
  };
  const plainObject = (value: object): unknown => {
    if (value instanceof Error) return errorFields(value, stacks);
    if ("toJSON" in value && typeof value.toJSON === "function") return plain(value.toJSON());
    if (Array.isArray(value)) return value.map(plain);
    if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
    if (value instanceof Map) return plainObject(Object.fromEntries(value));
    if (value instanceof Set) return [...value].map(plain);
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
  };
  return JSON.stringify({ time: time.toISOString(), level, event, ...(plain(fields) as LogFields) });
}

function textLine(time: Date, level: LogLevel, event: string, fields: LogFields, stacks: boolean): string {
  const { message, ...others } = fields;
  let line = `${time.toTimeString().slice(0, 8)} ${level.padEnd(5)} ${event}`;
  if (message !== undefined) line += ` ${String(message)}`;
  let stackLines = "";
  for (const [name, value] of Object.entries(others)) {
    if (value === undefined) continue;
    line += ` ${name}=${textOf(value)}`;
    if (stacks && value instanceof Error && value.stack) stackLines += `\n${value.stack}`;
  }
  return line + stackLines;
}

function textOf(value: unknown): string {
  if (value instanceof Error) {
    const { code } = value as NodeJS.ErrnoException;
    return JSON.stringify(errorText(value) + (code === undefined ? "" : ` (${code})`));
  }
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return String(value);
}

function errorFields(error: Error, stacks: boolean, depth = 1): LogFields {
  const { code } = error as NodeJS.ErrnoException;
  const fields: LogFields = { name: error.name, message: errorText(error) };
  if (code !== undefined) fields.code = code;
  if (error.cause instanceof Error && depth < CAUSES_SHOWN_MAX) {
    fields.cause = errorFields(error.cause, stacks, depth + 1);
  }
  if (stacks) fields.stack = error.stack;
  return fields;
}

/** A host name with several addresses fails with an AggregateError that has no message of its own. */
function errorText(error: Error): string {
  if (error.message === "" && error instanceof AggregateError)
    return error.errors.map(describeThrown).join(", ");
  return error.message;
}

function describeThrown(thrown: unknown): string {
  return thrown instanceof Error ? errorText(thrown) : String(thrown);
}
