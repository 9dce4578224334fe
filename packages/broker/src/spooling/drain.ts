/**
 * The drain walks through the spool's records in their order and hands them out in batches. A record stays loaded
 * until it is stored or set aside, so a lane that cannot be appended to now keeps its records waiting, in order,
 * while those of other lanes go on. What is loaded is bounded: a lane that is held up for long holds up the rest
 * when its records fill that bound.
 */
import { crashPoint } from "../crash-point.ts";
import type { LaneName } from "../lanes/directory.ts";
import type { Log } from "../telemetry.ts";
import { noteProgress, type Place } from "./progress.ts";
import { laneKey, type SpoolRecord, scanRecords } from "./record.ts";
import type { SpoolStore } from "./spool-store.ts";

/** What became of a record: it is in the log, it was refused for what it is, or it must be tried again. */
export type DrainResult =
  | { readonly status: "stored" }
  | { readonly status: "rejected"; readonly reason: string }
  | { readonly status: "later"; readonly reason: string };

interface Loaded {
  readonly record: SpoolRecord;
  readonly place: Place;
}

interface Blocked {
  readonly untilMs: number;
  readonly pauseMs: number;
}

export interface DrainOptions {
  readonly store: SpoolStore;
  readonly folder: string;
  readonly progress: Place;
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly log: Log;
}

const LOADED_RECORDS_MAX = 50_000;
const LOADED_BYTES_MAX = 32 * 1024 * 1024;
const BATCH_RECORDS_MAX = 5_000;
const BATCH_BYTES_MAX = 4 * 1024 * 1024;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 5_000;

export class Drain {
  readonly #options: DrainOptions;
  readonly #blocked = new Map<string, Blocked>();
  #loaded: Loaded[] = [];
  #loadedBytes = 0;
  /** Where reading goes on. */
  #next: Place;

  constructor(options: DrainOptions) {
    this.#options = options;
    this.#next = options.progress;
  }

  /** The next records that can be tried, at most so many; none: all that are left must wait. */
  async nextBatch(recordsMax = BATCH_RECORDS_MAX): Promise<SpoolRecord[]> {
    await this.#load();
    const nowMs = this.#options.now();
    const batch: SpoolRecord[] = [];
    let bytes = 0;
    for (const { record } of this.#loaded) {
      const blocked = this.#blocked.get(laneKey(record.queue, record.partition));
      if (blocked && blocked.untilMs > nowMs) continue;
      bytes += record.content.length;
      if (batch.length >= recordsMax || (batch.length > 0 && bytes > BATCH_BYTES_MAX)) break;
      batch.push(record);
    }
    return batch;
  }

  /** Returns how many of the batch are finished. */
  async settle(batch: readonly SpoolRecord[], results: readonly DrainResult[]): Promise<number> {
    const { store, folder, log } = this.#options;
    const finished = new Set<SpoolRecord>();
    const tried = new Map<string, boolean>();
    for (const [index, record] of batch.entries()) {
      const isFinished = await this.#settleOne(record, results[index]!);
      if (isFinished) finished.add(record);
      const key = laneKey(record.queue, record.partition);
      tried.set(key, (tried.get(key) ?? true) && isFinished);
    }
    for (const [key, isFree] of tried) this.#blockOrFree(key, isFree);
    this.#loaded = this.#loaded.filter(({ record }) => !finished.has(record));
    for (const record of finished) {
      this.#loadedBytes -= record.content.length;
      store.finished(record);
    }
    crashPoint("drain-after-settle");
    try {
      const place = this.#loaded[0]?.place ?? this.#next;
      await noteProgress(folder, place);
      await store.removeBefore(place.file);
      if (store.pending === 0) await store.removeAll();
    } catch (error) {
      log.warn({ error }, "spool.not-tidied"); // the next batch tries again
    }
    return finished.size;
  }

  async #settleOne(record: SpoolRecord, result: DrainResult): Promise<boolean> {
    const { store, clock, log } = this.#options;
    if (result.status === "later") return false;
    if (result.status === "stored") return true;
    const { queue, partition, sequence } = record;
    try {
      await store.rejected.keep(record, result.reason, clock());
    } catch (error) {
      log.error({ error, queue, partition, sequence }, "spool.not-set-aside");
      return false;
    }
    log.warn({ message: result.reason, queue, partition, sequence }, "spool.rejected");
    return true;
  }

  #blockOrFree(key: string, isFree: boolean): void {
    if (isFree) {
      this.#blocked.delete(key);
      return;
    }
    const pauseMs = Math.min(PAUSE_MS_MAX, 2 * (this.#blocked.get(key)?.pauseMs ?? PAUSE_MS_MIN / 2));
    this.#blocked.set(key, { untilMs: this.#options.now() + pauseMs, pauseMs });
  }

  /** Whether a lane's records must wait, because they could not be stored just now. */
  isBlocked({ queue, partition }: LaneName): boolean {
    return this.#blocked.has(laneKey(queue, partition));
  }

  /** The database was away: that was no lane's fault. */
  forgetBlocked(): void {
    this.#blocked.clear();
  }

  async #load(): Promise<void> {
    const { store } = this.#options;
    while (this.#loaded.length < LOADED_RECORDS_MAX && this.#loadedBytes < LOADED_BYTES_MAX) {
      const file = store.files.find(
        ({ number, length }) =>
          number > this.#next.file || (number === this.#next.file && length > this.#next.offset),
      );
      if (!file) return;
      const from = file.number === this.#next.file ? this.#next.offset : 0;
      const to = file.length;
      const { records } = scanRecords(await store.read(file, from, to));
      for (const { record, start } of records) {
        this.#loaded.push({ record, place: { file: file.number, offset: from + start } });
        this.#loadedBytes += record.content.length;
      }
      this.#next = { file: file.number, offset: to };
    }
  }
}
