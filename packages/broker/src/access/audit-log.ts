/**
 * The audit log keeps who did what in the database: every change of the control plane and every refused
 * request. An entry is a row within a second. Refusals that repeat are one row with a count. While the
 * database is away rows wait, up to a bound; the log file has all of it in any case.
 */
import type { Log } from "../telemetry.ts";

export interface AuditEntry {
  readonly actor: string;
  readonly address: string;
  /** Method and route. */
  readonly action: string;
  /** What was meant, by name. */
  readonly target: string;
  readonly status: number;
}

export interface AuditRow extends AuditEntry {
  readonly at: string;
  times: number;
}

export interface AuditLogOptions {
  readonly write: (rows: readonly AuditRow[]) => Promise<void>;
  readonly log: Log;
}

const WRITE_AFTER_MS = 500;
const RETRY_AFTER_MS = 5_000;
const AT_ONCE_MAX = 1_000;
const WAITING_MAX = 10_000;
const TARGET_LENGTH_MAX = 500;

export class AuditLog {
  readonly #options: AuditLogOptions;
  #waiting: AuditRow[] = [];
  #refusals = new Map<string, AuditRow>();
  #isFull = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  add(entry: AuditEntry): void {
    const isRefusal = entry.status === 401 || entry.status === 403;
    const key = `${entry.status} ${entry.actor} ${entry.address} ${entry.action}`;
    const repeated = isRefusal ? this.#refusals.get(key) : undefined;
    if (repeated) {
      repeated.times += 1;
      return;
    }
    if (this.#waiting.length >= WAITING_MAX) {
      if (!this.#isFull) {
        const message = "the database is away too long: what is audited now is in this log only";
        this.#options.log.warn({ message }, "audit.full");
      }
      this.#isFull = true;
      return;
    }
    const target = entry.target.slice(0, TARGET_LENGTH_MAX);
    const row = { ...entry, target, at: new Date().toISOString(), times: 1 };
    this.#waiting.push(row);
    if (isRefusal) this.#refusals.set(key, row);
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
      const rows = this.#waiting.splice(0, AT_ONCE_MAX);
      this.#refusals.clear();
      try {
        await this.#options.write(rows);
      } catch (error) {
        this.#options.log.warn({ error }, "audit.not_written");
        this.#waiting.unshift(...rows);
        this.#timer ??= setTimeout(() => void this.flush(), RETRY_AFTER_MS).unref();
        return;
      }
      this.#isFull = false;
    }
  }
}
