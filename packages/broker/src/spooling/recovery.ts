/**
 * Recovery reads what an earlier broker left in the folder. Bytes that are no good record are copied to quarantine/;
 * at the end of a file they are cut off (a record that was being written when the broker died), elsewhere they are
 * passed over whenever the file is read.
 */
import { mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Log } from "../telemetry.ts";
import { readProgress } from "./progress.ts";
import { laneKey, scanRecords } from "./record.ts";
import { type FileFacts, listSegmentFiles } from "./segment-file.ts";

export interface Recovered {
  /** Files that hold records, in their order. */
  readonly files: readonly FileFacts[];
  /** Records that are not drained yet, by lane. */
  readonly lanes: Map<string, number>;
  readonly pending: number;
  readonly lastNumber: number;
  readonly lastSequence: number;
  /** Pieces of damaged bytes that are in quarantine. */
  readonly damaged: number;
}

const QUARANTINE = "quarantine";

export async function recover(folder: string, log: Log): Promise<Recovered> {
  const progress = await readProgress(folder);
  const files: FileFacts[] = [];
  const lanes = new Map<string, number>();
  let [pending, lastSequence, damaged, lastNumber] = [0, 0, 0, progress.file];
  for (const { number, path } of await listSegmentFiles(folder)) {
    lastNumber = Math.max(lastNumber, number);
    const bytes = await readFile(path);
    const { records, damage } = scanRecords(bytes);
    let { length } = bytes;
    for (const { start, end } of damage) {
      damaged++;
      await quarantine(folder, path, start, bytes.subarray(start, end));
      const isTail = end === bytes.length;
      log.warn({ message: damageText(isTail), path, from: start, bytes: end - start }, "spool.damaged");
      if (!isTail) continue;
      await truncate(path, start);
      length = start;
    }
    for (const { start, record } of records) {
      lastSequence = Math.max(lastSequence, record.sequence);
      if (number < progress.file || (number === progress.file && start < progress.offset)) continue;
      const key = laneKey(record.queue, record.partition);
      lanes.set(key, (lanes.get(key) ?? 0) + 1);
      pending++;
    }
    files.push({ number, path, length });
  }
  return { files, lanes, pending, lastNumber, lastSequence, damaged };
}

const damageText = (isTail: boolean): string =>
  isTail
    ? "the end of a file is no whole record: cut off, a copy is in quarantine/; it was never answered unless the disk failed"
    : "damaged bytes inside a file: their records are lost, a copy is in quarantine/; the others are drained";

async function quarantine(folder: string, path: string, start: number, bytes: Buffer): Promise<void> {
  const target = join(folder, QUARANTINE);
  await mkdir(target, { recursive: true, mode: 0o700 });
  await writeFile(join(target, `${basename(path)}-at-${start}`), bytes, { mode: 0o600 });
}
