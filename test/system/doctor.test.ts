/** The doctor: all is well in a fresh database; what is not is found, with what fixes it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startBrokerProcess } from "../support/broker.ts";
import { HttpClient } from "../support/http.ts";
import { expireLeases, newQueue, type System, startSystem } from "../support/system.ts";

interface Finding {
  readonly code: string;
  readonly severity: "ok" | "warning" | "critical";
  readonly message: string;
  readonly fix: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the doctor says; a wrong shape fails the assertion on it
  readonly details: any;
}

let system: System;

before(async () => {
  system = await startSystem({ NUM_WORKERS: "1" });
});
after(() => system?.stop());

async function examine(query = "", client = system.client) {
  const answer = await client.request("GET", `/api/v1/system/doctor${query}`);
  assert.equal(answer.status, 200, answer.text);
  const findings = answer.json.findings as Finding[];
  return {
    status: answer.json.status as string,
    findings,
    of: (code: string): Finding => findings.find((finding) => finding.code === code)!,
  };
}

test("with everything fine, all findings are ok and none needs a fix", async () => {
  const { status, findings } = await examine();
  // Other tests' servers may be busy: what the server as a whole does is not this broker's state.
  const own = findings.filter(({ code }) => code !== "connections" && code !== "replication_slot");
  assert.deepEqual(
    own.filter(({ severity }) => severity !== "ok"),
    [],
  );
  assert.equal(status, findings.some(({ severity }) => severity !== "ok") ? "warning" : "ok");
  for (const { code, severity, message, fix } of findings) {
    assert.match(code, /^[a-z_]+$/);
    assert.match(message, /^[A-Z0-9].*\.$/s);
    assert.equal(fix === null, severity === "ok");
  }
  assert.equal(new Set(findings.map(({ code }) => code)).size, findings.length);
  assert.ok(findings.length >= 19);
});

test("an old transaction is named with its process, age and statement, and ends by the fix", async () => {
  const user = await system.database.client();
  await user.query("begin");
  const { rows } = await user.query('select pg_backend_pid() as pid, txid_current() as "an old transaction"');
  const { pid } = rows[0];
  await sleep(1_100);
  const { status, of } = await examine("?oldTransactionSeconds=1");
  const found = of("old_transaction");
  assert.deepEqual([found.severity, status], ["warning", "warning"]);
  assert.match(
    found.message,
    new RegExp(`^Process ${pid} \\(queen-test, idle in transaction\\) .* open for \\d+ s`),
  );
  const [shown] = found.details.transactions;
  assert.equal(shown.pid, pid);
  assert.ok(shown.seconds >= 1);
  assert.match(shown.query, /an old transaction/);
  assert.equal((await examine()).of("old_transaction").severity, "ok", "it is not a minute old");

  const [, statement] = /(select pg_terminate_backend\(\d+\);)/.exec(found.fix!)!;
  await system.database.query(statement!);
  await user.end().catch(() => undefined);
  const again = await examine("?oldTransactionSeconds=1");
  assert.ok(
    !(again.of("old_transaction").details.transactions ?? []).some(
      (each: { pid: number }) => each.pid === pid,
    ),
  );
});

test("pauses, modes of maintenance and expired leases are findings when they are old", async () => {
  const queue = newQueue();
  const { client, database } = system;
  await client.push([{ queue, payload: 1 }]);
  await client.pop(queue);
  await client.request("POST", `/api/v1/queues/${queue}/pause`, { reason: "forgotten" });
  await client.request("POST", "/api/v1/system/maintenance/pop", { enabled: true });
  await expireLeases(database, queue);
  const young = await examine();
  for (const code of ["pauses", "maintenance", "expired_leases"]) assert.equal(young.of(code).severity, "ok");
  assert.equal(young.of("pauses").details.count, 1);
  assert.match(young.of("maintenance").message, /^Pop maintenance is on for \d+ s\.$/);

  await database.query("update queen.pauses set paused_at = clock_timestamp() - interval '2 hours'");
  await database.query("update queen.system_state set updated_at = clock_timestamp() - interval '2 hours'");
  await database.query(
    "update queen.partition_consumers set lease_expires_at = clock_timestamp() - interval '5 minutes'",
  );
  const old = await examine();
  assert.equal(old.status, "warning");
  const pauses = old.of("pauses");
  assert.equal(pauses.severity, "warning");
  assert.match(pauses.message, new RegExp(`queue "${queue}" by unknown, for 2 h`));
  assert.equal(pauses.details.oldest[0].reason, "forgotten");
  const maintenance = old.of("maintenance");
  assert.equal(maintenance.severity, "warning");
  const leases = old.of("expired_leases");
  assert.deepEqual([leases.severity, leases.details.count], ["warning", 1]);
  assert.match(leases.message, new RegExp(`^One lane has an expired lease .* queue "${queue}"`));

  // The fixes fix it.
  for (const { fix } of [pauses, maintenance]) {
    const [, path, body] = /POST (\S+)(?: (\{.*\}))?$/.exec(fix!)!;
    assert.equal((await client.request("POST", path!, body)).status, 200);
  }
  const [, path] = /DELETE (\S+)$/.exec(leases.fix!)!;
  assert.equal((await client.request("DELETE", path!)).status, 200);
  const { of } = await examine();
  for (const code of ["pauses", "maintenance", "expired_leases"]) assert.equal(of(code).severity, "ok");
});

test("settings that lose data are critical", async () => {
  const { database } = system;
  const [{ name }] = (await database.query("select current_database() as name")) as [{ name: string }];
  await database.query(`alter database ${name} set synchronous_commit = off`);
  try {
    const { broker, client } = await system.another();
    const { status, of } = await examine("", client);
    assert.equal(status, "critical");
    assert.match(of("durability").message, /^synchronous_commit is off/);
    assert.match(of("durability").fix!, new RegExp(`alter database "${name}" reset synchronous_commit`));
    await broker.stop();
  } finally {
    await database.query(`alter database ${name} reset synchronous_commit`);
  }
});

test("a role that is no superuser gets its findings, and is told what it cannot see", async () => {
  const { database } = system;
  const role = `queen_doctor_${process.pid}_${randomBytes(3).toString("hex")}`;
  await database.query(`create role ${role} login password 'secret'`);
  await database.query(`grant usage on schema queen to ${role}`);
  await database.query(`grant all on all tables in schema queen to ${role}`);
  const url = new URL(database.url);
  url.username = role;
  url.password = "secret";
  const other = await database.client();
  await other.query("begin");
  await other.query("select txid_current()");
  const broker = await startBrokerProcess({ databaseUrl: url.href, env: { NUM_WORKERS: "1" } });
  const client = new HttpClient(broker.url);
  try {
    const { of, findings } = await examine("?oldTransactionSeconds=0", client);
    const visibility = of("visibility");
    assert.equal(visibility.severity, "warning");
    assert.equal(visibility.fix, `In psql: grant pg_read_all_stats to "${role}";`);
    assert.ok(findings.length >= 19);

    await database.query(`grant pg_read_all_stats to ${role}`);
    const seen = await examine("?oldTransactionSeconds=0", client);
    assert.equal(seen.of("visibility").severity, "ok");
    assert.equal(seen.of("old_transaction").severity, "warning", "now it is seen");
  } finally {
    await other.query("rollback");
    client.close();
    await broker.stop();
    await database.query(`drop owned by ${role}`);
    await database.query(`drop role ${role}`);
  }
});

test("the parameter must be a number, and there is no other method", async () => {
  assert.equal(
    (await system.client.request("GET", "/api/v1/system/doctor?oldTransactionSeconds=x")).status,
    400,
  );
  assert.equal((await system.client.request("POST", "/api/v1/system/doctor", {})).status, 405);
});
