/**
 * A password that a person types, twice and without being shown, or that a script gives as the first line of standard
 * input. It is never an argument: those are in the shell's history and in the list of processes.
 */
import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { UsageError } from "./exit-codes.ts";

export async function askPassword(user: string): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const dialogue = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // As Ctrl-C ends a command anywhere else.
  dialogue.once("SIGINT", () => {
    dialogue.close();
    process.kill(process.pid, "SIGINT");
  });
  try {
    const typed = await ask(dialogue, `Password of ${user}: `);
    const again = await ask(dialogue, "Once more: ");
    if (typed !== again) throw new UsageError("The two are not the same; nothing was done");
    return typed;
  } finally {
    dialogue.close();
  }
}

function ask(dialogue: Interface, question: string): Promise<string> {
  process.stderr.write(question);
  return new Promise((resolve, reject) => {
    const closed = (): void => reject(new UsageError("Nothing was typed, and nothing was done"));
    dialogue.once("close", closed);
    dialogue.question("", (answer) => {
      dialogue.off("close", closed);
      process.stderr.write("\n");
      resolve(answer);
    });
  });
}

async function firstLine(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
  const [line = ""] = text.split(/\r?\n/, 1);
  if (line === "") throw new UsageError("A password is needed: type it in a terminal, or send it by a pipe");
  return line;
}
