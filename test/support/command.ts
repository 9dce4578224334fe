/** The `queen` command as a child process, by pipes: what it is given, what it prints, and its exit code. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const QUEEN = fileURLToPath(new URL("../../../packages/cli/bin/queen.js", import.meta.url));

export interface CommandResult {
  /** The exit code, or the signal that ended it. */
  readonly code: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
  /** What it printed, as JSON. */
  readonly json: () => unknown;
  /** What it printed, a JSON value a line. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of any route; a wrong field fails the assertion on it
  readonly lines: () => any[];
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** More input may come: `child.stdin` stays open. */
  readonly isInputOpen?: boolean;
}

const running = new Set<ChildProcess>();
// A folder for contexts that is not the person's own.
const home = mkdtempSync(join(tmpdir(), "queen-home-"));
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

export const commandEnv = (env: CommandOptions["env"] = {}): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: home,
  ...env,
});

/** Starts it; `ended` has the result. */
export function startCommand(
  args: readonly string[],
  { env, input, isInputOpen }: CommandOptions = {},
): { readonly child: ChildProcess; readonly ended: Promise<CommandResult>; readonly stdout: () => string } {
  const child = spawn(process.execPath, [QUEEN, ...args], { env: commandEnv(env), stdio: "pipe" });
  running.add(child);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  child.stdin.on("error", () => {}); // it may end before it has read everything
  if (isInputOpen) child.stdin.write(input ?? "");
  else child.stdin.end(input ?? "");
  const ended = new Promise<CommandResult>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve({
        code: code ?? signal!,
        stdout,
        stderr,
        json: () => JSON.parse(stdout),
        lines: () =>
          stdout
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line)),
      });
    });
  });
  return { child, ended, stdout: () => stdout };
}

export const runCommand = (args: readonly string[], options?: CommandOptions): Promise<CommandResult> =>
  startCommand(args, options).ended;
