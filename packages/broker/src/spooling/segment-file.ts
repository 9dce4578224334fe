/**
 * A segment file is a part of the spool: records back to back, appended and synced by one process.
 *
 *   open ──append──▶ written ──sync──▶ synced ──…──▶ sealed
 *                       │ failed          │ failed
 *                       ▼                 ▼
 *                   cut back           sealed, and never synced again: the next sync might say that all is well
 *                                      although the pages that the failed one lost are gone
 *
 * Bytes up to `length` are synced; what is behind counts for nothing.
 */
import type { FileHandle } from "node:fs/promises";
import { open, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";

export interface FileFacts {
  readonly number: number;
  readonly path: string;
  readonly length: number;
}

export type OpenFile = (path: string, flags: string, mode: number) => Promise<FileHandle>;

const NAME = /^spool-(\d{12})\.log$/;
const OWNER_ONLY = 0o600;

export class SegmentFile implements FileFacts {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  #length = 0;
  #isSealed = false;
  #isClosed = false;

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  static async create(folder: string, number: number, openFile: OpenFile = open): Promise<SegmentFile> {
    const path = join(folder, `spool-${String(number).padStart(12, "0")}.log`);
    const file = new SegmentFile(number, path, await openFile(path, "wx", OWNER_ONLY));
    try {
      await syncFolder(folder); // so that the file is there after a power cut, too
    } catch (error) {
      await file.remove();
      throw error;
    }
    return file;
  }

  get length(): number {
    return this.#length;
  }

  get isSealed(): boolean {
    return this.#isSealed;
  }

  /** Appends and syncs; `between` is called in between. When it rejects, nothing was added. */
  async append(bytes: Buffer, between: () => void): Promise<void> {
    try {
      await writeAll(this.#handle, bytes, this.#length);
    } catch (error) {
      await this.#cutBack();
      throw error;
    }
    between();
    try {
      await this.#handle.datasync();
    } catch (error) {
      this.#isSealed = true;
      await this.#cutBack();
      throw error;
    }
    this.#length += bytes.length;
  }

  /** Takes nothing more. */
  async seal(): Promise<void> {
    this.#isSealed = true;
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#handle.close();
  }

  async remove(): Promise<void> {
    await this.seal().catch(() => {}); // what is about to go need not be closed well
    await unlink(this.path);
  }

  async #cutBack(): Promise<void> {
    try {
      await this.#handle.truncate(this.#length);
    } catch {
      this.#isSealed = true; // whatever is behind its length is never read here
    }
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The segment files of a folder, in their order. */
export async function listSegmentFiles(folder: string): Promise<{ number: number; path: string }[]> {
  return (await readdir(folder))
    .flatMap((name) => {
      const match = NAME.exec(name);
      return match ? [{ number: Number(match[1]), path: join(folder, name) }] : [];
    })
    .sort((a, b) => a.number - b.number);
}
