/** A queue with a history is what the growth of retained messages is measured on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { Accountant } from "../accounting.ts";
import { Session } from "../load.ts";
import { runLoad } from "../loads/index.ts";
import { startBrokers } from "../processes/broker.ts";
import { startDatabaseServer } from "../processes/database-server.ts";

test("a group that comes after the history gets each new message once, on two brokers", async () => {
  const server = await startDatabaseServer(process.env.QUEEN_TEST_DATABASE_URL!, () => undefined);
  const name = `bench_history_${process.pid}`;
  try {
    const databaseUrl = await server.createDatabase(name);
    const brokers = await startBrokers(databaseUrl, { brokers: 2, workers: 1 });
    const session = new Session(brokers.addresses, "plain");
    const client = new pg.Client({ connectionString: databaseUrl });
    try {
      await client.connect();
      const figures = await runLoad(
        { kind: "sparse", partitions: 20, retained: 3_000 },
        {
          session,
          accountant: new Accountant({ brokerPids: brokers.pids, postmasterPid: null, databaseUrl: null }),
          timing: { warmupSeconds: 0, seconds: 0.2 },
          addresses: brokers.addresses,
          databaseUrl,
          padding: "plain",
          enterPhase: () => undefined,
        },
      );
      assert.deepEqual(figures.errors, {});
      assert.equal(figures.verdict?.correct, true, JSON.stringify(figures.verdict));
      const kept = await client.query<{ messages: number }>(
        "select sum(next_offset - start_offset)::int4 as messages from queen.partitions",
      );
      assert.equal(kept.rows[0]!.messages, 3_000 + figures.verdict.sent);
    } finally {
      session.close();
      await client.end();
      await brokers.stop();
    }
  } finally {
    await server.dropDatabase(name);
    await server.stop();
  }
});
