/** The table in docs/security.md: what was tried and what came back. */
import { readFileSync, writeFileSync } from "node:fs";
import type { AttackResult } from "./programme.ts";

const PAGE = new URL("../../../docs/security.md", import.meta.url);
const BEGIN = "<!-- hostile: written by npm run hostile -- --report -->\n";
const END = "<!-- end of hostile -->\n";
const ANSWERS_MAX = 6;

/** The most frequent answers, with how often they came. */
export function answersOf({ notes }: AttackResult): string {
  const sorted = [...notes.answers].sort((a, b) => b[1] - a[1]);
  const shown = sorted.slice(0, ANSWERS_MAX).map(([answer, count]) => `${answer} × ${count}`);
  return [...shown, ...(sorted.length > ANSWERS_MAX ? ["…"] : [])].join(", ");
}

export function writeReport(results: readonly AttackResult[], seed: number): void {
  const rows = results.map((result) => {
    const { attack, notes, control, rssMb } = result;
    const [before, most] = rssMb;
    const verdict = notes.problems.length === 0 ? "held" : "failed";
    return `| ${attack.id} | ${attack.what} | ${notes.tried} | ${answersOf(result)} | ${control.requests} | ${control.p99Ms.toFixed(0)} | ${Math.max(0, most - before)} | ${verdict} |`;
  });
  const table = [
    `Seed ${seed}.`,
    "",
    "| id | what was sent | tried | what came back | requests beside it, all good | 99 % of them within, ms | memory more at most, MB | |",
    "|---|---|---|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
  const [head, rest] = readFileSync(PAGE, "utf8").split(BEGIN);
  const tail = rest?.split(END)[1];
  if (tail === undefined) throw new Error("docs/security.md has no marks for the table of hostile input");
  writeFileSync(PAGE, head + BEGIN + table + END + tail);
}
