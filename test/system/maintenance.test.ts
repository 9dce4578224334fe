/**
 * Modes of maintenance: switched by one request or by SQL, known to every worker, kept over restarts. With push
 * maintenance only pushes are refused, with pop maintenance only pops are. (These brokers have no spool; with one, pushes
 * are taken to the disk: spool.test.ts.)
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fleet, type FleetWorker, park, startFleet } from "../support/fleet.ts";
import type { HttpAnswer } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { BUSES } from "../support/pooled.ts";
import { newQueue } from "../support/system.ts";

const PUSH = "/api/v1/system/maintenance";
const POP = "/api/v1/system/maintenance/pop";
// A broker goes on looking for five seconds after somebody worked there.
const IDLE_MS = 7_000;

const push = ({ client }: FleetWorker, queue: string, payload: unknown = 1): Promise<HttpAnswer> =>
  client.request("POST", "/api/v1/push", { items: [{ queue, payload }] });

for (const bus of BUSES) {
  describe(`maintenance with the bus ${bus}`, () => {
    let fleet: Fleet;
    let workers: Fleet["workers"];

    before(async () => {
      fleet = await startFleet(bus, { QUEEN_SPOOL_MAX_BYTES: "0" });
      workers = fleet.workers;
    });
    after(() => fleet?.stop());

    const set = async (path: string, enabled: boolean): Promise<HttpAnswer> => {
      const answer = await workers[0].client.request("POST", path, { enabled });
      assert.equal(answer.status, 200, answer.text);
      return answer;
    };
    const refused = async (worker: FleetWorker, queue: string): Promise<HttpAnswer> =>
      until(`${worker.name} refuses pushes`, async () => {
        const answer = await push(worker, queue);
        return answer.status === 503 ? answer : undefined;
      });

    test("push maintenance refuses pushes on every worker, and nothing else", async () => {
      const queue = newQueue();
      const { client } = workers[0];
      await client.push([1, 2, 3].map((payload) => ({ queue, payload })));
      assert.deepEqual((await set(PUSH, true)).json, {
        maintenanceMode: true,
        bufferedMessages: 0,
        bufferHealthy: true,
        message: "Push maintenance is on: pushes are refused with 503 until it is switched off.",
      });
      assert.equal((await push(workers[0], queue)).status, 503, "at once where it was switched");
      for (const worker of workers) {
        const answer = await refused(worker, queue);
        assert.equal(answer.json.code, "MAINTENANCE");
        assert.equal(answer.headers["retry-after"], "1");
        const empty = await worker.client.request("POST", "/api/v1/push", { items: [] });
        assert.equal(empty.status, 201, "nothing to refuse");
        const wrong = await worker.client.request("POST", "/api/v1/push", { items: [{ payload: 1 }] });
        assert.equal(wrong.status, 400, "a mistake is told first");
      }

      const { messages } = await client.pop(queue, { batch: 1 });
      assert.equal(messages.length, 1);
      assert.equal((await client.ackMessages(messages))[0]!.success, true);
      const [next] = (await client.pop(queue, { batch: 1 })).messages;
      const transaction = await client.transaction([
        { type: "ack", transactionId: next!.transactionId, partitionId: next!.partitionId },
        { type: "push", items: [{ queue, payload: 4 }] },
      ]);
      assert.equal(transaction.status, 200, transaction.text);

      assert.equal((await set(PUSH, false)).json.maintenanceMode, false);
      for (const worker of workers) {
        await until("pushes are stored", async () => (await push(worker, queue)).status === 201);
      }
    });

    test("pop maintenance answers every pop at once, also those that wait already, on every worker", async () => {
      const queue = newQueue();
      const { client } = workers[0];
      await client.push([{ queue, payload: 1 }]);
      const held = await client.pop(queue);
      const waiting = await Promise.all(
        workers.flatMap((worker, index) => [
          park(worker, queue, { consumerGroup: `empty-${index}`, subscriptionMode: "new" }),
        ]),
      );
      const named = await park(workers[0], queue, { partition: "missing" });

      assert.deepEqual((await set(POP, true)).json, {
        popMaintenanceMode: true,
        message: "Pop maintenance is on: every pop is answered at once, with nothing.",
      });
      for (const { answer } of [...waiting, named]) {
        const popped = await answer;
        assert.deepEqual([popped.status, popped.emptyReason], [204, "paused"]);
        assert.equal(popped.headers["retry-after"], "1");
      }
      await client.push([{ queue, payload: 2 }]);
      for (const worker of workers) {
        for (const query of [{}, { wait: true }, { partition: "Default", wait: true }, { autoAck: true }]) {
          const popped = await worker.client.pop(queue, query);
          assert.deepEqual([popped.status, popped.emptyReason], [204, "paused"]);
          assert.equal(popped.headers["retry-after"], "1");
        }
        const byNamespace = await worker.client.request("GET", "/api/v1/pop?namespace=nobody&wait=true");
        assert.equal(byNamespace.headers["queen-empty-reason"], "paused");
      }

      assert.equal((await client.extend(held.messages[0]!.leaseId, 60)).json[0].success, true);
      assert.equal((await client.ackMessages(held.messages))[0]!.success, true);
      await set(POP, false);
      for (const worker of workers) {
        await until("pops get messages", async () => {
          const { messages } = await worker.client.pop(queue);
          if (messages.length === 0) return false;
          await worker.client.ackMessages(messages, "retry");
          return true;
        });
      }
    });

    test("a group that starts with new messages is recorded although pop maintenance is on", async () => {
      const queue = newQueue();
      const query = { consumerGroup: "late", subscriptionMode: "new" };
      const { client } = workers[0];
      await client.push([{ queue, payload: "history" }]);
      await set(POP, true);
      assert.equal((await client.pop(queue, query)).emptyReason, "paused");
      await client.push([{ queue, payload: "new" }]);
      await set(POP, false);
      const popped = await client.pop(queue, { ...query, batch: 10 });
      assert.deepEqual(
        popped.messages.map(({ data }) => data),
        ["new"],
      );
    });

    test("a switch by SQL counts on every worker, and for a broker that starts later", async () => {
      const queue = newQueue();
      const { database } = fleet;
      const value = (enabled: boolean): string => JSON.stringify({ enabled });
      const upsert = `insert into queen.system_state (key, value) values ('maintenance_mode', $1)
                      on conflict (key) do update set value = excluded.value`;
      await database.query(upsert, [value(true)]);
      for (const worker of workers) await refused(worker, queue);
      const late = await fleet.another();
      assert.equal((await push(late, queue)).status, 503, "its first push");
      const { json } = await late.client.request("GET", PUSH);
      assert.equal(json.maintenanceMode, true);

      await database.query("delete from queen.system_state");
      for (const worker of [...workers, late]) {
        await until("pushes are stored", async () => (await push(worker, queue)).status === 201);
      }
    });

    test("a worker that was idle knows it at its first request", async () => {
      const queue = newQueue();
      const { database } = fleet;
      const sql = (key: string, enabled: boolean): Promise<unknown> =>
        database.query(
          `insert into queen.system_state (key, value) values ($1, jsonb_build_object('enabled', $2::bool))
           on conflict (key) do update set value = excluded.value`,
          [key, enabled],
        );
      for (const worker of workers) assert.equal((await push(worker, queue)).status, 201);
      await sleep(IDLE_MS);
      await sql("maintenance_mode", true);
      await sleep(1_000); // what is promised
      for (const worker of workers) assert.equal((await push(worker, queue)).status, 503, worker.name);
      await sql("maintenance_mode", false);
      for (const worker of workers) {
        await until("pushes are stored", async () => (await push(worker, queue)).status === 201);
      }
    });

    test("the routes show what is on, and refuse what they do not understand", async () => {
      const { client } = workers[1];
      const get = async (path: string): Promise<HttpAnswer["json"]> => {
        const answer = await client.request("GET", path);
        assert.equal(answer.status, 200, answer.text);
        return answer.json;
      };
      assert.deepEqual(await get(PUSH), {
        maintenanceMode: false,
        popMaintenanceMode: false,
        bufferedMessages: 0,
        bufferHealthy: true,
        bufferStats: {
          pendingCount: 0,
          failedCount: 0,
          dbHealthy: true,
          failedFiles: { count: 0, totalBytes: 0, totalMB: 0, failoverCount: 0, qos0Count: 0 },
        },
      });
      assert.deepEqual(await get(POP), {
        popMaintenanceMode: false,
        message: "Pop maintenance is off: pops get messages.",
      });
      const { worker, ...buffers } = await get("/api/v1/status/buffers");
      assert.deepEqual(buffers, { pending: 0, failed: 0, dbHealthy: true });
      assert.equal(typeof worker, "number");

      await set(POP, true);
      assert.equal((await get(POP)).popMaintenanceMode, true);
      assert.equal((await get(PUSH)).popMaintenanceMode, true);
      await set(POP, true); // again: it stays on
      await set(POP, false);

      for (const path of [PUSH, POP]) {
        for (const body of [{}, { enabled: "true" }, { enabled: null }, { enabled: 1 }]) {
          const answer = await client.request("POST", path, body);
          assert.equal(answer.status, 400);
          assert.equal(answer.json.error, "enabled (boolean) is required");
        }
        assert.equal((await client.request("POST", path, "no json")).json.code, "INVALID_JSON");
        assert.equal((await client.request("DELETE", path)).status, 405);
      }
    });

    test("a mode keeps the time since when it is on, however often it is switched on", async () => {
      const since = async (): Promise<unknown> =>
        (
          await fleet.database.query(
            "select updated_at::text from queen.system_state where key = 'pop_maintenance_mode'",
          )
        )[0]!.updated_at;
      await set(POP, true);
      const first = await since();
      await set(POP, true);
      assert.equal(await since(), first);
      await set(POP, false);
      assert.notEqual(await since(), first);
    });

    test("shared state tells of the other workers and of maintenance, alike at all its addresses", async () => {
      const { client } = workers[0];
      await set(POP, true);
      const shown = (await client.request("GET", "/api/v1/system/shared-state")).json;
      assert.equal(shown.pop_maintenance_mode, true);
      assert.equal(shown.maintenance_mode, false);
      assert.deepEqual([shown.enabled, shown.running], [bus === "on", bus === "on"]);
      if (bus === "on") assert.ok(shown.server_health.servers_alive >= 2);
      else assert.equal(shown.server_health.servers_tracked, 0);
      assert.ok(shown.queue_config_cache.size >= 1 && shown.queue_config_cache.misses >= 1);
      const health = (await client.request("GET", "/health")).json;
      assert.deepEqual(health.queen, { worker_id: health.worker_id, status: "active" });
      for (const path of ["/internal/api/shared-state/stats", "/internal/api/inter-instance/stats"]) {
        const { json } = await client.request("GET", path);
        assert.deepEqual(Object.keys(json).sort(), Object.keys(shown).sort());
        assert.equal(json.server_id, shown.server_id);
      }
      assert.deepEqual(Object.keys(health.shared_state).sort(), Object.keys(shown).sort());
      await set(POP, false);
    });

    test("notify has parked pops look for what nobody told them of", async () => {
      const { client } = workers[0];
      for (const body of [{ partition: "p" }, {}]) {
        const answer = await client.request("POST", "/internal/api/notify", body);
        assert.deepEqual([answer.status, answer.json.error], [400, "queue is required"]);
      }
      const unknown = await client.request("POST", "/internal/api/notify", {
        queue: "nobody's",
        partition: "p",
      });
      assert.deepEqual([unknown.status, unknown.json], [200, { status: "ok" }]);

      for (const partition of [undefined, "p"]) {
        const queue = newQueue();
        await client.push([{ queue, partition: "p", payload: 0 }]);
        for (const worker of workers) {
          const { messages } = await until("the message is there", async () => {
            const popped = await worker.client.pop(queue);
            return popped.messages.length > 0 ? popped : undefined;
          });
          await worker.client.ackMessages(messages, worker === workers[2] ? "completed" : "retry");
        }
        const waiting = await park(workers[2], queue);
        const sql = await fleet.database.client();
        await sql.query("set queen.notify = off"); // with the bus, brokers do not hear of this push
        await sql.query("select queen.push_messages_v2($1)", [
          JSON.stringify([{ queue, partition: "p", transactionId: "quiet", payload: 1 }]),
        ]);
        const answer = await client.request("POST", "/internal/api/notify", { queue, partition });
        assert.deepEqual([answer.status, answer.json], [200, { status: "ok" }]);
        const popped = await waiting.answer;
        assert.deepEqual(
          popped.messages.map(({ transactionId }) => transactionId),
          ["quiet"],
        );
      }
    });
  });
}
