/** A minute is what is measured of a soak, once a minute: rates, sizes, memory. One JSON line each. */

export interface TableFigures {
  readonly tableBytes: number;
  readonly indexBytes: number;
  readonly live: number;
  readonly dead: number;
  /** Since the soak began, also when PostgreSQL lost its statistics in a crash. */
  readonly updates: number;
  readonly hotUpdates: number;
  /** Null: not yet. */
  readonly vacuumedSecondsAgo: number | null;
}

export interface BrokerFigures {
  /** All processes of the broker together, and its largest. */
  readonly memoryMb: number;
  readonly processMb: number;
  /** The least of the minute: what was left after the last collection. */
  readonly heapMb: number;
  /** Open files, sockets included. */
  readonly files: number;
}

export interface Minute {
  /** Counted from 1. */
  readonly minute: number;
  readonly faults: readonly string[];
  readonly pushed: number;
  readonly buffered: number;
  readonly delivered: number;
  readonly acked: number;
  readonly redelivered: number;
  /** Messages that groups have not finished, of all groups; messages in the log; those in spools. */
  readonly lag: number;
  readonly logMessages: number;
  readonly spooled: number;
  readonly deadLetters: number;
  /** The first is never killed. */
  readonly brokers: readonly BrokerFigures[];
  readonly tables: Readonly<Record<string, TableFigures>>;
  /** What the rows of the hot tables need, with the room that their fillfactor leaves. */
  readonly liveBytes: Readonly<Record<string, number>>;
  /** Since the soak began: transaction ids and multixacts used, calls of the data plane. */
  readonly xids: number;
  readonly multixacts: number;
  readonly calls: number;
  readonly catalogRows: number;
  readonly violations: number;
  /** Of the clients' process, and what its check remembers. */
  readonly clientsMb: number;
  readonly remembered: number;
}

const MEGABYTE = 1024 ** 2;

export const HOT_TABLES = ["partitions", "partition_consumers"] as const;

const thousands = (value: number): string => Math.round(value).toLocaleString("en-US");
const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(1);

/** Of the updates of the hot tables, those that touched no index. */
export function hotRatio({ tables }: Minute): number {
  const hot = HOT_TABLES.map((name) => tables[name]!);
  const updates = hot.reduce((sum, table) => sum + table.updates, 0);
  return updates === 0 ? 1 : hot.reduce((sum, table) => sum + table.hotUpdates, 0) / updates;
}

export function describeMinute(minute: Minute): string {
  const { segments } = minute.tables;
  const hot = HOT_TABLES.map((name) => minute.tables[name]!);
  const sum = (pick: (table: TableFigures) => number): number =>
    hot.reduce((total, table) => total + pick(table), 0);
  return [
    `${String(minute.minute).padStart(4)} min`,
    `pushed ${thousands(minute.pushed / 60)}/s`,
    `acked ${thousands(minute.acked / 60)}/s`,
    `lag ${thousands(minute.lag)}`,
    `spool ${thousands(minute.spooled)}`,
    `brokers ${minute.brokers.map(({ memoryMb }) => `${Math.round(memoryMb)} MB`).join(", ")}`,
    `log ${thousands(minute.logMessages)} messages, ${megabytes(segments!.tableBytes)} + ${megabytes(segments!.indexBytes)} MB`,
    `dead rows ${thousands(segments!.dead)} of ${thousands(segments!.live)}`,
    `hot tables ${megabytes(sum((table) => table.tableBytes))} + ${megabytes(sum((table) => table.indexBytes))} MB`,
    `dead rows ${thousands(sum((table) => table.dead))}`,
    `HOT ${(100 * hotRatio(minute)).toFixed(1)} %`,
    `redelivered ${thousands(minute.redelivered)}`,
    ...(minute.violations > 0 ? [`VIOLATIONS ${minute.violations}`] : []),
    ...minute.faults,
  ].join(" | ");
}
