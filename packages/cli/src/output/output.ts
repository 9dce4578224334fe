/**
 * What a command prints goes through here: a table for people, JSON, NDJSON or YAML for programs. Data goes to standard
 * output; what is said about it (notes, progress, errors) to standard error.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { restore } from "../exact-json.ts";
import { type Column, cell, renderTable } from "./table.ts";

export const FORMATS = ["table", "json", "ndjson", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

const CLEAR_SCREEN = "\u001b[H\u001b[2J\u001b[3J";
const WIDTH_ELSEWHERE = 160;

export class Output {
  readonly format: Format;

  /** Without a format: a table on a terminal, a line of JSON for each entry elsewhere. */
  constructor(format: Format | undefined) {
    this.format = format ?? (process.stdout.isTTY ? "table" : "ndjson");
  }

  /** A list; programs get the entries as they are, people the columns. */
  async list<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): Promise<void> {
    if (this.format === "table") await this.write(renderTable(rows, columns, width()));
    else if (this.format === "ndjson") await this.write(rows.map(line).join(""));
    else await this.value(rows);
  }

  /** Entries that come one by one, for as long as they come; JSON and YAML are written as a stream, too. */
  async entry<Row extends object>(row: Row, columns: readonly Column<Row>[]): Promise<void> {
    if (this.format === "table") {
      await this.write(`${columns.map(({ value }) => cell(value(row))).join("  ")}\n`);
    } else if (this.format === "yaml") await this.write(`---\n${await yaml(row)}`);
    else await this.write(line(row));
  }

  /** One thing: for people its fields, one a line. */
  async value(value: object): Promise<void> {
    if (this.format === "json") await this.write(`${JSON.stringify(value, null, 2)}\n`);
    else if (this.format === "ndjson") await this.write(line(value));
    else if (this.format === "yaml") await this.write(await yaml(value));
    else await this.write(fields(value));
  }

  /** Something to read, whatever the format. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Waits for who reads: a slow pager must not fill the memory. */
  async write(text: string): Promise<void> {
    if (process.stdout.write(restore(text))) return;
    await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
  }

  /** Shows something once, or every so many seconds until the process is ended. */
  async watch(everySeconds: number | undefined, show: () => Promise<void>): Promise<void> {
    for (;;) {
      if (everySeconds !== undefined && process.stdout.isTTY) process.stdout.write(CLEAR_SCREEN);
      await show();
      if (everySeconds === undefined) return;
      await sleep(everySeconds * 1_000);
    }
  }
}

/** Loaded by who wants it: most do not. */
const yaml = async (value: object): Promise<string> => (await import("yaml")).stringify(value);

const width = (): number => process.stdout.columns ?? WIDTH_ELSEWHERE;
const line = (value: object): string => `${JSON.stringify(value)}\n`;

function fields(value: object): string {
  const entries = flatten(value, "");
  const nameWidth = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.map(([name, each]) => `${name.padEnd(nameWidth)}  ${cell(each)}\n`).join("");
}

/** Fields of objects inside by their path; arrays as JSON. */
function flatten(value: object, prefix: string): [string, unknown][] {
  return Object.entries(value).flatMap(([name, each]): [string, unknown][] =>
    typeof each === "object" && each !== null && !Array.isArray(each) && Object.keys(each).length > 0
      ? flatten(each, `${prefix}${name}.`)
      : [[prefix + name, each]],
  );
}
