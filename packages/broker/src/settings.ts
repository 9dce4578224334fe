/** Everything that the environment says: the configuration, and the database where one is given. */
import { availableParallelism } from "node:os";
import { type Config, ConfigError, type Environment, environmentWithSecrets, readConfig } from "./config.ts";
import { type DatabaseSettings, readDatabaseSettings } from "./postgres/database-settings.ts";

export interface Settings {
  readonly config: Config;
  /** Undefined: the broker has a PostgreSQL of its own. */
  readonly database: DatabaseSettings | undefined;
  readonly warnings: readonly string[];
}

/** Throws one ConfigError with all mistakes in it. */
export function readSettings(env: Environment): Settings {
  const problems: string[] = [];
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      problems.push(...(error instanceof ConfigError ? error.problems : [(error as Error).message]));
      return undefined;
    }
  };
  const read = attempt(() => readConfig(env, availableParallelism()));
  const database = attempt(() => readDatabaseSettings(environmentWithSecrets(env)));
  if (read === undefined || problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return { ...read, database };
}
