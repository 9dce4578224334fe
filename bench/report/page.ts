/**
 * The page docs/benchmarks.md is written by hand, except for parts between two marks, which are replaced by the tables
 * and charts of the newest session of a suite that was not ended early; of growth, of each axis, as curves are not
 * compared with each other. The charts go to docs/benchmarks. Scenarios have two parts: on the embedded database, and,
 * without charts, on one that was given.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ResultLine } from "../results.ts";
import { AXES } from "../suites/growth.ts";
import type { SuiteName } from "../suites/scenario.ts";
import { chartsOf } from "./charts.ts";
import { number } from "./format.ts";
import { machineSpeed } from "./machine-speed.ts";
import { summarise } from "./summary.ts";
import { cellsOf } from "./tables.ts";

type Database = ResultLine["settings"]["database"];

interface Part {
  readonly name: string;
  readonly suite: SuiteName;
  /** Undefined: any. */
  readonly database?: Database;
  readonly hasCharts: boolean;
}

const PARTS: readonly Part[] = [
  { name: "scenarios", suite: "scenarios", database: "embedded", hasCharts: true },
  { name: "scenarios-given", suite: "scenarios", database: "given", hasCharts: false },
  { name: "peers", suite: "peers", hasCharts: true },
  { name: "growth", suite: "growth", hasCharts: true },
  { name: "memory", suite: "memory", hasCharts: true },
];
const DOCS = fileURLToPath(new URL("../../../docs/", import.meta.url));

/** Writes the page and its charts, and returns the files. A session that is named is reported as far as it came. */
export function writePage(all: readonly ResultLine[], session: string | null, docs = DOCS): string[] {
  const lines = session === null ? wholeSessions(all) : all;
  const page = `${docs}benchmarks.md`;
  const files: string[] = [];
  let text = readFileSync(page, "utf8");
  for (const { name, suite, database, hasCharts } of PARTS) {
    const own =
      suite === "growth"
        ? AXES.flatMap((axis) =>
            newestSession(
              lines.filter(({ scenario }) => axisOf(scenario) === axis.name),
              suite,
              session,
            ),
          )
        : newestSession(lines, suite, session, database);
    if (own.length === 0) continue;
    const charts = hasCharts ? chartsOf(suite, own) : [];
    mkdirSync(`${docs}benchmarks`, { recursive: true });
    for (const { name: chart, svg } of charts) {
      const file = `${docs}benchmarks/${chart}.svg`;
      writeFileSync(file, svg);
      files.push(file);
    }
    const images = charts.map(({ name: chart, title }) => `![${title}](benchmarks/${chart}.svg)`);
    text = replacePart(
      text,
      name,
      [...allCircumstances(suite, own), markdownTable(cellsOf(suite, own)), ...images].join("\n\n"),
    );
  }
  writeFileSync(page, text);
  return [...files, page];
}

/** Without the lines of sessions that were ended early. */
export function wholeSessions(lines: readonly ResultLine[]): ResultLine[] {
  const counts = new Map<string, number>();
  for (const { session } of lines) counts.set(session, (counts.get(session) ?? 0) + 1);
  return lines.filter(({ session, runs = 0 }) => counts.get(session)! >= runs);
}

/** The lines of the suite's newest session, or of the newest one that began at the given time. */
export function newestSession(
  lines: readonly ResultLine[],
  suite: SuiteName,
  session: string | null,
  database?: Database,
): ResultLine[] {
  const eligible = lines.filter(
    (line) =>
      line.suite === suite &&
      !line.settings.isQuick &&
      line.session.startsWith(session ?? "") &&
      (database === undefined || line.settings.database === database),
  );
  const newest = eligible.reduce((latest, line) => (line.session > latest ? line.session : latest), "");
  return eligible.filter((line) => line.session === newest);
}

export function replacePart(page: string, name: string, content: string): string {
  const begin = `<!-- bench ${name}: begin -->`;
  const end = `<!-- bench ${name}: end -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(
      `docs/benchmarks.md has no part for ${name}: add the lines "${begin}" and "${end}" to it`,
    );
  }
  return `${page.slice(0, from + begin.length)}\n${content}\n${page.slice(to)}`;
}

const axisOf = (scenario: string): string => scenario.replace(/-\d+$/, "");

/** A sentence for each session that the part is of. */
function allCircumstances(suite: SuiteName, lines: readonly ResultLine[]): string[] {
  const sessions = [...new Set(lines.map(({ session }) => session))];
  return sessions.map((session) => {
    const own = lines.filter((line) => line.session === session);
    const axes = [...new Set(own.map(({ scenario }) => axisOf(scenario)))];
    return circumstances(own, suite === "growth" && sessions.length > 1 ? `${axes.join(", ")} ` : "");
  });
}

/** Where, when and of what: commit, machine, settings. */
function circumstances(lines: readonly ResultLine[], what: string): string {
  const { commit, isDirty, session, machine, node, settings } = lines[0]!;
  const postgres = lines.find((line) => line.postgres)?.postgres;
  const rounds = Math.max(...lines.map(({ round }) => round));
  const speed = machineSpeed(summarise(lines));
  const parts = [
    `commit ${commit?.slice(0, 12) ?? "unknown"}${isDirty ? " with changes" : ""}`,
    `${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB`,
    ...(speed === null ? [] : [`${number(speed)} times as fast as the C++ server's machine by bare HTTP`]),
    `Node ${node.replace(/^v/, "")}`,
    ...(postgres ? [`PostgreSQL ${postgres.version} (${settings.database}), ${durability(postgres)}`] : []),
    `${rounds === 1 ? "one round" : `${rounds} rounds`} of ${settings.seconds} s after ${settings.warmupSeconds} s`,
    `payload padding ${settings.padding}`,
  ];
  return `Measured ${what}${session.slice(0, 10)}: ${parts.join("; ")}.`;
}

const durability = (settings: Readonly<Record<string, string>>): string =>
  ["fsync", "synchronous_commit", "full_page_writes", "shared_buffers"]
    .map((name) => `${name} ${settings[name] ?? "unknown"}`)
    .join(", ");

export function markdownTable(cells: readonly (readonly string[])[]): string {
  const [head = [], ...rows] = cells;
  // A column that nobody has anything for says nothing.
  const used = head.map((_, column) => column === 0 || rows.some((row) => row[column] !== ""));
  const markdown = (row: readonly string[]): string =>
    `| ${row
      .filter((_, column) => used[column])
      .map((cell) => cell.replaceAll("|", "\\|"))
      .join(" | ")} |`;
  return [markdown(head), `|${"---|".repeat(used.filter(Boolean).length)}`, ...rows.map(markdown)].join("\n");
}
