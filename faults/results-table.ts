/**
 * The table of results in docs/reliability.md: for each test the last three seeds that it ran with, from the lines in
 * faults/results. A test that failed with a seed and held with the same one later is fixed; the last line counts.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Line {
  readonly at: string;
  readonly commit: string | null;
  readonly id: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  readonly verdict: "ok" | "failed";
  readonly faults: number;
  readonly pushed: number;
  readonly delivered: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  readonly longestStallMs: number;
}

const FOLDER = fileURLToPath(new URL("../results/", import.meta.url));
const PAGE = fileURLToPath(new URL("../../docs/reliability.md", import.meta.url));
const BEGIN = "<!-- results: written by `npm run faults -- --table` from faults/results -->\n";
const END = "<!-- end of results -->\n";
const SEEDS_MAX = 3;
// A mutant is broken on purpose: what it loses says nothing about Queen.
const SHOWN = /^(F\d|patroni|pgbouncer)/;

/** Writes the table, and returns a sentence about it. */
export function writeTable(): string {
  const tests = byTest(readLines());
  const [before, rest] = readFileSync(PAGE, "utf8").split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error("docs/reliability.md has no marks for the table of results");
  writeFileSync(PAGE, before + BEGIN + tableOf(tests) + END + after);
  return `docs/reliability.md has the results of ${tests.length} tests`;
}

function readLines(): Line[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .flatMap((name) => readFileSync(FOLDER + name, "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line)
    .filter(({ id }) => SHOWN.test(id));
}

/** The last lines of each test, one per seed. */
export function byTest(lines: readonly Line[]): Line[][] {
  const tests = new Map<string, Map<number, Line>>();
  for (const line of lines.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    const seeds = tests.get(line.id) ?? new Map<number, Line>();
    seeds.delete(line.seed); // so that the order is that of the last runs
    tests.set(line.id, seeds.set(line.seed, line));
  }
  return [...tests.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, seeds]) => [...seeds.values()].slice(-SEEDS_MAX));
}

function tableOf(tests: readonly (readonly Line[])[]): string {
  const rows = tests.map((lines) => {
    const last = lines.at(-1)!;
    const sum = (pick: (line: Line) => number): string =>
      lines.reduce((total, line) => total + pick(line), 0).toLocaleString("en-US");
    const stallMs = Math.max(...lines.map((line) => line.longestStallMs));
    const seeds = lines
      .map(({ seed, seconds, verdict }) => `${seed} (${seconds} s)${verdict === "ok" ? "" : " **failed**"}`)
      .join(", ");
    const commits = [...new Set(lines.map(({ commit }) => commit?.slice(0, 7) ?? "?"))].join(", ");
    return [
      last.id,
      last.title,
      seeds,
      commits,
      sum((line) => line.faults),
      sum((line) => line.pushed),
      sum((line) => line.delivered),
      sum((line) => line.lost),
      sum((line) => line.duplicated),
      sum((line) => line.reordered),
      `${(stallMs / 1000).toFixed(1)} s`,
    ];
  });
  const head = ["test", "", "seeds", "commits", "faults", "pushed", "delivered"];
  const table = [
    [...head, "lost", "redelivered", "reordered", "longest stall"],
    ["---", "---", "---", "---", ...Array(7).fill("--:")],
    ...rows,
  ];
  return table.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
