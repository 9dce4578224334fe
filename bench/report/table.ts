/** The table that the command prints in the end, and the list of rows. */
import type { ResultLine } from "../results.ts";
import type { Scenario, SuiteName } from "../suites/scenario.ts";
import { cellsOf } from "./tables.ts";

export const terminalTable = (suite: SuiteName, lines: readonly ResultLine[]): string =>
  layOut(cellsOf(suite, lines).map((row) => row.map((cell) => cell.replaceAll("**", ""))));

/** Columns of numbers stand right, others left. */
function layOut(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  const widths = head.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  const isNumber = head.map((_, column) => body.every((cells) => /^(no rate|[\d(]|$)/.test(cells[column]!)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) =>
          isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The rows as --list shows them. */
export function listing(scenarios: readonly Scenario[]): string {
  const width = Math.max(...scenarios.map(({ id }) => id.length)) + 1;
  return scenarios
    .map((scenario) => {
      const unit = scenario.compares === "rate" ? "msgs/s" : "ms p50";
      const references = Object.entries({ upstream: scenario.upstream, trial: scenario.trial })
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name} ${value!.toLocaleString("en")} ${unit}`);
      const goal = scenario.goal === "" ? [] : [`goal ${scenario.goal}`];
      const compared = [...references, ...goal].join("; ");
      const lines = [
        `${scenario.id.padEnd(width)}${scenario.asks}${scenario.isFull ? " (only with --full)" : ""}`,
        `${"".padEnd(width)}correct: ${scenario.correct}`,
        ...(compared === "" ? [] : [`${"".padEnd(width)}${compared}`]),
      ];
      return lines.join("\n");
    })
    .join("\n");
}
