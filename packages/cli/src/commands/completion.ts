/** `queen completion`: scripts that complete commands and options in a shell, made from the table of commands. */
import { type Command, GLOBAL_OPTIONS, type Option } from "../command.ts";
import { UsageError } from "../exit-codes.ts";

type Script = (words: ReadonlyMap<string, readonly string[]>) => string;

export const completion = (commands: () => readonly Command[]): Command => ({
  name: "completion",
  summary: "Print a script that completes commands and options in your shell",
  arguments: [{ name: "shell", summary: "bash, zsh or fish" }],
  examples: [
    { line: 'eval "$(queen completion bash)"', meaning: "In ~/.bashrc" },
    { line: 'eval "$(queen completion zsh)"', meaning: "In ~/.zshrc, after compinit" },
    { line: "queen completion fish > ~/.config/fish/completions/queen.fish", meaning: "For fish" },
  ],
  async run(call) {
    const script = SCRIPTS[call.argument("shell")];
    if (script === undefined) {
      throw new UsageError(
        `There is no completion for that shell: there is one for ${Object.keys(SCRIPTS).join(", ")}`,
      );
    }
    await call.output.write(script(wordsAfter(commands())));
    return undefined;
  },
});

/** What may come after `queen`, after a family, and after a command. */
export function wordsAfter(commands: readonly Command[]): Map<string, string[]> {
  const global = GLOBAL_OPTIONS.flatMap(flagsOf);
  const words = new Map<string, string[]>([["", [...global, "--help", "--version", "help"]]]);
  for (const { name, options = [] } of commands) {
    const [first, second] = name.split(" ") as [string, string?];
    words.set(name, [...options.flatMap(flagsOf), ...global, "--help"]);
    const top = words.get("")!;
    if (!top.includes(first)) top.push(first);
    if (second !== undefined) words.set(first, [...(words.get(first) ?? []), second]);
  }
  return words;
}

function flagsOf({ flags }: Option): string[] {
  return flags.match(/--[a-z-]+/g) ?? [];
}

const cases = (words: ReadonlyMap<string, readonly string[]>): string =>
  [...words].map(([after, list]) => `    "${after}") words="${list.join(" ")}" ;;`).join("\n");

// A value of these may stand before the command.
const VALUED = GLOBAL_OPTIONS.flatMap(({ flags }) => flags.match(/--?[a-z]+(?=[ ,])/g) ?? []).join("|");

// The command so far is made of the words that are no options: at most a family and what comes after it.
const SCRIPTS: Readonly<Record<string, Script>> = {
  bash: (words) => `# Completion of queen for bash
_queen() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="" words="" word is_value=""
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    if [ -n "$is_value" ]; then is_value=""; continue; fi
    case "$word" in ${VALUED}) is_value=1 ;; -*) ;; *) before="\${before:+$before }$word" ;; esac
  done
  while :; do
    case "$before" in
${cases(words)}
    esac
    if [ -n "$words" ] || [ -z "$before" ]; then break; fi
    case "$before" in *" "*) before="\${before% *}" ;; *) before="" ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _queen queen
`,
  zsh: (words) => `# Completion of queen for zsh
autoload -Uz bashcompinit && bashcompinit
${SCRIPTS.bash!(words)}`,
  fish: (words) =>
    `# Completion of queen for fish\n${[...words]
      .map(([after, list]) => `complete -c queen ${fishCondition(after, words)} -a '${list.join(" ")}'\n`)
      .join("")}`,
};

/** Files are offered after a command only; the commands of a family until one of them is there. */
function fishCondition(after: string, words: ReadonlyMap<string, readonly string[]>): string {
  const seen = (list: readonly string[]): string => `__fish_seen_subcommand_from ${list.join(" ")}`;
  if (after === "") return "-f -n __fish_use_subcommand";
  const members = words.get(after)!;
  const isFamily = words.has(`${after} ${members[0]}`);
  if (isFamily) return `-f -n '${seen([after])}; and not ${seen(members)}'`;
  return `-n '${after
    .split(" ")
    .map((word) => seen([word]))
    .join("; and ")}'`;
}
