/**
 * The spool store is what is on the disk: segment files with records that wait to be drained, counted by lane.
 * Records are written in the order in which they are added. Those that come while a sync is under way go together
 * into the next one. Bounded in bytes; a record that does not fit is refused, and nothing is ever dropped.
 */
import { open, unlink } from "node:fs/promises";
import { BrokerError } from "@queen/protocol";
import { crashPoint } from "../crash-point.ts";
import type { Log } from "../telemetry.ts";
import { encodeRecord, laneKey, type NewRecord, type SpoolRecord } from "./record.ts";
import { recover } from "./recovery.ts";
import { RejectedRecords } from "./rejected-records.ts";
import { type FileFacts, type OpenFile, SegmentFile } from "./segment-file.ts";

export interface SpoolStoreOptions {
  readonly folder: string;
  readonly bytesMax: number;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly openFile?: OpenFile;
}

interface Group {
  readonly lanes: readonly string[];
  readonly bytes: Buffer;
  readonly resolve: () => void;
  readonly reject: (error: BrokerError) => void;
}

/** A file larger than this takes nothing more: a drained file goes whole, so files should go soon. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;
// What waits for the disk waits in memory.
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
// A disk that failed is asked again after this; in between, pushes are refused at once.
const FAILURE_PAUSE_MS = 1_000;

export class SpoolStore {
  readonly rejected: RejectedRecords;
  readonly damaged: number;
  readonly #options: SpoolStoreOptions;
  readonly #lanes: Map<string, number>;
  readonly #old: FileFacts[];
  #current: SegmentFile | undefined;
  #waiting: Group[] = [];
  #isWriting = false;
  #written: Promise<void> = Promise.resolve();
  #reservedBytes = 0;
  #pending: number;
  #lastNumber: number;
  #lastSequence: number;
  #failure: { readonly error: Error; readonly untilMs: number } | undefined;

  static async open(options: SpoolStoreOptions): Promise<SpoolStore> {
    const rejected = await RejectedRecords.open(options.folder);
    return new SpoolStore(options, rejected, await recover(options.folder, options.log));
  }

  private constructor(
    options: SpoolStoreOptions,
    rejected: RejectedRecords,
    recovered: Awaited<ReturnType<typeof recover>>,
  ) {
    this.#options = options;
    this.rejected = rejected;
    this.damaged = recovered.damaged;
    this.#lanes = recovered.lanes;
    this.#old = [...recovered.files];
    this.#pending = recovered.pending;
    this.#lastNumber = recovered.lastNumber;
    this.#lastSequence = Math.max(recovered.lastSequence, rejected.lastSequence);
  }

  /** Records that are not drained yet. */
  get pending(): number {
    return this.#pending;
  }

  get bytes(): number {
    return this.files.reduce((sum, file) => sum + file.length, 0) + this.#reservedBytes;
  }

  /** Whether the last write went well. */
  get isHealthy(): boolean {
    return this.#failure === undefined;
  }

  /** In their order; only the last one still grows. */
  get files(): readonly FileFacts[] {
    return this.#current ? [...this.#old, this.#current] : this.#old;
  }

  holds(queue: string, partition: string): boolean {
    return this.#lanes.has(laneKey(queue, partition));
  }

  /** Resolves when the records are synced. Rejects with SPOOL_UNAVAILABLE; then none of them was answered for. */
  add(records: readonly NewRecord[]): Promise<void> {
    const { bytesMax, clock } = this.#options;
    const spooledAtMs = clock();
    if (this.#failure && spooledAtMs < this.#failure.untilMs)
      return Promise.reject(failed(this.#failure.error));
    const bytes = Buffer.concat(
      records.map((record) => encodeRecord({ ...record, sequence: ++this.#lastSequence, spooledAtMs })),
    );
    if (this.#reservedBytes + bytes.length > WAITING_BYTES_MAX && this.#reservedBytes > 0)
      return Promise.reject(new BrokerError("OVERLOADED", "The spool's disk is too slow. Try again later."));
    if (this.bytes + this.rejected.bytes + bytes.length > bytesMax) return Promise.reject(full(bytesMax));
    const lanes = records.map((record) => laneKey(record.queue, record.partition));
    for (const lane of lanes) this.#lanes.set(lane, (this.#lanes.get(lane) ?? 0) + 1);
    this.#pending += records.length;
    this.#reservedBytes += bytes.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lanes, bytes, resolve, reject });
      if (!this.#isWriting) this.#written = this.#write();
    });
  }

  /** A record is stored or set aside. */
  finished({ queue, partition }: SpoolRecord): void {
    this.#forget(laneKey(queue, partition));
  }

  /** The bytes of a file between two offsets. The file may grow meanwhile. */
  async read(file: FileFacts, from: number, to: number): Promise<Buffer> {
    const handle = await open(file.path, "r");
    try {
      const bytes = Buffer.allocUnsafe(to - from);
      let done = 0;
      while (done < bytes.length) {
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, from + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return bytes.subarray(0, done);
    } finally {
      await handle.close();
    }
  }

  /** Removes the files before this one; everything in them is finished. */
  async removeBefore(number: number): Promise<void> {
    while (this.#old.length > 0 && this.#old[0]!.number < number) {
      crashPoint("spool-before-unlink");
      await unlink(this.#old[0]!.path);
      this.#old.shift();
    }
  }

  /** Everything is finished: the file that grows is closed and goes, too. */
  async removeAll(): Promise<void> {
    if (this.#pending > 0 || this.#isWriting) return;
    const last = this.#lastNumber;
    await this.#retire();
    await this.removeBefore(last + 1);
  }

  async close(): Promise<void> {
    while (this.#isWriting) await this.#written;
    await this.#current?.seal();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const groups = this.#nextGroups();
      const bytes = Buffer.concat(groups.map((group) => group.bytes));
      try {
        crashPoint("spool-before-write");
        const file = await this.#fileToWrite();
        await file.append(bytes, () => crashPoint("spool-before-sync"));
        crashPoint("spool-after-sync");
        this.#failure = undefined;
        this.#reservedBytes -= bytes.length;
        for (const group of groups) group.resolve();
      } catch (error) {
        const { log, clock } = this.#options;
        log.error({ error }, "spool.write-failed");
        this.#failure = { error: error as Error, untilMs: clock() + FAILURE_PAUSE_MS };
        this.#reservedBytes -= bytes.length;
        for (const group of groups) {
          for (const lane of group.lanes) this.#forget(lane);
          group.reject(failed(error as Error));
        }
      }
    }
    this.#isWriting = false; // in the same turn as the last look at what waits
  }

  #nextGroups(): Group[] {
    let bytes = 0;
    const count = this.#waiting.findIndex((group) => {
      bytes += group.bytes.length;
      return bytes > FILE_BYTES_MAX;
    });
    return this.#waiting.splice(0, count < 0 ? this.#waiting.length : Math.max(1, count));
  }

  async #fileToWrite(): Promise<SegmentFile> {
    const { folder, openFile } = this.#options;
    const current = this.#current;
    if (current && !current.isSealed && current.length < FILE_BYTES_MAX) return current;
    await this.#retire();
    this.#current = await SegmentFile.create(folder, ++this.#lastNumber, openFile);
    return this.#current;
  }

  /** The file that grows takes nothing more. */
  async #retire(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (!current) return;
    if (current.length === 0) return current.remove();
    this.#old.push(current);
    await current.seal();
  }

  #forget(lane: string): void {
    this.#pending--;
    const left = this.#lanes.get(lane)! - 1;
    if (left > 0) this.#lanes.set(lane, left);
    else this.#lanes.delete(lane);
  }
}

const full = (bytesMax: number): BrokerError =>
  new BrokerError(
    "SPOOL_UNAVAILABLE",
    `The spool is full (QUEEN_SPOOL_MAX_BYTES=${bytesMax}) and PostgreSQL does not take messages. Try again later.`,
  );

const failed = (error: Error): BrokerError =>
  new BrokerError("SPOOL_UNAVAILABLE", `The spool cannot be written: ${error.message}. Try again later.`, {
    cause: error,
  });
