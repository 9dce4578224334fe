/** Brokers behind PgBouncer in transaction mode. Everything else that they do is tested there by `npm run test:pgbouncer`. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { dataOf, newQueue, numbered } from "../support/system.ts";

const isInstalled = existsSync("/usr/sbin/pgbouncer");

describe("behind PgBouncer", { skip: isInstalled ? false : "apt-get install pgbouncer" }, () => {
  let database: TestDatabase;
  let bouncer: PgBouncer;
  const brokers: BrokerProcess[] = [];
  const clients: HttpClient[] = [];

  before(async () => {
    database = await createDatabase();
    bouncer = await startPgBouncer(database.url);
    for (let index = 0; index < 2; index++) {
      const broker = await startBrokerProcess({ databaseUrl: bouncer.urlOf(database.url) });
      brokers.push(broker);
      clients.push(new HttpClient(broker.url));
    }
  });

  after(async () => {
    for (const client of clients) client.close();
    await Promise.all(brokers.map((broker) => broker.kill("SIGKILL")));
    await bouncer?.dispose();
    await database?.drop();
  });

  test("the bus knows that it hears nothing, and what another broker pushed is found by looking", async () => {
    for (const client of clients) {
      const { bus } = (await client.request("GET", "/metrics")).json;
      assert.equal(bus.state, "silent");
    }
    const { json } = await clients[0]!.request("GET", "/api/v1/system/doctor");
    const found = json.findings.find((finding: { code: string }) => finding.code === "bus");
    assert.equal(found.severity, "warning");

    const queue = newQueue();
    const popped = clients[1]!.pop(queue, { wait: true, timeout: 30_000 });
    await until("the pop is parked", async () => {
      const { pops } = (await clients[1]!.request("GET", "/metrics")).json;
      return pops.parked === 1;
    });
    await clients[0]!.push(numbered(queue, 1));
    assert.deepEqual(dataOf((await popped).messages), [0]);
  });

  test("no session of the server listens, and none keeps a setting of a broker's", async () => {
    const rows = await database.query(
      "select distinct application_name from pg_stat_activity where query ilike 'listen%' and datname = current_database()",
    );
    assert.deepEqual(rows, []);
    // Each of PgBouncer's sessions is asked, by as many transactions at once.
    const clients = Array.from(
      { length: 5 },
      () => new pg.Client({ connectionString: bouncer.urlOf(database.url) }),
    );
    let asked = 0;
    const values = await Promise.all(
      clients.map(async (client) => {
        await client.connect();
        try {
          await client.query("begin");
          const { rows } = await client.query(
            `select current_setting('synchronous_commit') as commits, current_setting('statement_timeout') as timeout,
                    current_setting('lock_timeout') as locks,
                    (select count(*)::int4 from pg_prepared_statements) as prepared, pg_backend_pid() as pid,
                    (select count(*)::int4 from pg_listening_channels()) as channels`,
          );
          asked++;
          await until("every transaction has its session", () => asked === clients.length);
          await client.query("commit");
          return rows[0];
        } finally {
          await client.end();
        }
      }),
    );
    assert.equal(new Set(values.map((value) => value.pid)).size, 5);
    for (const { commits, timeout, locks, prepared, channels } of values)
      assert.deepEqual(
        { commits, timeout, locks, prepared, channels },
        { commits: "on", timeout: "0", locks: "0", prepared: 0, channels: 0 },
      );
  });
});
