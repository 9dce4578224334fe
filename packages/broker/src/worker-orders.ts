import type { Config } from "./config.ts";
import type { DatabaseSettings } from "./postgres/database-settings.ts";

/** What the primary tells each worker, by message. */
export interface WorkerOrders {
  readonly config: Config;
  readonly database: DatabaseSettings;
  readonly version: string;
  readonly spoolFolder: string | undefined;
}
