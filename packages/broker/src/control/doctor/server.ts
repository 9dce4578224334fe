/** What the doctor finds in PostgreSQL: what holds back cleaning, what is not durable, what runs out. */
import {
  type BrokerFacts,
  type DoctorFacts,
  type Finding,
  finding,
  graded,
  identifier,
  literal,
} from "./finding.ts";

// A transaction that is open for so long keeps millions of old row versions alive under load.
const OLD_TRANSACTION_S = 600;
// Hot tables are small; so many dead rows in one mean that cleaning does not keep up.
const DEAD_ROWS = { warning: 100_000, critical: 5_000_000 };
const HOT_RATIO_MIN = 0.8;
const UPDATES_WORTH_JUDGING = 10_000;
const CONNECTIONS_SHARE = { warning: 0.8, critical: 0.95 };
const CLOCK_MS = 1_000;
// PostgreSQL stops taking writes at about 2.1 thousand million; autovacuum begins to hurry at 200 million.
const WRAPAROUND_AGE = { warning: 1_000_000_000, critical: 1_600_000_000 };
const SLOT_WAL_BYTES = 10 * 1024 ** 3;

export const serverFindings = (facts: DoctorFacts, broker: BrokerFacts): Finding[] => [
  visibility(facts),
  oldTransactions(facts),
  preparedTransactions(facts),
  replicationSlots(facts),
  deadRows(facts),
  hotUpdates(facts),
  autovacuum(facts),
  durability(facts),
  wraparound(facts),
  connections(facts, broker),
  clock(broker),
  serverVersion(facts),
];

function visibility({ sees_all: all, role }: DoctorFacts): Finding {
  return finding(
    "visibility",
    all ? "ok" : "warning",
    all
      ? "The broker's role sees the transactions of all roles."
      : `The role ${role} does not see what other roles' sessions do: old transactions of theirs are not found.`,
    `In psql: grant pg_read_all_stats to ${identifier(role)};`,
    { role },
  );
}

function oldTransactions({ transactions }: DoctorFacts): Finding {
  const [oldest] = transactions;
  if (!oldest) return finding("old_transaction", "ok", "No transaction is open for long.", "", {});
  const isStandby = oldest.kind === "walsender";
  return finding(
    "old_transaction",
    (oldest.seconds ?? 0) >= OLD_TRANSACTION_S ? "critical" : "warning",
    isStandby
      ? `The standby ${oldest.application} (process ${oldest.pid}) holds back vacuum by ${oldest.xids} transactions.`
      : `Process ${oldest.pid} (${oldest.application || oldest.role}, ${oldest.state}) has a transaction open for ` +
          `${Math.round(oldest.seconds ?? 0)} s, which keeps PostgreSQL from cleaning up.`,
    isStandby
      ? "End the long query on the standby, or set hot_standby_feedback = off there."
      : `In psql: select pg_terminate_backend(${oldest.pid}); and set idle_in_transaction_session_timeout for its role`,
    { transactions },
  );
}

function preparedTransactions({ prepared }: DoctorFacts): Finding {
  const [oldest] = prepared;
  if (!oldest) return finding("prepared_transaction", "ok", "No prepared transaction is left over.", "", {});
  return finding(
    "prepared_transaction",
    oldest.seconds >= OLD_TRANSACTION_S ? "critical" : "warning",
    `The prepared transaction ${oldest.gid} is ${Math.round(oldest.seconds)} s old; it holds its locks and keeps ` +
      "PostgreSQL from cleaning up.",
    `In psql: rollback prepared ${literal(oldest.gid)}; or commit prepared ${literal(oldest.gid)};`,
    { prepared },
  );
}

function replicationSlots({ slots }: DoctorFacts): Finding {
  const lost = slots.find(
    (slot) => slot.wal_status === "lost" || (!slot.active && (slot.wal_bytes ?? 0) > SLOT_WAL_BYTES),
  );
  const idle = lost ?? slots.find((slot) => !slot.active);
  if (!idle) return finding("replication_slot", "ok", "No replication slot is unused.", "", { slots });
  return finding(
    "replication_slot",
    lost ? "critical" : "warning",
    `Nobody reads the replication slot ${idle.name}; it keeps ${Math.round((idle.wal_bytes ?? 0) / 1024 ** 2)} MB ` +
      "of write-ahead log and may keep PostgreSQL from cleaning up.",
    `In psql: select pg_drop_replication_slot(${literal(idle.name)}); if its reader does not come back`,
    { slots },
  );
}

function deadRows({ tables }: DoctorFacts): Finding {
  const judged = tables.map((table) => ({
    table,
    severity: table.dead > table.live ? graded(table.dead, DEAD_ROWS) : ("ok" as const),
  }));
  const bad = judged.filter(({ severity }) => severity !== "ok").map(({ table }) => table);
  return finding(
    "dead_rows",
    judged.some(({ severity }) => severity === "critical") ? "critical" : bad.length > 0 ? "warning" : "ok",
    bad.length === 0
      ? "The hot tables are clean."
      : `More dead rows than live ones in ${bad.map(({ name, dead }) => `queen.${name} (${dead})`).join(", ")}.`,
    `${bad.map(({ name }) => `vacuum queen.${name};`).join(" ")} if old_transaction finds nothing in the way`,
    {
      tables: tables.map(({ name, live, dead, last_vacuum }) => ({
        name,
        live,
        dead,
        lastVacuum: last_vacuum,
      })),
    },
  );
}

