/** The broker's program run to its end, as on a command line. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const MAIN = fileURLToPath(new URL("../../../packages/broker/dist/src/main.js", import.meta.url));

export function runCommand(argv: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  const child = spawn(process.execPath, ["--enable-source-maps", MAIN, ...argv], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}
