/** What the environment says to a broker, and its database. */
import { availableParallelism } from "node:os";
import { ConfigError, describe, environmentWithSecrets, printConfig, readConfig } from "@queen/broker";
import type { Call } from "./command.ts";
import { withDatabase } from "./database.ts";
import { UsageError } from "./exit-codes.ts";

export async function showConfig(call: Call): Promise<void> {
  try {
    const env = environmentWithSecrets(call.env);
    const { config, warnings } = readConfig(env, availableParallelism());
    for (const warning of warnings) call.output.note(warning);
    const text = printConfig(config);
    if (call.output.format === "table") await call.output.write(text);
    else await call.output.value(Object.fromEntries(text.trimEnd().split("\n").map(entry)));
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.problems.join("\n"), { cause: error });
    throw error;
  }
}

function entry(line: string): [string, string] {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
}

export async function migrateDatabase(call: Call): Promise<void> {
  await withDatabase(call, call.text("to"), async ({ settings, applied }) => {
    const files = call.output.format === "table" ? {} : { files: applied }; // too many to read
    await call.output.value({ database: describe(settings), filesApplied: applied.length, ...files });
  });
}