function hotUpdates({ tables }: DoctorFacts): Finding {
  const figures = tables
    .filter(({ name }) => name === "partitions" || name === "partition_consumers")
    .map(({ name, updates, hot_updates }) => ({
      name,
      updates,
      ratio: updates > 0 ? hot_updates / updates : 1,
    }));
  const bad = figures.filter(
    ({ updates, ratio }) => updates >= UPDATES_WORTH_JUDGING && ratio < HOT_RATIO_MIN,
  );
  return finding(
    "hot_updates",
    bad.length > 0 ? "warning" : "ok",
    bad.length > 0
      ? bad
          .map(
            ({ name, ratio }) => `Only ${Math.round(ratio * 100)} % of the updates of queen.${name} are HOT.`,
          )
          .join(" ")
      : "Updates of the hot tables spare their indexes.",
    `${bad.map(({ name }) => `vacuum full queen.${name};`).join(" ")} and drop indexes on them that Queen did not make`,
    { tables: figures.map((figure) => ({ ...figure, ratio: Math.round(figure.ratio * 1000) / 1000 })) },
  );
}

function autovacuum({ settings }: DoctorFacts): Finding {
  const off = ["autovacuum", "track_counts"].filter((name) => settings[name] === "off");
  return finding(
    "autovacuum",
    off.length > 0 ? "critical" : "ok",
    off.length > 0 ? `${off.join(" and ")} off: nobody cleans the hot tables.` : "Autovacuum is on.",
    `${off.map((name) => `alter system set ${name} = on;`).join(" ")} select pg_reload_conf();`,
    { autovacuum: settings.autovacuum, track_counts: settings.track_counts },
  );
}

const LOSES: Readonly<Record<string, string>> = {
  fsync: "a crash of the machine can corrupt the whole database",
  full_page_writes: "a crash of the machine can corrupt pages",
  synchronous_commit: "a crash of PostgreSQL loses messages that were answered as queued",
};

function durability({ settings, database }: DoctorFacts): Finding {
  const off = Object.keys(LOSES).filter((name) => settings[name] === "off");
  return finding(
    "durability",
    off.length > 0 ? "critical" : "ok",
    off.length > 0
      ? off.map((name) => `${name} is off: ${LOSES[name]}.`).join(" ")
      : "What is committed is on disk.",
    `${off.map((name) => `alter system set ${name} = on;`).join(" ")} select pg_reload_conf(); a setting of the ` +
      `database or the role wins over it: alter database ${identifier(database)} reset ${off[0]};`,
    Object.fromEntries(Object.keys(LOSES).map((name) => [name, settings[name]])),
  );
}

function wraparound({ xid_age: xids, multixact_age: multixacts }: DoctorFacts): Finding {
  const age = Math.max(xids, multixacts);
  const severity = graded(age, WRAPAROUND_AGE);
  return finding(
    "wraparound",
    severity,
    severity === "ok"
      ? "Transaction ids are far from wrapping around."
      : `Transaction ids are ${Math.round(age / 1e6)} million old; near 2,100 million PostgreSQL refuses writes.`,
    "Remove what old_transaction, prepared_transaction and replication_slot name, then: vacuum freeze;",
    { transactionIdAge: xids, multixactAge: multixacts },
  );
}

function connections(
  { connections: used, settings }: DoctorFacts,
  { connectionsNeeded: needed }: BrokerFacts,
) {
  const max = Number(settings.max_connections);
  const usable = max - Number(settings.superuser_reserved_connections);
  const severity = needed > usable ? "critical" : graded(used / usable, CONNECTIONS_SHARE);
  return finding(
    "connections",
    severity,
    `${used} of ${usable} connections are in use; this broker needs up to ${needed}.`,
    `alter system set max_connections = ${Math.max(max * 2, needed * 2)}; and restart PostgreSQL, or lower ` +
      "SIDECAR_POOL_SIZE and DB_POOL_SIZE",
    { used, usable, maxConnections: max, neededByThisBroker: needed },
  );
}

function clock({ clockAheadMs: ms }: BrokerFacts): Finding {
  const isOff = Math.abs(ms) >= CLOCK_MS;
  return finding(
    "clock",
    isOff ? "warning" : "ok",
    isOff
      ? `The broker's clock is ${Math.abs(Math.round(ms))} ms ${ms > 0 ? "ahead of" : "behind"} the database's. ` +
          "Delivery goes by the database's; times in logs and tokens do not."
      : "The clocks of the broker and the database agree.",
    "Keep both machines' clocks by NTP (chronyc tracking).",
    { brokerAheadMs: Math.round(ms) },
  );
}

function serverVersion({ server_version: version }: DoctorFacts): Finding {
  return finding("server_version", "ok", `PostgreSQL ${version}.`, "", { version });
}
