/** What the doctor finds in Queen: what is stopped, what is left over, how brokers hear of each other. */
import { durationText } from "../../operations/duration.ts";
import { type BrokerFacts, type DoctorFacts, type Finding, finding, numbered } from "./finding.ts";

// Hints are kept for a minute; so many older ones are not what an idle broker leaves behind.
const HINTS_MAX = 100_000;
const HINTS_OLD_S = 300;
const PARTITIONS_MAX = 1_000_000;
const LONG_S = 3600;

export const queenFindings = (facts: DoctorFacts, broker: BrokerFacts): Finding[] => [
  bus(broker),
  spool(broker),
  hints(facts),
  partitions(facts),
  maintenance(facts),
  pauses(facts),
  expiredLeases(facts),
];

function bus({ bus: state, busPeers: peers }: BrokerFacts): Finding {
  const said: Readonly<Record<BrokerFacts["bus"], string>> = {
    off: "The bus is off by QUEEN_BUS: what other brokers do is found by looking, every POP_WAIT_MAX_INTERVAL_MS.",
    listening: `The bus is listening; workers that are heard: ${peers}.`,
    connecting: "The bus has no connection; what other brokers do is found by looking.",
    silent: "Notifications do not arrive (a pooler in between?); what other brokers do is found by looking.",
  };
  return finding(
    "bus",
    state === "off" || state === "listening" ? "ok" : "warning",
    said[state],
    state === "silent"
      ? "Give the broker a way to PostgreSQL without a transaction pooler, or set QUEEN_BUS=off."
      : "See the broker's log for why the connection fails.",
    { state, peers },
  );
}

function spool({ spool: { pending, failed, healthy } }: BrokerFacts): Finding {
  const said = !healthy
    ? "Messages cannot be written to the broker's disk."
    : pending + failed === 0
      ? "No message waits on the broker's disk."
      : `Messages on the broker's disk: ${pending} wait, ${failed} were refused by the database.`;
  return finding(
    "spool",
    !healthy ? "critical" : pending + failed > 0 ? "warning" : "ok",
    said,
    healthy
      ? "Switch push maintenance off and see that the database can be reached; then see the refused ones."
      : "See that the folder FILE_BUFFER_DIR exists, is writable and has room.",
    { pending, failed, healthy },
  );
}

function hints({ tables, oldest_hint_s: seconds }: DoctorFacts): Finding {
  const rows = tables.find(({ name }) => name === "hints")?.live ?? 0;
  const isBad = rows > HINTS_MAX && (seconds ?? 0) > HINTS_OLD_S;
  return finding(
    "hints",
    isBad ? "warning" : "ok",
    isBad
      ? `${rows} hints are left in queen.hints, the oldest from ${Math.round(seconds ?? 0)} s ago; brokers trim them.`
      : "Old hints are trimmed.",
    "In psql: select queen.trim_hints(); until it answers 0, and see the brokers' logs for hints.failed",
    { rows, oldestSeconds: seconds === null ? null : Math.round(seconds) },
  );
}

function partitions({ tables }: DoctorFacts): Finding {
  const table = tables.find(({ name }) => name === "partitions");
  const rows = Math.max(table?.live ?? 0, table?.rows ?? 0);
  const isMany = rows > PARTITIONS_MAX;
  return finding(
    "partitions",
    isMany ? "warning" : "ok",
    `There are about ${rows} partitions${isMany ? "; a worker holds a million in memory" : ""}.`,
    "Name fewer partitions, or have idle ones removed (PARTITION_CLEANUP_DAYS).",
    { partitions: rows },
  );
}

const MODES: Readonly<Record<string, { name: string; path: string }>> = {
  maintenance_mode: { name: "Push maintenance", path: "/api/v1/system/maintenance" },
  pop_maintenance_mode: { name: "Pop maintenance", path: "/api/v1/system/maintenance/pop" },
};

function maintenance({ maintenance: modes }: DoctorFacts): Finding {
  const old = modes.filter(({ seconds }) => seconds > LONG_S);
  const shown = (old.length > 0 ? old : modes).map(
    ({ key, seconds }) => `${MODES[key]!.name} is on for ${durationText(seconds)}.`,
  );
  return finding(
    "maintenance",
    old.length > 0 ? "warning" : "ok",
    shown.length > 0 ? shown.join(" ") : "No mode of maintenance is on.",
    old.map(({ key }) => `POST ${MODES[key]!.path} {"enabled": false}`).join("; "),
    { modes: modes.map(({ key, since }) => ({ key, since })) },
  );
}

function pauses({ pauses: listed, pause_count: count }: DoctorFacts): Finding {
  const old = listed.filter(({ seconds }) => seconds > LONG_S);
  return finding(
    "pauses",
    old.length > 0 ? "warning" : "ok",
    count === 0
      ? "Nothing is paused."
      : `${numbered(count, "pause holds", "pauses hold")} messages back` +
          (old.length > 0
            ? `; the oldest, of queue ${JSON.stringify(old[0]!.queue)} by ${old[0]!.by}, for ${durationText(old[0]!.seconds)}.`
            : "."),
    old.length > 0 ? `POST /api/v1/queues/${encodeURIComponent(old[0]!.queue)}/resume` : "",
    {
      count,
      oldest: listed.map(({ queue, partition, group, reason, by, at }) => ({
        queue,
        partition,
        consumerGroup: group,
        reason,
        pausedBy: by,
        pausedAt: at,
      })),
    },
  );
}

function expiredLeases({ expired_leases: { count, oldest } }: DoctorFacts): Finding {
  const [first] = oldest;
  return finding(
    "expired_leases",
    count > 0 ? "warning" : "ok",
    first
      ? `${numbered(count, "lane has", "lanes have")} an expired lease with unfinished messages; nobody has popped ` +
          `queue ${JSON.stringify(first.queue)}, partition ${JSON.stringify(first.partition)} with group ` +
          `${JSON.stringify(first.group)} for ${durationText(first.seconds)}.`
      : "No lane waits behind an expired lease.",
    first
      ? `Start consumers of the group, or delete it if it is not used any more: ` +
          `DELETE /api/v1/consumer-groups/${encodeURIComponent(first.group)}/queues/${encodeURIComponent(first.queue)}`
      : "",
    {
      count,
      oldest: oldest.map(({ queue, partition, group, seconds }) => ({
        queue,
        partition,
        consumerGroup: group,
        seconds: Math.round(seconds),
      })),
    },
  );
}
