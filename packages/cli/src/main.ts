/** The process of the command: arguments in, exit code out. */
import { readFileSync } from "node:fs";
import { CommandError, EXIT_CODES } from "./exit-codes.ts";
import { describeError, run } from "./program.ts";

// Who reads our output may stop: `queen messages list | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT_CODES.ok);
  throw error;
});

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

try {
  process.exitCode = await run(process.argv.slice(2), version);
} catch (error) {
  process.stderr.write(`queen: ${describeError(error)}\n`);
  process.exitCode = error instanceof CommandError ? error.exitCode : EXIT_CODES.server;
}
process.exit();
