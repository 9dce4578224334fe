/** The command line of the broker: flags, which go before variables, and the text of `--help`. */
import { parseArgs } from "node:util";
import { ConfigError, problemWith } from "./config.ts";
import { defaultText, meaningOf, rowsOf } from "./config-page.ts";
import { FIELD_ROWS, GROUPS } from "./config-table.ts";

const FLAGS = {
  help: { type: "boolean", meaning: "Print this text." },
  version: { type: "boolean", meaning: "Print the version." },
  "print-config": {
    type: "boolean",
    meaning: "Print the configuration that would be used, without secrets.",
  },
  port: { type: "string", value: "N", variable: "PORT", meaning: "Listen on this port, whatever PORT says." },
  host: {
    type: "string",
    value: "H",
    variable: "HOST",
    meaning: "Listen on this address, whatever HOST says.",
  },
} as const;

export interface Arguments {
  readonly action: "serve" | "help" | "version" | "print-config";
  /** Variables that flags set, to lay over the environment: `{ ...env, ...overrides }`. */
  readonly overrides: Readonly<Record<string, string>>;
}

/** Takes the arguments after the program's name. Throws a ConfigError that names every mistake. */
export function parseArguments(argv: readonly string[]): Arguments {
  const { tokens } = parseArgs({ args: [...argv], options: FLAGS, strict: false, tokens: true });
  const problems: string[] = [];
  const overrides: Record<string, string> = {};
  const actions = new Set<string>();
  for (const token of tokens) {
    if (token.kind === "positional") {
      problems.push(`Unexpected argument "${token.value}": the broker takes only flags, see --help`);
    }
    if (token.kind !== "option") continue;
    if (!isFlag(token.name)) {
      problems.push(`Unknown flag ${token.rawName}: ${suggestion(token.name)}`);
      continue;
    }
    const flag = FLAGS[token.name];
    if (flag.type === "boolean") {
      if (token.value !== undefined) problems.push(`--${token.name} takes no value, got "${token.value}"`);
      actions.add(token.name);
    } else if (!token.value || (!token.inlineValue && token.value.startsWith("--"))) {
      problems.push(`--${token.name} needs a value, as in --${token.name} ${flag.value}`);
    } else {
      const row = FIELD_ROWS.find(({ name }) => name === flag.variable)!;
      const problem = problemWith(`--${token.name}`, row, token.value);
      if (problem) problems.push(problem);
      overrides[flag.variable] = token.value;
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const action = (["help", "version", "print-config"] as const).find((name) => actions.has(name));
  return { action: action ?? "serve", overrides };
}

function isFlag(name: string): name is keyof typeof FLAGS {
  return Object.hasOwn(FLAGS, name);
}

function suggestion(name: string): string {
  const [nearest, distance] = Object.keys(FLAGS)
    .map((flag) => [flag, editDistance(name, flag)] as const)
    .reduce((best, next) => (next[1] < best[1] ? next : best));
  return distance <= Math.ceil(nearest.length / 2) ? `did you mean --${nearest}?` : "see --help";
}

/** Insertions, deletions and replacements of one character that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = row[j - 1]! + (letter === to[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, replaced));
    }
    row = next;
  }
  return row[to.length]!;
}

const HELP_COLUMNS = 100;
const HELP_NAME_COLUMNS = 32;

export function helpText(version: string): string {
  const lines = [
    `Queen broker ${version}: a partitioned message queue on PostgreSQL`,
    "",
    "Usage: queen-broker [flags]",
    "       queen-broker keys --help",
    "",
    "Flags",
  ];
  for (const [name, flag] of Object.entries(FLAGS)) {
    lines.push(...helpEntry(`--${name}${"value" in flag ? ` ${flag.value}` : ""}`, flag.meaning));
  }
  lines.push("", "Environment variables");
  for (const group of GROUPS) {
    lines.push("", group);
    for (const row of rowsOf(group)) {
      lines.push(...helpEntry(row.name, `${meaningOf(row)} Default: ${defaultText(row)}.`));
    }
  }
  return `${lines.join("\n")}\n`;
}

/** The name in one column, the text wrapped in the other. */
function helpEntry(name: string, text: string): string[] {
  const lines: string[] = [];
  let line = `  ${name}`.padEnd(HELP_NAME_COLUMNS);
  for (const word of text.split(" ")) {
    if (line.length > HELP_NAME_COLUMNS && line.length + 1 + word.length > HELP_COLUMNS) {
      lines.push(line);
      line = " ".repeat(HELP_NAME_COLUMNS);
    }
    line += line.length > HELP_NAME_COLUMNS ? ` ${word}` : word;
  }
  return [...lines, line];
}
