/** What other packages may use of the broker: its configuration, and its own PostgreSQL. */
export { type Config, ConfigError, type Environment, readConfig } from "./config.ts";
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
export { Session, type SessionOptions, type Statement } from "./postgres/session.ts";
