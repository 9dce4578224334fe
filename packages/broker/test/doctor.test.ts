/** What the doctor makes of facts that a test server cannot be brought to show. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BrokerFacts, type DoctorFacts, type Finding, worst } from "../src/control/doctor/finding.ts";
import { queenFindings } from "../src/control/doctor/queen.ts";
import { serverFindings } from "../src/control/doctor/server.ts";
import { NO_SPOOL } from "../src/control/spool-figures.ts";

const FINE: DoctorFacts = {
  now: "2026-11-16T00:00:00+00:00",
  role: "queen",
  database: "queen",
  sees_all: true,
  server_version: "18.0",
  settings: {
    fsync: "on",
    full_page_writes: "on",
    synchronous_commit: "on",
    autovacuum: "on",
    track_counts: "on",
    max_connections: "100",
    superuser_reserved_connections: "3",
  },
  transactions: [],
  prepared: [],
  slots: [],
  tables: [
    { name: "hints", live: 10, dead: 0, updates: 0, hot_updates: 0, last_vacuum: null, rows: 10 },
    {
      name: "partitions",
      live: 10,
      dead: 0,
      updates: 20_000,
      hot_updates: 19_900,
      last_vacuum: null,
      rows: 10,
    },
  ],
  connections: 20,
  xid_age: 1000,
  multixact_age: 0,
  oldest_hint_s: 3600,
  maintenance: [],
  pauses: [],
  pause_count: 0,
  expired_leases: { count: 0, oldest: [] },
};

const BROKER: BrokerFacts = {
  clockAheadMs: 0,
  bus: "listening",
  busPeers: 1,
  spool: NO_SPOOL,
  connectionsNeeded: 27,
};

const findings = (facts: Partial<DoctorFacts>, broker: Partial<BrokerFacts>): Finding[] => {
  const both = [
    { ...FINE, ...facts },
    { ...BROKER, ...broker },
  ] as const;
  return [...serverFindings(...both), ...queenFindings(...both)];
};

const setting = (name: string, value: string): Partial<DoctorFacts> => ({
  settings: { ...FINE.settings, [name]: value },
});
const table = (change: Partial<DoctorFacts["tables"][number]>): Partial<DoctorFacts> => ({
  tables: [{ ...FINE.tables[1]!, ...change }],
});
const transaction = (seconds: number) => ({
  pid: 42,
  role: "app",
  application: "shop",
  state: "active",
  kind: "client backend",
  query: "select 1",
  seconds,
  xids: 7,
});
const slot = {
  name: "old",
  kind: "logical",
  active: false,
  wal_status: "reserved",
  xids: 1,
  wal_bytes: 1024,
};

test("facts that are fine give only ok findings", () => {
  const all = findings({}, {});
  assert.deepEqual(
    all.filter(({ severity, fix }) => severity !== "ok" || fix !== null),
    [],
  );
  assert.equal(worst(all), "ok");
});

const BAD: readonly [string, Finding["severity"], Partial<DoctorFacts>, Partial<BrokerFacts>, RegExp][] = [
  ["old_transaction", "warning", { transactions: [transaction(100)] }, {}, /pg_terminate_backend\(42\)/],
  ["old_transaction", "critical", { transactions: [transaction(700)] }, {}, /pg_terminate_backend\(42\)/],
  [
    "old_transaction",
    "warning",
    { transactions: [{ ...transaction(0), kind: "walsender", seconds: null }] },
    {},
    /hot_standby_feedback/,
  ],
  [
    "prepared_transaction",
    "critical",
    { prepared: [{ gid: "it's", role: "app", seconds: 900 }] },
    {},
    /'it''s'/,
  ],
  ["replication_slot", "warning", { slots: [slot] }, {}, /pg_drop_replication_slot\('old'\)/],
  ["replication_slot", "critical", { slots: [{ ...slot, wal_bytes: 2e10 }] }, {}, /pg_drop_replication_slot/],
  ["dead_rows", "warning", table({ dead: 200_000 }), {}, /vacuum queen\.partitions;/],
  ["dead_rows", "critical", table({ dead: 9_000_000 }), {}, /vacuum queen\.partitions;/],
  ["hot_updates", "warning", table({ hot_updates: 100 }), {}, /vacuum full queen\.partitions;/],
  ["autovacuum", "critical", setting("autovacuum", "off"), {}, /alter system set autovacuum = on;/],
  ["durability", "critical", setting("fsync", "off"), {}, /alter system set fsync = on;/],
  ["durability", "critical", setting("full_page_writes", "off"), {}, /full_page_writes = on;/],
  ["wraparound", "warning", { xid_age: 1_100_000_000 }, {}, /vacuum freeze/],
  ["wraparound", "critical", { multixact_age: 1_700_000_000 }, {}, /vacuum freeze/],
  ["connections", "warning", { connections: 80 }, {}, /max_connections = 200/],
  ["connections", "critical", { connections: 95 }, {}, /max_connections/],
  ["connections", "critical", {}, { connectionsNeeded: 150 }, /max_connections = 300/],
  ["clock", "warning", {}, { clockAheadMs: -5000 }, /NTP/],
  ["bus", "warning", {}, { bus: "silent" }, /QUEEN_BUS=off/],
  ["bus", "warning", {}, { bus: "connecting" }, /log/],
  ["spool", "warning", {}, { spool: { ...NO_SPOOL, pending: 3 } }, /maintenance off/],
  ["spool", "critical", {}, { spool: { ...NO_SPOOL, healthy: false } }, /FILE_BUFFER_DIR/],
  ["hints", "warning", { tables: [{ ...FINE.tables[0]!, live: 200_000 }] }, {}, /queen\.trim_hints\(\)/],
  ["partitions", "warning", table({ live: 2_000_000 }), {}, /PARTITION_CLEANUP_DAYS/],
  ["visibility", "warning", { sees_all: false }, {}, /grant pg_read_all_stats to "queen";/],
];

for (const [code, severity, facts, broker, fix] of BAD) {
  test(`${code} is ${severity} for ${JSON.stringify({ ...facts, ...broker }).slice(0, 60)}`, () => {
    const all = findings(facts, broker);
    const bad = all.filter((finding) => finding.severity !== "ok");
    assert.deepEqual(
      bad.map((finding) => [finding.code, finding.severity]),
      [[code, severity]],
    );
    assert.match(bad[0]!.fix!, fix);
    assert.equal(worst(all), severity);
  });
}

test("a bus that is off by configuration is nothing to fix", () => {
  assert.equal(worst(findings({}, { bus: "off", busPeers: 0 })), "ok");
});
