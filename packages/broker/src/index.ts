/** What other packages may use of the broker: its configuration, its interface, its commands, and its way to PostgreSQL. */
export { MAY } from "./access/roles.ts";
export { type CommandOutput, keysCommand } from "./commands/keys.ts";
export {
  type Config,
  ConfigError,
  type Environment,
  environmentWithSecrets,
  printConfig,
  readConfig,
} from "./config.ts";
export { type OpenApi, openApi } from "./http/openapi.ts";
export type { Route } from "./http/route.ts";
export { routeTable } from "./http/routes.ts";
export { Keyring, keysProblem, parseKeys } from "./operations/encryption.ts";
export {
  type DatabaseHost,
  type DatabaseSettings,
  describe,
  readDatabaseSettings,
} from "./postgres/database-settings.ts";
export {
  defaultDataDir,
  type EmbeddedServer,
  type EmbeddedServerOptions,
  startEmbeddedServer,
} from "./postgres/embedded-server.ts";
export { ConnectionLostError, PostgresError } from "./postgres/errors.ts";
export { DatabaseRefusedError, type PrepareOptions, prepareDatabase } from "./postgres/prepare-database.ts";
export { Session, type SessionOptions, type Statement } from "./postgres/session.ts";
export { readSettings, type Settings } from "./settings.ts";
export type { Log } from "./telemetry.ts";
