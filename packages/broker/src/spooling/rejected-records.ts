/**
 * A rejected record is a message that the database refuses for what it is. It is kept in a file of its own in
 * rejected/, with the reason, until an operator has it tried again or discards it. Its id is its sequence.
 */
import { mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { encodeRecord, type SpoolRecord, scanRecords } from "./record.ts";
import { syncFolder } from "./segment-file.ts";

export interface Rejected {
  readonly id: string;
  readonly record: SpoolRecord;
  readonly reason: string;
  readonly rejectedAtMs: number;
}

const NAME = /^(\d{16})\.rejected$/;
const nameOf = (sequence: number): string => `${String(sequence).padStart(16, "0")}.rejected`;

export class RejectedRecords {
  readonly #folder: string;
  /** Ids and sizes, the oldest first. */
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(spoolFolder: string): Promise<RejectedRecords> {
    const rejected = new RejectedRecords(join(spoolFolder, "rejected"));
    await mkdir(rejected.#folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(rejected.#folder)).sort()) {
      const match = NAME.exec(name);
      if (match) rejected.#count(String(Number(match[1])), (await stat(join(rejected.#folder, name))).size);
    }
    return rejected;
  }

  get count(): number {
    return this.#bytesOf.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The largest sequence among them: a new record must not get it. */
  get lastSequence(): number {
    return Math.max(0, ...[...this.#bytesOf.keys()].slice(-1).map(Number));
  }

  get ids(): string[] {
    return [...this.#bytesOf.keys()];
  }

  /** Resolves when it is on the disk. The record first, then its reason in a record of its own. */
  async keep(record: SpoolRecord, reason: string, rejectedAtMs: number): Promise<void> {
    const note = { ...record, content: Buffer.from(JSON.stringify({ reason, rejectedAtMs })) };
    const bytes = Buffer.concat([encodeRecord(record), encodeRecord(note)]);
    const path = join(this.#folder, nameOf(record.sequence));
    const handle = await open(`${path}.new`, "w", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${path}.new`, path);
    await syncFolder(this.#folder);
    this.#count(String(record.sequence), bytes.length);
  }

  async list(limit: number, offset: number): Promise<Rejected[]> {
    const found = await Promise.all(this.ids.slice(offset, offset + limit).map((id) => this.read(id)));
    return found.filter((each) => each !== undefined);
  }

  /** Undefined: there is none, or its file is damaged. */
  async read(id: string): Promise<Rejected | undefined> {
    if (!this.#bytesOf.has(id)) return undefined;
    const { records } = scanRecords(await readFile(join(this.#folder, nameOf(Number(id)))));
    if (records.length !== 2) return undefined;
    const [{ record }, { record: note }] = records as [(typeof records)[0], (typeof records)[0]];
    const { reason, rejectedAtMs } = JSON.parse(note.content.toString()) as Pick<
      Rejected,
      "reason" | "rejectedAtMs"
    >;
    return { id, record, reason, rejectedAtMs };
  }

  async discard(id: string): Promise<boolean> {
    const bytes = this.#bytesOf.get(id);
    if (bytes === undefined) return false;
    await unlink(join(this.#folder, nameOf(Number(id))));
    this.#bytesOf.delete(id);
    this.#bytes -= bytes;
    return true;
  }

  #count(id: string, bytes: number): void {
    this.#bytes += bytes - (this.#bytesOf.get(id) ?? 0);
    this.#bytesOf.set(id, bytes);
  }
}
