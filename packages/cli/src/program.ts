/** The program: the table of commands as a parser, with help, examples, and suggestions for what was mistyped. */
import { CommanderError, InvalidArgumentError, Command as Parser, Option as ParserOption } from "commander";
import { Call, type Command, GLOBAL_OPTIONS, type Option } from "./command.ts";
import { CHAPTERS, FAMILIES } from "./commands.ts";
import { type Api, commandError, connect } from "./connection.ts";
import { type Context, chooseContext, contextsFile, readContexts } from "./contexts.ts";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type ExitCode, UsageError } from "./exit-codes.ts";
import { type Format, Output } from "./output/output.ts";

/** Runs one command line and resolves with the exit code. */
export async function run(argv: readonly string[], version: string): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT_CODES.ok;
  const program = makeProgram(version, async (command, call) => {
    exitCode = (await command.run(call)) ?? EXIT_CODES.ok;
  });
  try {
    await program.parseAsync(withDefault(argv), { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
  }
}

/** `queen` alone, or with flags of the broker only, starts a broker; `queen groups` and its like alone list. */
function withDefault(argv: readonly string[]): string[] {
  const [first, ...rest] = argv;
  if (first === undefined || /^--(?:port|host)(?:=|$)/.test(first)) return ["serve", ...argv];
  const isAlone = rest.length === 0 || /^-(?!h$|-help$)/.test(rest[0]!);
  return isAlone && LISTED_FAMILIES.has(first) ? [first, "list", ...rest] : [...argv];
}

// Families whose list needs to be told nothing.
const LISTED_FAMILIES = new Set(
  CHAPTERS.flatMap(({ commands }) => commands)
    .filter(({ name, arguments: args = [] }) => name.endsWith(" list") && args.every((one) => one.isOptional))
    .map(({ name }) => name.split(" ")[0]!),
);

type Runner = (command: Command, call: Call) => Promise<void>;

function makeProgram(version: string, runner: Runner): Parser {
  const program = new Parser("queen")
    .description("Queen: a partitioned message queue on PostgreSQL.\nWithout a command it starts a broker.")
    .version(version, "-V, --version", "Print the version")
    .helpOption("-h, --help", "Print this text")
    .helpCommand("help [command]", "Print the help of a command")
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .showHelpAfterError("See --help.")
    .showSuggestionAfterError(true)
    .exitOverride()
    .addHelpText("after", programHelp());
  for (const option of GLOBAL_OPTIONS) program.addOption(parserOption(option));
  const families = new Map<string, Parser>();
  for (const { title, commands } of CHAPTERS) {
    for (const command of commands) {
      const [first, second] = command.name.split(" ") as [string, string?];
      if (second === undefined) {
        addCommand(program, first, command, runner).helpGroup(`${title}:`);
        continue;
      }
      let family = families.get(first);
      if (family === undefined) {
        family = program.command(first).description(FAMILIES[first]!).helpGroup(`${title}:`);
        family.helpCommand(false);
        families.set(first, family);
      }
      addCommand(family, second, command, runner);
    }
  }
  return program;
}

function addCommand(parent: Parser, name: string, command: Command, runner: Runner): Parser {
  const parser = parent.command(name).summary(command.summary);
  parser.description(
    command.details === undefined ? command.summary : `${command.summary}.\n\n${command.details}`,
  );
  for (const { name, summary, isOptional, isVariadic } of command.arguments ?? []) {
    const inner = `${name}${isVariadic ? "..." : ""}`;
    parser.argument(isOptional ? `[${inner}]` : `<${inner}>`, summary);
  }
  for (const option of command.options ?? []) parser.addOption(parserOption(option));
  const examples = command.examples.map(({ line, meaning }) => `  # ${meaning}\n  ${line}`).join("\n\n");
  parser.addHelpText("after", `\nExamples:\n${examples}`);
  parser.action(async () => {
    try {
      await runner(command, makeCall(command, parser));
    } catch (error) {
      throw commandError(error);
    }
  });
  return parser;
}

function makeCall(command: Command, parser: Parser): Call {
  const options: Record<string, unknown> = parser.optsWithGlobals();
  const values = new Map<string, string | readonly string[]>();
  for (const [index, { name }] of (command.arguments ?? []).entries()) {
    const value = parser.processedArgs[index] as string | readonly string[] | undefined;
    if (value !== undefined) values.set(name, value);
  }
  const output = new Output(options.output as Format | undefined);
  const connectToBroker = (): Api => connect(contextOf(options, output));
  return new Call({ arguments: values, options, output, env: process.env, connect: connectToBroker });
}

function contextOf(options: Record<string, unknown>, output: Output): Context {
  const wanted = options as { url?: string; token?: string; context?: string };
  const contexts = readContexts(contextsFile(process.env), (text) => output.note(`queen: ${text}`));
  return chooseContext(wanted, process.env, contexts);
}

function parserOption({ flags, summary, fallback, choices, integer, isRepeatable }: Option): ParserOption {
  const option = new ParserOption(flags, summary);
  if (choices !== undefined) option.choices(choices);
  if (fallback !== undefined) option.default(fallback);
  if (integer !== undefined) option.argParser((text) => parseInteger(text, integer));
  if (isRepeatable) option.argParser((text, before: string[] = []) => [...before, text]);
  return option;
}

function parseInteger(text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
}

function programHelp(): string {
  const codes = EXIT_CODE_MEANINGS.map(([code, meaning]) => `  ${code}  ${meaning}`).join("\n");
  return `
Exit codes:
${codes}

Examples:
  # Start a broker on port 6632
  queen

  # Push a message and watch the queue
  queen push orders '{"total": 99.90}' --partition customer-42
  queen tail orders -f`;
}

/** What to print about an error, for people. */
export function describeError(error: unknown): string {
  if (error instanceof UsageError || (error instanceof Error && "exitCode" in error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
