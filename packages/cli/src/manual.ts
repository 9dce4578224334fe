/** The manual: docs/cli.md, printed from the table of commands. */
import { type Argument, type Command, GLOBAL_OPTIONS, type Option } from "./command.ts";
import { CHAPTERS } from "./commands.ts";
import { EXIT_CODE_MEANINGS } from "./exit-codes.ts";

const TEXT_COLUMNS = 116;

export function manualPage(): string {
  const lines = [
    "# The `queen` command",
    "",
    ...INTRODUCTION,
    "",
    "## Exit codes",
    "",
    "| code | |",
    "|---|---|",
  ];
  for (const [code, meaning] of EXIT_CODE_MEANINGS) lines.push(`| ${code} | ${meaning} |`);
  lines.push("", "## Options of every command", "", ...optionsTable(GLOBAL_OPTIONS));
  for (const { title, commands } of CHAPTERS) {
    lines.push("", `## ${title}`);
    for (const command of commands) lines.push("", ...section(command));
  }
  return `${lines.join("\n")}\n`;
}

const INTRODUCTION = [
  "From a clone: `npm ci`, then `npx queen …`. Without a command it starts a broker, as `npm start` does. Every command",
  "explains itself with `--help`; what is mistyped gets a suggestion; `queen completion` makes your shell complete it.",
  "",
  "**Which broker.** `--url` and `--token`; else a context by `--context`; else `QUEEN_URL` and `QUEEN_TOKEN`; else the",
  "current context; else `http://localhost:6632`. Contexts are in `$XDG_CONFIG_HOME/queen/contexts.json` (`~/.config`),",
  "which only its owner may read. The token of a context is sent to the URL of that context and to no other.",
  "",
  "**What is printed.** Data goes to standard output: a table on a terminal, one JSON value a line elsewhere, or what `-o`",
  "says. Notes, questions, progress and errors go to standard error: a bar on a terminal, plain lines elsewhere. Numbers",
  "are read and printed as they are written, however large. Tables show no control characters of payloads.",
  "",
  "**What cannot be taken back** is asked for on a terminal, and needs `--yes` elsewhere.",
];

function section(command: Command): string[] {
  const { name, summary, details, arguments: taken = [], options = [], examples } = command;
  const lines = [
    `### queen ${name}`,
    "",
    `\`queen ${[name, ...taken.map(argumentText)].join(" ")}\``,
    "",
    ...wrap(`${summary}.`),
  ];
  if (details !== undefined) lines.push("", ...wrap(details));
  if (taken.length + options.length > 0)
    lines.push("", ...table([...taken.map(argumentRow), ...options.map(optionRow)]));
  lines.push("", "```sh", ...examples.flatMap(({ line, meaning }) => [`# ${meaning}`, line]), "```");
  return lines;
}

function argumentText({ name, isOptional, isVariadic }: Argument): string {
  const inner = isVariadic ? `${name}…` : name;
  return isOptional ? `[${inner}]` : `<${inner}>`;
}

const argumentRow = (argument: Argument): [string, string] => [argumentText(argument), argument.summary];

function optionRow({ flags, summary, fallback, choices }: Option): [string, string] {
  const values = choices === undefined ? "" : `: ${choices.join(", ")}`;
  return [flags, `${summary}${values}${fallback === undefined ? "" : ` (${fallback})`}`];
}

const optionsTable = (options: readonly Option[]): string[] => table(options.map(optionRow));

const table = (rows: readonly [string, string][]): string[] => [
  "| | |",
  "|---|---|",
  ...rows.map(([left, right]) => `| \`${left}\` | ${right.replaceAll("|", "\\|")} |`),
];

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > TEXT_COLUMNS) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line];
}
