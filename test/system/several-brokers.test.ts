/** What one broker is told, all of them do: configuration, deletion, transactionIds, on every worker, with and without the bus. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Fleet, type FleetWorker, park, startFleet } from "../support/fleet.ts";
import { until } from "../support/moments.ts";
import { isPooled } from "../support/pooled.ts";
import { newQueue, numbered, startSystem } from "../support/system.ts";

for (const bus of ["on", "off"] as const) {
  describe(`several brokers with the bus ${bus}`, () => {
    let fleet: Fleet;
    let workers: Fleet["workers"];

    before(async () => {
      fleet = await startFleet(bus);
      workers = fleet.workers;
    });
    after(() => fleet?.stop());

    /** All workers, after each of them has worked with the queue: what it knows of it is held in memory. */
    const acquainted = async (queue: string): Promise<readonly FleetWorker[]> => {
      for (const { client } of workers) {
        await client.push([{ queue, partition: "known", payload: 0 }]);
        await client.pop(queue, { partition: "known", autoAck: true });
      }
      return workers;
    };

    test("a delay that one worker is told holds messages back on all, until it is taken away", async () => {
      const queue = newQueue();
      await acquainted(queue);
      await workers[1].client.configure(queue, { delayedProcessing: 3_600 });
      for (const [index, { client, name }] of workers.entries()) {
        // Where a worker does not know it yet, it delivers, once: the next message is held back.
        await until(`${name} knows the delay`, async () => {
          const partition = `lane-${index}-${Math.random()}`;
          await client.push([{ queue, partition, payload: 1 }]);
          return (await client.pop(queue, { partition })).emptyReason === "delayed";
        });
      }
      const { client } = workers[0];
      await client.push([{ queue, partition: "waiting", payload: "held" }]);
      const waiter = await park(workers[2], queue, { partition: "waiting" });
      await client.configure(queue, { delayedProcessing: 0 });
      const { messages } = await until("the delay is over", async () => {
        if (waiter.isAnswered()) return waiter.answer;
        const answer = await workers[1].client.pop(queue, { partition: "waiting" });
        return answer.messages.length > 0 ? answer : undefined;
      });
      assert.equal(messages[0]!.data, "held");
    });

    test("a limit that one worker is told stops pushes on all", async () => {
      const queue = newQueue();
      await acquainted(queue);
      await workers[0].client.push([{ queue, payload: "unfinished" }]);
      await workers[2].client.configure(queue, { maxSize: 1 });
      for (const { client, name } of workers)
        await until(`${name} knows the limit`, async () => {
          const { status } = await client.request("POST", "/api/v1/push", { items: [{ queue, payload: 1 }] });
          return status === 429;
        });
      await workers[1].client.configure(queue, { maxSize: 0 });
      for (const { client, name } of workers)
        await until(`${name} knows that there is none`, async () => {
          const { status } = await client.request("POST", "/api/v1/push", { items: [{ queue, payload: 1 }] });
          return status === 201;
        });
    });

    test("a queue that one worker deletes is a new one for all: its transactionIds are free again", async () => {
      const queue = newQueue();
      await acquainted(queue);
      const item = { queue, partition: "known", transactionId: "once", payload: 1 };
      const [stored] = await workers[0].client.push([item]);
      for (const { client } of workers) {
        const [again] = await client.push([item]);
        assert.deepEqual([again!.status, again!.message_id], ["duplicate", stored!.message_id]);
      }
      await workers[1].client.request("DELETE", `/api/v1/resources/queues/${queue}`);
      for (const [index, { client, name }] of workers.entries()) {
        const [pushed] = await client.push([{ ...item, transactionId: `after ${index}` }]);
        assert.equal(pushed!.status, "queued", name);
        assert.notEqual(pushed!.partition_id, stored!.partition_id, `${name} pushes to the new queue`);
      }
      const [once] = await workers[2].client.push([item]);
      assert.equal(once!.status, "queued", "it is free");
      const [again] = await workers[0].client.push([item]);
      assert.deepEqual(
        [again!.status, again!.message_id],
        ["duplicate", once!.message_id],
        "and taken for all",
      );
    });

    test("of pushes of one transactionId that race on all workers one is stored, and all name it", async () => {
      const queue = newQueue();
      await acquainted(queue);
      for (let round = 0; round < 20; round++) {
        const item = { queue, partition: "race", transactionId: `t${round}`, payload: round };
        const results = await Promise.all(
          workers.flatMap(({ client, watch }) => [client.push([item]), watch.push([item])]),
        );
        const all = results.flat();
        assert.equal(all.filter(({ status }) => status === "queued").length, 1, `round ${round}`);
        assert.equal(new Set(all.map((result) => result.message_id)).size, 1, `round ${round}`);
      }
    });

    // Who reads where is told by the bus.
    if (bus === "off" || isPooled) return;

    test("workers that read the same lanes look at different ones first", async () => {
      const queue = newQueue();
      await acquainted(queue);
      for (const [index, reader] of workers.entries()) {
        for (const writer of workers) {
          if (writer === reader) continue;
          // Whoever heard of this heard before it that the queue is read there.
          const partition = `${index} ${writer.name}`;
          await writer.client.push([{ queue, partition, payload: 0 }]);
          await reader.client.pop(queue, { partition, autoAck: true });
          const waiter = await park(reader, queue, { partition, autoAck: true });
          await writer.client.push([{ queue, partition, payload: 1 }]);
          assert.equal((await waiter.answer).messages.length, 1);
        }
      }
      // What they heard of meanwhile is gone.
      for (const { client } of workers) assert.equal((await client.pop(queue)).status, 204);
      const triedInVain = async ({ client }: FleetWorker): Promise<number> => {
        const { states } = (await client.request("GET", "/metrics")).json.pops;
        return states.LEASING.count - states.FETCHING.count;
      };
      const before = await Promise.all(workers.map(triedInVain));
      const lanes = Array.from({ length: 90 }, (_, lane) => `lane ${lane}`);
      await workers[0].client.push(lanes.map((partition) => ({ queue, partition, payload: partition })));
      const popped: unknown[] = [];
      for (let round = 0; round < 5; round++)
        for (const { client } of workers) popped.push((await client.pop(queue)).messages[0]!.data);
      assert.equal(new Set(popped).size, 15);
      assert.deepEqual(await Promise.all(workers.map(triedInVain)), before, "nobody tried another's lane");
    });
  });
}

