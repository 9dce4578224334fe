/** The SQL interface beside brokers: they see the same queue, at the commit and never before it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { PopAnswer } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { type Application, acksOf, call, createApplication, idsOf, items, pop } from "../support/sql-api.ts";
import { type System, startSystem } from "../support/system.ts";

let queues = 0;
const newQueue = (): string => `queue-${++queues}`;

const idsIn = (answer: PopAnswer): string[] => answer.messages.map((message) => message.transactionId);

for (const bus of ["true", "false"]) {
  describe(bus === "true" ? "with the bus" : "without the bus", () => {
    let system: System;
    let application: Application;
    let client: pg.Client;

    before(async () => {
      system = await startSystem({ QUEEN_BUS: bus });
      application = await createApplication(system.database);
      client = await application.connect();
    });
    after(async () => {
      await application?.drop();
      await system?.stop();
    });

    const parkedCount = async (): Promise<number> =>
      (await system.client.request("GET", "/metrics")).json.pops.parked;

    /** A pop that waits at the broker, and when its answer came. */
    async function park(queue: string, query: object = {}) {
      const parked = await parkedCount();
      const answer = system.client
        .pop(queue, { wait: true, timeout: 20_000, batch: 100, ...query })
        .then((popped) => ({ popped, atMs: performance.now() }));
      let isAnswered = false;
      void answer.then(() => {
        isAnswered = true;
      });
      await until("the pop is parked", async () => (await parkedCount()) > parked);
      return { answer, isAnswered: () => isAnswered };
    }

    // A look a second, and the way of the answer on a busy machine.
    const WAKE_MS_MAX = bus === "true" ? 1_000 : 2_000;

    for (const known of [true, false]) {
      test(`a parked pop gets a push after the commit, and not before${known ? "" : ", in a queue that is new"}`, async () => {
        const queue = newQueue();
        if (known) {
          await call(client, "push_messages_v2", items(queue, 0, 1));
          await system.client.pop(queue, { autoAck: true });
        }
        const waiter = await park(queue);
        await client.query("begin");
        await call(client, "push_messages_v2", items(queue, 1, 3));
        await sleep(1_300);
        assert.equal(waiter.isAnswered(), false, "nothing before the commit");
        await client.query("commit");
        const committedMs = performance.now();
        const { popped, atMs } = await waiter.answer;
        assert.deepEqual(idsIn(popped), ["t1", "t2"]);
        assert.ok(atMs - committedMs < WAKE_MS_MAX, `woken after ${Math.round(atMs - committedMs)} ms`);
      });
    }

    for (const end of ["commit", "rollback"]) {
      test(`a group's first pop in an open transaction makes no other pop fail; after its ${end} they go on`, async () => {
        const queue = newQueue();
        await call(client, "push_messages_v2", [...items(queue, 0, 1, "a"), ...items(queue, 1, 2, "b")]);
        await client.query("begin");
        const held = await pop(client, queue, { consumer_group: "g", partition_name: "a" });
        assert.deepEqual(idsOf(held), ["t0"]);

        const query = { consumerGroup: "g", partitions: 10, batch: 10 };
        assert.equal(
          (await system.client.pop(queue, query)).status,
          204,
          "nothing of the group that is being made",
        );
        const other = await system.client.pop(queue, { ...query, consumerGroup: "other" });
        assert.equal(other.messages.length, 2, "other groups go on");
        const waiter = await park(queue, query);
        await client.query(end);
        const { popped } = await waiter.answer;
        const expected = end === "commit" ? ["t1"] : ["t0", "t1"];
        const got = idsIn(popped);
        while (got.length < expected.length)
          got.push(...idsIn(await system.client.pop(queue, { ...query, wait: true, timeout: 20_000 })));
        assert.deepEqual(got.sort(), expected);
      });
    }

    test("a lane's first pop in an open transaction holds up that lane only", async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", items(queue, 0, 1, "old"));
      await system.client.pop(queue, { consumerGroup: "g", autoAck: true });
      await call(client, "push_messages_v2", [...items(queue, 1, 2, "a"), ...items(queue, 2, 3, "b")]);
      await client.query("begin");
      assert.deepEqual(idsOf(await pop(client, queue, { consumer_group: "g", partition_name: "a" })), ["t1"]);
      const query = { consumerGroup: "g", partitions: 10, batch: 10, wait: true, timeout: 20_000 };
      assert.deepEqual(idsIn(await system.client.pop(queue, query)), ["t2"]);
      const named = await system.client.pop(queue, {
        consumerGroup: "g",
        partition: "a",
        wait: true,
        timeout: 300,
      });
      assert.equal(named.status, 204);
      await client.query("rollback");
      assert.deepEqual(idsIn(await system.client.pop(queue, query)), ["t1"]);
    });

    test("a rollback wakes nobody", async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", items(queue, 0, 1));
      await system.client.pop(queue, { autoAck: true });
      const answer = system.client.pop(queue, { wait: true, timeout: 1_500 });
      await client.query("begin");
      await call(client, "push_messages_v2", items(queue, 1, 2));
      await client.query("rollback");
      assert.equal((await answer).status, 204);
    });

    test("an ack and a release by SQL free the lane for a parked pop", async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", items(queue, 0, 3));
      const held = await system.client.pop(queue, { batch: 1 });
      const waiter = await park(queue, { partition: "Default", batch: 1 });
      await call(client, "ack_messages_v2", acksOf({ messages: held.messages } as never));
      const ackedMs = performance.now();
      const { popped, atMs } = await waiter.answer;
      assert.deepEqual(idsIn(popped), ["t1"]);
      assert.ok(atMs - ackedMs < WAKE_MS_MAX, `woken after ${Math.round(atMs - ackedMs)} ms`);

      const next = await park(queue, { batch: 1 });
      await call(client, "pop_sm_release", { leaseId: popped.messages[0]!.leaseId });
      const releasedMs = performance.now();
      const again = await next.answer;
      assert.deepEqual(idsIn(again.popped), ["t1"]);
      assert.ok(
        again.atMs - releasedMs < WAKE_MS_MAX,
        `woken after ${Math.round(again.atMs - releasedMs)} ms`,
      );
    });

    test("messages, duplicates, leases and acks are common to both", async () => {
      const queue = newQueue();
      const odd = 'a "quoted" \\ ünï 😀';
      const exact = '{"z":1,"a":1e400,"s":"\\u0000"}';
      const [stored] = await call(client, "push_messages_v2", [
        { queue, transactionId: odd, payloadText: exact },
      ]);
      const pushed = await system.client.push([
        { queue, transactionId: odd, payload: 1 },
        { queue, transactionId: "http", payload: 2 },
      ]);
      assert.deepEqual(
        pushed.map((row) => row.status),
        ["duplicate", "queued"],
      );
      assert.equal(pushed[0]!.message_id, stored.message_id);
      assert.equal(
        (await call(client, "push_messages_v2", [{ queue, transactionId: "http" }]))[0].status,
        "duplicate",
      );

      const byHttp = await system.client.pop(queue, { batch: 10, consumerGroup: "one" });
      assert.ok(byHttp.text.includes(`"data":${exact}`), "the payload's bytes");
      assert.equal(
        (await pop(client, queue, { consumer_group: "one", partition_name: "Default" })).error,
        "lease_held",
      );
      const acked = await call(
        client,
        "ack_messages_v2",
        acksOf({ messages: byHttp.messages } as never),
        true,
      );
      assert.ok(acked.every((row: { success: boolean }) => row.success));

      const bySql = await pop(client, queue, { consumer_group: "two" });
      assert.deepEqual(idsOf(bySql), [odd, "http"]);
      assert.equal(
        (await system.client.pop(queue, { consumerGroup: "two", partition: "Default" })).emptyReason,
        "lease_held",
      );
      const answer = await system.client.request("POST", "/api/v1/ack/batch", {
        consumerGroup: "two",
        acknowledgments: acksOf(bySql),
      });
      assert.deepEqual(
        answer.json.map((row: { success: boolean }) => row.success),
        [true, true],
      );
      assert.equal((await pop(client, queue, { consumer_group: "two" })).success, false);
    });

    test("an open transaction holds its lane; other lanes are served, and order holds", async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", [...items(queue, 0, 1, "held"), ...items(queue, 0, 1, "free")]);
      await system.client.pop(queue, { autoAck: true, partitions: 2, batch: 2 });
      await client.query("begin");
      await call(client, "push_messages_v2", items(queue, 1, 2, "held"));
      const behind = system.client.push([
        { queue, partition: "held", transactionId: "behind", payload: null },
      ]);
      const beside = await system.client.push([
        { queue, partition: "free", transactionId: "beside", payload: null },
      ]);
      assert.equal(beside[0]!.status, "queued");
      assert.deepEqual(idsIn(await system.client.pop(queue, { batch: 10 })), ["beside"]);
      await client.query("commit");
      assert.equal((await behind)[0]!.status, "queued");
      const popped = await until("the lane is served", async () => {
        const answer = await system.client.pop(queue, { batch: 10, partition: "held", autoAck: true });
        return answer.status === 200 ? answer : undefined;
      });
      assert.deepEqual(idsIn(popped), ["t1", "behind"]);
    });
  });
}
