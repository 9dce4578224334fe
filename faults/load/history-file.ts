/** A history file is a client's history: one JSON line per event, appended as it happens, on disk at the end. */
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { HistoryEvent } from "@queen/test/checker/history";

const FLUSH_BYTES = 64 * 1024;

export class HistoryFile {
  readonly #fd: number;
  #lines = "";

  constructor(folder: string, client: string) {
    this.#fd = openSync(join(folder, `${client}.jsonl`), "a");
  }

  record(event: HistoryEvent): void {
    this.#lines += `${JSON.stringify(event)}\n`;
    if (this.#lines.length > FLUSH_BYTES) this.#flush();
  }

  close(): void {
    this.#flush();
    fsyncSync(this.#fd);
    closeSync(this.#fd);
  }

  #flush(): void {
    writeSync(this.#fd, this.#lines);
    this.#lines = "";
  }
}

/** The events of all files of a folder, in the order of their clock. */
export function readHistory(folder: string): HistoryEvent[] {
  const events = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .flatMap((name) =>
      readFileSync(join(folder, name), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as HistoryEvent),
    );
  return events.sort((a, b) => a.atMs - b.atMs);
}