test("a lane that was empty when a broker met it keeps its transactionIds, however much others appended since", async () => {
  const system = await startSystem({ NUM_WORKERS: "1", QUEEN_BUS: "off", POP_WAIT_MAX_INTERVAL_MS: "60000" });
  try {
    const here = system.client;
    const there = (await system.another()).client;
    // An append compares with a few thousand messages by itself; what is more has to be read.
    const byPush = async (items: ReturnType<typeof numbered>): Promise<string[]> =>
      (await here.push(items)).map(({ status }) => status);
    const byTransaction = async (items: ReturnType<typeof numbered>): Promise<string[]> => {
      const { status, json, text } = await here.transaction([{ type: "push", items }]);
      assert.equal(status, 200, text);
      return json.results.map((result: { status: string }) => result.status);
    };
    for (const [queue, count, send] of [
      ["few", 10, byPush],
      ["many", 6_000, byPush],
      ["few, a transaction", 10, byTransaction],
      ["many, a transaction", 6_000, byTransaction],
    ] as const) {
      await there.configure(queue);
      await system.database.query(
        "insert into queen.partitions (queue_id, name) select id, 'lane' from queen.queues where name = $1",
        [queue],
      );
      assert.equal((await here.pop(queue, { partition: "lane" })).status, 204);
      for (let from = 0; from < count; from += 1_000)
        await there.push(numbered(queue, Math.min(1_000, count), "lane", from));
      assert.deepEqual(await send(numbered(queue, 2, "lane", count - 1)), ["duplicate", "queued"], queue);
      const [lane] = await system.database.query(
        "select p.next_offset from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 and p.name = 'lane'",
        [queue],
      );
      assert.equal(Number(lane!.next_offset), count + 1);
    }
  } finally {
    await system.stop();
  }
});
