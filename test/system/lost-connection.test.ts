/** A connection to PostgreSQL that is dead alone, and nobody says so: firewalls forget connections. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startBrokerProcess } from "../support/broker.ts";
import { createDatabase } from "../support/database.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { NOT_POOLED } from "../support/pooled.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

// Whatever answers the request, it is no deadline of a call.
const PATIENT = {
  DB_STATEMENT_TIMEOUT: "1000000",
  LIBQUEEN_INFLIGHT_DEADLINE_MS: "2000000",
  NUM_WORKERS: "1",
};

for (const lost of ["the call", "its answer"] as const) {
  test(`where ${lost} is lost on one connection, it is answered all the same`, NOT_POOLED, async () => {
    const database = await createDatabase();
    const { hostname, port } = new URL(database.url);
    const dead = new Set<number>();
    let isArmed = false;
    const proxy = await startTcpProxy({ host: hostname, port: Number(port) }, () => ({
      seen: (direction, bytes, { number }) => {
        if (isArmed && direction === "to server" && bytes.includes("queen_append")) {
          isArmed = false;
          dead.add(number);
          return lost === "the call";
        }
        return dead.has(number);
      },
    }));
    const broker = await startBrokerProcess({ databaseUrl: proxy.urlOf(database.url), env: PATIENT });
    const client = new HttpClient(broker.url);
    const other = new HttpClient(broker.url);
    try {
      await client.push([{ queue: "q", partition: "first", payload: 0 }]);
      isArmed = true;
      let isAnswered = false;
      const answer = client
        .push([{ queue: "q", partition: "lost", transactionId: "t", payload: 1 }])
        .finally(() => {
          isAnswered = true;
        });
      await until("the connection is dead", () => dead.size === 1);
      // Others are served all the while: the database is not away.
      for (let n = 0; !isAnswered; n++) {
        const [result] = await other.push([{ queue: "q", partition: `other-${n % 5}`, payload: n }]);
        assert.equal(result?.status, "queued");
        await sleep(50);
      }
      const [result] = await answer;
      assert.ok(["queued", "duplicate"].includes(result!.status), result!.status);
      const { messages } = await other.pop("q", { partition: "lost", batch: 10 });
      assert.deepEqual(
        messages.map((message) => message.data),
        [1],
      );
    } finally {
      client.close();
      other.close();
      await broker.kill("SIGKILL");
      await proxy.close();
      await database.drop();
    }
  });
}
