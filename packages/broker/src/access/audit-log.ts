/**
 * The audit log: who did what, for every change of the control plane and every refused request. An entry is
 * a log line at once, and a row within a second; while the database is away rows wait, up to a bound.
 */
import type { Log } from "../telemetry.ts";

export interface AuditEntry {
  readonly actor: string;
  readonly address: string;
  /** Method and route. */
  readonly action: string;
  /** The path that was asked for. */
  readonly target: string;
  readonly status: number;
}

export interface AuditLogOptions {
  readonly write: (entries: readonly (AuditEntry & { readonly at: string })[]) => Promise<void>;
  readonly log: Log;
}

const WRITE_AFTER_MS = 500;
const RETRY_AFTER_MS = 5_000;
const AT_ONCE_MAX = 1_000;
const WAITING_MAX = 10_000;
const TARGET_LENGTH_MAX = 500;

export class AuditLog {
  readonly #options: AuditLogOptions;
  #waiting: (AuditEntry & { readonly at: string })[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  add(entry: AuditEntry): void {
    const { log } = this.#options;
    const event = entry.status === 401 || entry.status === 403 ? "audit.refused" : "audit.changed";
    const target = entry.target.slice(0, TARGET_LENGTH_MAX);
    log.info({ ...entry, target }, event);
    if (this.#waiting.length >= WAITING_MAX) {
      if (this.#dropped++ === 0) {
        log.warn({ message: "the database is away too long: entries are in the log only" }, "audit.dropped");
      }
      return;
    }
    this.#waiting.push({ ...entry, target, at: new Date().toISOString() });
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_AFTER_MS);
  }

  /** Writes what waits. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, AT_ONCE_MAX);
      try {
        await this.#options.write(batch);
      } catch (error) {
        this.#options.log.warn({ error }, "audit.not_written");
        this.#timer ??= setTimeout(() => void this.flush(), RETRY_AFTER_MS).unref();
        return;
      }
      this.#waiting = this.#waiting.slice(batch.length);
      this.#dropped = 0;
    }
  }
}
