/** The table of commands: each has an example, and each example is one that the command understands. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { GLOBAL_OPTIONS } from "../src/command.ts";
import { wordsAfter } from "../src/commands/completion.ts";
import { CHAPTERS, COMMANDS, FAMILIES } from "../src/commands.ts";

const EXPECTED =
  "push pop tail ack queues queue partitions messages groups seek lag dlq traces transaction maintenance pause resume " +
  "explain doctor bench migrate config keys users completion adopt serve context";

test("every command of the plan is there", () => {
  const words = new Set(COMMANDS.map(({ name }) => name.split(" ")[0]));
  for (const word of EXPECTED.split(" ")) assert.ok(words.has(word), word);
  for (const { name } of COMMANDS) {
    const [first, second] = name.split(" ") as [string, string?];
    assert.equal(second !== undefined, FAMILIES[first] !== undefined, name);
  }
  assert.equal(new Set(COMMANDS.map(({ name }) => name)).size, COMMANDS.length);
  assert.ok(CHAPTERS.every(({ commands }) => commands.length > 0));
});

test("every command has an example that names it and uses only options that it has", () => {
  for (const command of COMMANDS) {
    assert.ok(command.examples.length > 0, command.name);
    const lines = command.examples.map(({ line }) => line);
    const isNamed = lines.some((line) => line.includes(`queen ${command.name}`) || line === "queen");
    assert.ok(isNamed, `${command.name} is in none of its examples`);
    for (const line of lines) {
      for (const [, call] of line.matchAll(/(?:^|[|(] ?|\w=\S+ )queen (\S[^|)]*)/g)) {
        const used = COMMANDS.find(({ name }) => `${call} `.startsWith(`${name} `));
        assert.ok(used, `${line}: there is no such command`);
        const known = [...(used.options ?? []), ...GLOBAL_OPTIONS].flatMap(
          ({ flags }) => flags.match(/--?[a-zA-Z-]+/g)!,
        );
        for (const [option] of call!.replace(/'[^']*'/g, "").matchAll(/(?<=\s)--?[a-zA-Z][a-z-]*/g)) {
          assert.ok(known.includes(option), `${line}: ${used.name} has no ${option}`);
        }
      }
    }
  }
});

test("an option means the same in every command", () => {
  const long = new Map<string, string>();
  for (const { name, options = [] } of COMMANDS) {
    for (const { flags } of [...options, ...GLOBAL_OPTIONS]) {
      const [short, ...rest] = flags.split(", ");
      if (rest.length === 0) continue;
      const before = long.get(`${name} ${short}`);
      assert.ok(before === undefined || before === flags, `${name}: ${flags}`);
      long.set(`${name} ${short}`, flags);
    }
  }
});

const main = new URL("../../bin/queen.js", import.meta.url).pathname;
const queen = (...args: string[]): string =>
  spawnSync(process.execPath, [main, ...args], { encoding: "utf8" }).stdout;

test("completion knows families, commands and options", () => {
  const words = wordsAfter(COMMANDS);
  assert.ok(words.get("")!.includes("dlq"));
  assert.deepEqual(words.get("dlq"), ["list", "requeue", "purge"]);
  assert.ok(words.get("dlq requeue")!.includes("--all"));
});

// Each shell says what it would offer for a line, one word a line.
const SHELLS: Record<string, (script: string, line: string) => string[]> = {
  bash: (script, line) => ["-c", bashLike(script, line)],
  zsh: (script, line) => [
    "-f",
    "-c",
    `autoload -U compinit && compinit -u -D\n${script}\nsetopt ksh_arrays\n${bashLike("", line)}`,
  ],
  fish: (script, line) => ["--no-config", "-c", `${script}\ncomplete -C '${line}'`],
};

function bashLike(script: string, line: string): string {
  const given = line.split(" ");
  const words = given.map((word) => `'${word}'`).join(" ");
  return `${script}\nCOMP_WORDS=(${words}); COMP_CWORD=${given.length - 1}; _queen; printf '%s\\n' "\${COMPREPLY[@]}"`;
}

for (const [shell, args] of Object.entries(SHELLS)) {
  const skip = spawnSync(shell, ["--version"]).status !== 0 && `${shell} is not installed`;
  test(`${shell} completes commands and options`, { skip }, () => {
    const script = queen("completion", shell);
    const complete = (line: string): string[] =>
      spawnSync(shell, args(script, line), { encoding: "utf8" })
        .stdout.trim()
        .split("\n")
        .filter((word) => word.startsWith(line.split(" ").at(-1)!)); // which zsh does when it shows them
    assert.deepEqual(complete("queen dl"), ["dlq"]);
    assert.deepEqual(complete("queen dlq re"), ["requeue"]);
    assert.deepEqual(complete("queen dlq requeue --a"), ["--all"]);
    assert.deepEqual(complete("queen -o json pop orders --au"), ["--auto-ack"]);
  });
}

test("a family alone lists, and its mistakes are still told", () => {
  assert.equal(queen("context", "-o", "json"), queen("context", "list", "-o", "json"));
  assert.match(queen("context", "-o", "json"), /^\[/);
  assert.match(queen("groups", "--help"), /Commands:/);
  const typo = spawnSync(process.execPath, [main, "groups", "lsit"], { encoding: "utf8" });
  assert.equal(typo.status, 1);
  assert.match(typo.stderr, /Did you mean list\?/);
});
