/**
 * The connections of a worker: slots for each kind of operation, secondary ones for everything else, and a watch that
 * notices when the database falls silent.
 */
import type { Config } from "../config.ts";
import type { Meter } from "../metering/meter.ts";
import type { DatabaseSettings } from "../postgres/database-settings.ts";
import { DatabaseWatch } from "../postgres/database-watch.ts";
import { isDatabaseFault, isRolledBack } from "../postgres/errors.ts";
import { Lineage } from "../postgres/lineage.ts";
import { Session, type SessionOptions } from "../postgres/session.ts";
import { Slots } from "../postgres/slots.ts";
import type { Log } from "../telemetry.ts";

export interface ConnectionsOptions {
  readonly config: Config;
  readonly database: DatabaseSettings;
  readonly meter: Meter;
  /** The database is another one: nothing counts that was read before. */
  readonly databaseChanged: () => void;
  /** Connections beside the pools are to be given up, too. */
  readonly fellSilent: (reason: Error) => void;
  readonly now: () => number;
  readonly log: Log;
}

type Kind = "push" | "pop" | "ack" | "transaction";

/** Works with a secondary connection, again where the database undid the work. */
export type Use = <T>(work: (session: Session) => Promise<T>) => Promise<T>;

export interface Connections {
  /** One more, beside the pools. */
  readonly connect: (purpose: string) => Promise<Session>;
  readonly slots: Readonly<Record<Kind, Slots>>;
  readonly secondary: Slots;
  /** All of them: the slots, then the secondary ones. */
  readonly pools: readonly Slots[];
  readonly watch: DatabaseWatch;
  readonly use: Use;
}

// How long operations may wait for a first connection before they are refused.
const DATABASE_PATIENCE_MS = 2_000;
const SECONDARY_ATTEMPTS_MAX = 3;

export function connectionsOf(options: ConnectionsOptions): Connections {
  const { config, database, meter, databaseChanged, fellSilent, now, log } = options;
  const sessionOptions = (purpose: string): SessionOptions => ({
    applicationName: `queen ${purpose}`,
    connectTimeoutMs: config.connectTimeoutMs,
    callTimeoutMs: config.callDeadlineMs,
    statementTimeoutMs: config.statementTimeoutMs,
    lockTimeoutMs: config.lockTimeoutMs,
    idleInTransactionTimeoutMs: config.idleInTransactionTimeoutMs,
  });
  const lineage = new Lineage(() => {
    log.warn({ message: "the database is another one, or a replica that took over" }, "database.changed");
    databaseChanged();
  });
  const connect = async (purpose: string): Promise<Session> => {
    try {
      const session = await Session.connect(database, {
        ...sessionOptions(purpose),
        admit: (origin) => lineage.admit(origin),
      });
      session.onFailure((error) => {
        if (isDatabaseFault(error)) meter.databaseFailed();
      });
      return session;
    } catch (error) {
      meter.databaseFailed();
      throw error;
    }
  };
  const slotsFor = (purpose: string, count: number, patienceMs = DATABASE_PATIENCE_MS): Slots =>
    new Slots({
      count,
      connect: () => connect(purpose),
      patienceMs,
      log: (message) => log.warn({ message, purpose }, "database.connection"),
    });
  const counts = slotsPerKind(config);
  const slots = {
    push: slotsFor("push", counts.push, config.spoolAfterMs),
    pop: slotsFor("pop", counts.pop),
    ack: slotsFor("ack", counts.ack),
    transaction: slotsFor("transaction", counts.transaction),
  };
  const secondary = slotsFor(
    "secondary",
    Math.max(1, Math.floor(config.secondaryConnectionCount / config.workerCount)),
  );
  const pools = [...Object.values(slots), secondary];
  const watch = new DatabaseWatch({ pools, connect: () => connect("watch"), fellSilent, now, log });
  const use: Use = async (work) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await secondary.use(work);
      } catch (error) {
        if (attempt >= SECONDARY_ATTEMPTS_MAX || !isRolledBack(error)) throw error;
      }
    }
  };
  return { connect, slots, secondary, pools, watch, use };
}

/** A worker's share of connections: a quarter for each kind, and what is left for transactions, which may wait for lanes. */
function slotsPerKind(config: Config): Record<Kind, number> {
  const share = Math.max(4, Math.floor(config.slotCount / config.workerCount));
  const quarter = Math.floor(share / 4);
  return { push: quarter, pop: quarter, ack: quarter, transaction: share - 3 * quarter };
}
