/**
 * A confirmation stands before everything that cannot be taken back. On a terminal the person is asked; elsewhere there
 * is nobody to ask, and only `--yes` counts.
 */
import { createInterface } from "node:readline/promises";
import type { Call } from "./command.ts";
import { UsageError } from "./exit-codes.ts";

/** Throws unless it is confirmed. `what` says what will happen, as a sentence without its end. */
export async function confirm(call: Call, what: string): Promise<void> {
  if (call.flag("yes")) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError(`${what}: nobody can be asked here, so say --yes if that is meant`);
  }
  const dialogue = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await dialogue.question(`${what}. Type yes to go on: `);
    if (answer.trim().toLowerCase() !== "yes") throw new UsageError("Nothing was done");
  } finally {
    dialogue.close();
  }
}
