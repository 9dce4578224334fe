/**
 * The progress is the place up to which everything in the spool is stored or set aside. It is written after each
 * batch and not synced: it survives a killed broker, and after a power cut a little is drained again, which the
 * look-up in the log makes harmless.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Place {
  /** The number of a segment file. */
  readonly file: number;
  readonly offset: number;
}

const START: Place = { file: 0, offset: 0 };

export async function readProgress(folder: string): Promise<Place> {
  try {
    const { file, offset } = JSON.parse(await readFile(pathOf(folder), "utf8")) as Record<string, unknown>;
    return Number.isSafeInteger(file) && Number.isSafeInteger(offset) ? ({ file, offset } as Place) : START;
  } catch {
    return START; // there is none, or it was being written
  }
}

export async function noteProgress(folder: string, place: Place): Promise<void> {
  await writeFile(pathOf(folder), JSON.stringify(place), { mode: 0o600 });
}

export const isBefore = (a: Place, b: Place): boolean =>
  a.file < b.file || (a.file === b.file && a.offset < b.offset);

const pathOf = (folder: string): string => join(folder, "progress.json");
