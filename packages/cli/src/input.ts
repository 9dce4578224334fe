/** Input of a command: lines of JSON (NDJSON), from a file or from standard input. */
import { createReadStream, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { parseExactly } from "./exact-json.ts";
import { UsageError } from "./exit-codes.ts";

export interface Input {
  /** Undefined: it is not a file. */
  readonly bytes: number | undefined;
  readonly stream: Readable;
  readonly name: string;
}

export interface InputLine {
  readonly value: unknown;
  readonly number: number;
  /** Bytes up to and with this line. */
  readonly bytesRead: number;
}

/** `-` or nothing is standard input. */
export function openInput(file: string | undefined): Input {
  if (file === undefined || file === "-") {
    if (process.stdin.isTTY) {
      process.stderr.write("Reading from the terminal: one JSON value a line, Ctrl-D ends it.\n");
    }
    return { bytes: undefined, stream: process.stdin, name: "standard input" };
  }
  try {
    return { bytes: statSync(file).size, stream: createReadStream(file), name: file };
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** Empty lines are passed over; a line that is not JSON is named. */
export async function* readLines(input: Input): AsyncGenerator<InputLine> {
  let number = 0;
  let bytesRead = 0;
  for await (const line of textLines(input.stream)) {
    number += 1;
    bytesRead += Buffer.byteLength(line) + 1;
    if (line.trim() === "") continue;
    try {
      yield { value: parseExactly(line), number, bytesRead };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new UsageError(`Line ${number} of ${input.name} is not JSON: ${error.message}`, { cause: error });
    }
  }
}

/** readline would lose lines that come before it is read from, and breaks lines at U+2028. */
async function* textLines(stream: Readable): AsyncGenerator<string> {
  stream.setEncoding("utf8");
  let rest = "";
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** The whole input as one JSON value, or as the list of its lines. */
export async function readDocument(input: Input): Promise<unknown> {
  let text = "";
  input.stream.setEncoding("utf8");
  for await (const chunk of input.stream as AsyncIterable<string>) text += chunk;
  try {
    return parseExactly(text);
  } catch (whole) {
    try {
      return text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map(parseExactly);
    } catch {
      throw new UsageError(`${input.name} is not JSON: ${(whole as Error).message}`, { cause: whole });
    }
  }
}
