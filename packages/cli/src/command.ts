/**
 * A command is one row of the table in commands.ts: its name, what it takes, examples, and the function that does it.
 * Help, completion, the manual in docs/cli.md and the parser are all made from it.
 */
import type { Api } from "./connection.ts";
import type { ExitCode } from "./exit-codes.ts";
import { FORMATS, type Output } from "./output/output.ts";

export interface Argument {
  readonly name: string;
  readonly summary: string;
  readonly isOptional?: boolean;
  readonly isVariadic?: boolean;
}

export interface Option {
  /** As in `-g, --group <name>`. */
  readonly flags: string;
  readonly summary: string;
  readonly fallback?: string | number;
  readonly choices?: readonly string[];
  /** Whether the value is an integer; checked before the command runs. */
  readonly integer?: { readonly min: number; readonly max: number };
  /** May be said more than once. */
  readonly isRepeatable?: boolean;
}

export interface Example {
  readonly line: string;
  readonly meaning: string;
}

export interface Command {
  /** With the name of its family before it, as in `dlq requeue`. */
  readonly name: string;
  readonly summary: string;
  /** More about it, for `--help` and the manual. */
  readonly details?: string;
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  readonly examples: readonly Example[];
  /** Resolves with an exit code other than 0 where there is something to say with it. */
  run(call: Call): Promise<ExitCode | undefined>;
}

/** What a command gets: its arguments, and the world around it. */
export class Call {
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  readonly #arguments: ReadonlyMap<string, string | readonly string[]>;
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #connect: () => Api;
  #api: Api | undefined;

  constructor(init: {
    arguments: ReadonlyMap<string, string | readonly string[]>;
    options: Readonly<Record<string, unknown>>;
    output: Output;
    env: NodeJS.ProcessEnv;
    connect: () => Api;
  }) {
    this.#arguments = init.arguments;
    this.#options = init.options;
    this.#connect = init.connect;
    this.output = init.output;
    this.env = init.env;
  }

  /** The broker; only who asks for it needs a URL. */
  get api(): Api {
    this.#api ??= this.#connect();
    return this.#api;
  }

  /** An argument that is required. */
  argument(name: string): string {
    return this.#arguments.get(name) as string;
  }

  optionalArgument(name: string): string | undefined {
    return this.#arguments.get(name) as string | undefined;
  }

  variadicArgument(name: string): readonly string[] {
    return (this.#arguments.get(name) ?? []) as readonly string[];
  }

  /** The value of `--some-name`, asked for as `someName`. */
  text(name: string): string | undefined {
    return this.#options[name] as string | undefined;
  }

  texts(name: string): readonly string[] {
    return (this.#options[name] ?? []) as readonly string[];
  }

  /** The value of an integer option that has a default. */
  integer(name: string): number {
    return this.#options[name] as number;
  }

  optionalInteger(name: string): number | undefined {
    return this.#options[name] as number | undefined;
  }

  flag(name: string): boolean {
    return this.#options[name] === true;
  }
}

// Options that several commands have, each with one meaning.
export const OPTION = {
  group: { flags: "-g, --group <name>", summary: "The consumer group; queue mode without it" },
  partition: { flags: "-p, --partition <name>", summary: "Only this partition" },
  yes: { flags: "-y, --yes", summary: "Do it without asking" },
  watch: {
    flags: "-w, --watch [seconds]",
    summary: "Show it again and again, every 2 seconds unless said",
    integer: { min: 1, max: 86_400 },
  },
  limit: (fallback: number, max: number, what: string): Option => ({
    flags: "-n, --limit <count>",
    summary: `${what} at most`,
    fallback,
    integer: { min: 1, max },
  }),
} as const satisfies Record<string, Option | ((...args: never[]) => Option)>;

/** Options that every command has. */
export const GLOBAL_OPTIONS: readonly Option[] = [
  {
    flags: "-o, --output <format>",
    summary: "How to print; a table on a terminal and NDJSON elsewhere unless said",
    choices: FORMATS,
  },
  { flags: "--url <url>", summary: "The broker, instead of QUEEN_URL and the current context" },
  { flags: "--token <token>", summary: "A token or an API key, instead of QUEEN_TOKEN and the context's" },
  { flags: "--context <name>", summary: "The broker of this context" },
];
