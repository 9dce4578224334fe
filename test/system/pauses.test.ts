/**
 * Pauses: what is paused delivers nothing, on any worker; everything else goes on. Pops that wait are served when
 * the pause ends.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Fleet, type FleetWorker, park, startFleet } from "../support/fleet.ts";
import type { HttpAnswer, PopAnswer, PopQuery } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { BUSES } from "../support/pooled.ts";
import { newQueue, numbered } from "../support/system.ts";

interface Place {
  readonly partition?: string;
  readonly consumerGroup?: string;
}

const PARTITIONS = ["a", "b"];
const GROUPS = ["g", "h"];

const covers = (pause: Place, partition: string, group: string): boolean =>
  (pause.partition ?? partition) === partition && (pause.consumerGroup ?? group) === group;

const values = (answer: PopAnswer): unknown[] => answer.messages.map(({ data }) => data);

for (const bus of BUSES) {
  describe(`pauses with the bus ${bus}`, () => {
    let fleet: Fleet;
    let workers: Fleet["workers"];

    before(async () => {
      fleet = await startFleet(bus);
      workers = fleet.workers;
    });
    after(() => fleet?.stop());

    const act = async (
      what: "pause" | "resume",
      queue: string,
      place: Place & { reason?: string } = {},
      worker: FleetWorker = workers[0],
    ): Promise<HttpAnswer["json"]> => {
      const path = `/api/v1/queues/${encodeURIComponent(queue)}/${what}`;
      const answer = await worker.watch.request("POST", path, place);
      assert.equal(answer.status, 200, answer.text);
      return answer.json;
    };
    /** Pops, and gives back what it got. */
    const peek = async (worker: FleetWorker, queue: string, query: PopQuery): Promise<PopAnswer> => {
      const popped = await worker.client.pop(queue, query);
      if (popped.messages.length > 0) await worker.client.ackMessages(popped.messages, "retry");
      return popped;
    };
    const untilPaused = (worker: FleetWorker, queue: string, query: PopQuery): Promise<PopAnswer> =>
      until(`${worker.name} delivers nothing`, async () => {
        const popped = await peek(worker, queue, query);
        return popped.emptyReason === "paused" ? popped : undefined;
      });

    const places: Place[] = [
      {},
      { consumerGroup: "g" },
      { partition: "a" },
      { partition: "a", consumerGroup: "g" },
    ];
    for (const place of places) {
      test(`a pause of ${JSON.stringify(place)} stops that and nothing else, on every worker`, async () => {
        const queue = newQueue();
        await workers[0].client.push(
          PARTITIONS.map((partition) => ({ queue, partition, payload: partition })),
        );
        for (const worker of workers) {
          for (const consumerGroup of GROUPS) {
            const popped = await until("the worker knows the queue", async () => {
              const answer = await peek(worker, queue, { consumerGroup, partitions: 2, batch: 10 });
              return answer.messages.length === 2 ? answer : undefined;
            });
            assert.deepEqual(values(popped).sort(), PARTITIONS);
          }
        }
        assert.equal((await act("pause", queue, place)).changed, true);
        for (const worker of workers) {
          for (const consumerGroup of GROUPS) {
            for (const partition of PARTITIONS) {
              const query = { partition, consumerGroup };
              if (covers(place, partition, consumerGroup)) {
                const popped = await untilPaused(worker, queue, query);
                assert.deepEqual([popped.status, popped.headers["retry-after"]], [204, "1"]);
              } else assert.deepEqual(values(await peek(worker, queue, query)), [partition]);
            }
            const free = PARTITIONS.filter((partition) => !covers(place, partition, consumerGroup));
            const any = await peek(worker, queue, { consumerGroup, partitions: 2, batch: 10 });
            assert.deepEqual(values(any).sort(), free, "a pop of any partition goes on with the rest");
            if (free.length === 0) assert.equal(any.emptyReason, "paused");
          }
        }
        await workers[1].client.push([{ queue, partition: "a", payload: "pushed while paused" }]);
        assert.equal((await act("resume", queue, place, workers[2])).changed, true);
        for (const worker of workers) {
          for (const consumerGroup of GROUPS) {
            await until(`${worker.name} delivers everything`, async () => {
              const popped = await peek(worker, queue, { consumerGroup, partitions: 2, batch: 10 });
              return popped.messages.length === 3;
            });
          }
        }
      });
    }

    for (const partition of [undefined, "a"]) {
      const query = partition === undefined ? {} : { partition };
      const what = partition === undefined ? "any partition" : "one partition";
      for (const place of [{}, { partition: "a" }]) {
        test(`a pop of ${what} waits while ${JSON.stringify(place)} is paused, and is served after that`, async () => {
          const queue = newQueue();
          await workers[0].client.push([{ queue, partition: "a", payload: 1 }]);
          await act("pause", queue, place);
          for (const worker of workers) await untilPaused(worker, queue, query);
          for (const worker of workers) {
            const waiting = await park(worker, queue, query);
            await workers[0].client.push([{ queue, partition: "a", payload: 2 }]);
            assert.equal(waiting.isAnswered(), false);
            await act("resume", queue, place, worker === workers[0] ? workers[1] : workers[0]);
            const popped = await waiting.answer;
            assert.deepEqual(values(popped), [1]);
            await act("pause", queue, place);
            await workers[0].client.ackMessages(popped.messages, "retry");
            for (const each of workers) await untilPaused(each, queue, query);
          }
        });
      }
    }

    test("a waiting pop is not served during a pause that began after it, and says so at its deadline", async () => {
      const queue = newQueue();
      await workers[0].client.configure(queue);
      const waiting = await Promise.all([
        park(workers[0], queue, { timeout: 4_000 }),
        park(workers[1], queue, { timeout: 4_000 }),
      ]);
      await act("pause", queue);
      const watch = async (worker: FleetWorker): Promise<PopAnswer> => worker.watch.pop(queue);
      for (const worker of workers.slice(0, 2)) {
        await until("it is paused there", async () => (await watch(worker)).emptyReason === "paused");
      }
      await workers[2].client.push([{ queue, payload: 1 }]);
      for (const { answer } of waiting) {
        const popped = await answer;
        assert.deepEqual([popped.status, popped.emptyReason], [204, "paused"]);
      }
    });

    test("a paused lane with work costs nothing while a pop of any lane waits", async () => {
      const queue = newQueue();
      const [worker] = workers;
      await worker.client.push([{ queue, partition: "a", payload: 1 }]);
      await act("pause", queue, { partition: "a" });
      const waiting = await park(worker, queue);
      const takes = async (): Promise<number> =>
        (await worker.watch.request("GET", "/metrics")).json.pops.states.LEASING?.count ?? 0;
      const before = await takes();
      for (let n = 0; n < 20; n++) await worker.watch.push([{ queue, partition: "a", payload: n }]);
      assert.equal(await takes(), before, "nobody tried the lane");
      await worker.watch.push([{ queue, partition: "b", payload: "from b" }]);
      assert.deepEqual(values(await waiting.answer), ["from b"]);
    });

    test("leases that are held stay valid: extended, acked, failed; what failed waits for the end of the pause", async () => {
      const queue = newQueue();
      const { client } = workers[0];
      await client.configure(queue, { retryDelay: 0 });
      await client.push(numbered(queue, 3));
      const { messages } = await client.pop(queue, { batch: 3 });
      await act("pause", queue);
      assert.equal((await client.extend(messages[0]!.leaseId, 60)).json[0].success, true);
      const [first, second] = messages;
      assert.equal((await client.ackMessages([first!]))[0]!.success, true);
      assert.equal((await client.ackMessages([second!], "failed", "boom"))[0]!.leaseReleased, true);
      assert.equal((await client.pop(queue)).emptyReason, "paused");
      const waiting = await park(workers[0], queue, { batch: 10 });
      await act("resume", queue);
      assert.deepEqual(values(await waiting.answer), [1, 2]);
    });

    test("pauses made and ended by SQL count, and a broker that starts later knows them", async () => {
      const queue = newQueue();
      await workers[0].client.push([{ queue, payload: 1 }]);
      for (const worker of workers) {
        await until("it knows the queue", async () => (await peek(worker, queue, {})).messages.length === 1);
      }
      await fleet.database.query(
        "insert into queen.pauses (queue_id, reason) select id, 'by hand' from queen.queues where name = $1",
        [queue],
      );
      const late = await fleet.another();
      assert.equal((await late.client.pop(queue)).emptyReason, "paused", "its first pop");
      for (const worker of workers) await untilPaused(worker, queue, {});
      await fleet.database.query("delete from queen.pauses");
      for (const worker of [...workers, late]) {
        await until("it delivers again", async () => (await peek(worker, queue, {})).messages.length === 1);
      }
    });

    test("a pop by namespace passes over a queue that is paused", async () => {
      const [paused, open] = [newQueue("ns"), newQueue("ns")];
      const { client } = workers[0];
      for (const [queue, priority] of [
        [paused, 10],
        [open, 1],
      ] as const) {
        const body = { queue, namespace: `pausing-${bus}`, options: { priority } };
        await client.request("POST", "/api/v1/configure", body);
        await client.push([{ queue, payload: queue }]);
      }
      await act("pause", paused);
      const popped = await client.request("GET", `/api/v1/pop?namespace=pausing-${bus}`);
      assert.equal(popped.json.messages[0].data, open);
    });

    test("a pause goes with its queue, its group or its partition", async () => {
      const queue = newQueue();
      const { client } = workers[0];
      const list = async (): Promise<unknown[]> =>
        (await client.request("GET", `/api/v1/queues/${queue}/pauses`)).json.pauses;
      const fill = async (): Promise<void> => {
        await client.push(PARTITIONS.map((partition) => ({ queue, partition, payload: partition })));
        await peek(workers[0], queue, { consumerGroup: "g" });
      };
      await fill();
      await act("pause", queue, { partition: "a" });
      await act("pause", queue, { consumerGroup: "g" });
      await act("pause", queue, { consumerGroup: "g", partition: "b" });
      assert.equal((await list()).length, 3);

      await fleet.database.query("delete from queen.partitions where name = 'b'");
      assert.equal((await list()).length, 2);
      await client.request("DELETE", `/api/v1/consumer-groups/g/queues/${queue}`);
      assert.equal((await list()).length, 1);
      const again = await until("the group made anew is not paused", async () => {
        const popped = await client.pop(queue, { consumerGroup: "g" });
        return popped.emptyReason === "paused" ? popped : undefined;
      });
      assert.equal(again.status, 204, "partition a is paused still");

      await client.request("DELETE", `/api/v1/resources/queues/${queue}`);
      assert.equal((await client.request("GET", `/api/v1/queues/${queue}/pauses`)).status, 404);
      await fill();
      assert.deepEqual(await list(), []);
      for (const worker of workers) {
        await until("all of it is delivered", async () => {
          const popped = await peek(worker, queue, { consumerGroup: "g", partitions: 2, batch: 10 });
          return popped.messages.length === 2;
        });
      }
    });
  });
}

describe("the routes of pauses", () => {
  let fleet: Fleet;
  let worker: FleetWorker;

  before(async () => {
    fleet = await startFleet("on");
    worker = fleet.workers[0];
  });
  after(() => fleet?.stop());

  const post = (queue: string, what: string, body?: unknown, user?: string): Promise<HttpAnswer> =>
    worker.client.request("POST", `/api/v1/queues/${queue}/${what}`, body, {
      headers: user === undefined ? {} : { "x-proxy-user": user },
    });

  test("say who paused what, why and since when, and what was done before", async () => {
    const queue = newQueue();
    await worker.client.push([{ queue, partition: "p 1", payload: 1 }]);
    const empty = await worker.client.request("GET", `/api/v1/queues/${queue}/pauses`);
    assert.deepEqual(empty.json, { queue, pauses: [] });

    const paused = await post(queue, "pause", { partition: "p 1", reason: "wrong prices" }, "anna");
    const { pausedAt, ...rest } = paused.json;
    assert.deepEqual(rest, {
      success: true,
      queue,
      partition: "p 1",
      consumerGroup: null,
      paused: true,
      changed: true,
      pausedBy: "anna",
      reason: "wrong prices",
      message: `Queue "${queue}", partition "p 1" is paused.`,
    });
    const again = await post(queue, "pause", { partition: "p 1", reason: "another" }, "bert");
    assert.deepEqual(
      [again.status, again.json.changed, again.json.pausedBy, again.json.reason, again.json.pausedAt],
      [200, false, "anna", "wrong prices", pausedAt],
    );
    assert.match(again.json.message, /was paused already, by anna since/);
    assert.equal((await post(queue, "pause")).json.pausedBy, "unknown");

    const listed = await worker.client.request("GET", `/api/v1/queues/${queue}/pauses`);
    assert.deepEqual(
      listed.json.pauses.map((each: Record<string, unknown>) => [each.partition, each.reason, each.pausedBy]),
      [
        ["p 1", "wrong prices", "anna"],
        [null, null, "unknown"],
      ],
    );

    const resumed = await post(queue, "resume");
    assert.deepEqual([resumed.json.changed, resumed.json.remainingPauses], [true, 1]);
    assert.equal((await worker.client.pop(queue)).emptyReason, "paused", "the partition is paused still");
    const nothing = await post(queue, "resume", {});
    assert.deepEqual([nothing.status, nothing.json.changed], [200, false]);
    assert.match(nothing.json.message, /was not paused; pauses of this queue that are left: 1/);
    assert.equal((await post(queue, "resume", { partition: "p 1" })).json.remainingPauses, 0);
  });

  test("know no queue, partition or group that does not exist; queue mode needs no pop before", async () => {
    const queue = newQueue();
    await worker.client.push([{ queue, payload: 1 }]);
    for (const what of ["pause", "resume"]) {
      for (const [name, body, error] of [
        ["nobody's", {}, "Queue not found"],
        [queue, { partition: "none" }, "Partition not found"],
        [queue, { consumerGroup: "none" }, "Consumer group not found"],
      ] as const) {
        const answer = await post(name, what, body);
        assert.deepEqual([answer.status, answer.json.error], [404, error]);
      }
    }
    assert.equal((await worker.client.request("GET", "/api/v1/queues/nobody's/pauses")).status, 404);
    assert.equal((await post(queue, "pause", { consumerGroup: "__QUEUE_MODE__" })).json.changed, true);
    assert.equal((await worker.client.pop(queue)).emptyReason, "paused");
  });

  test("refuse what they do not understand", async () => {
    const queue = newQueue();
    await worker.client.configure(queue);
    for (const body of [
      { partition: 1 },
      { partition: "" },
      { consumerGroup: ["g"] },
      { reason: 1 },
      { reason: "x".repeat(1001) },
      [1],
    ]) {
      const answer = await post(queue, "pause", body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.json.code, "VALIDATION_FAILED");
    }
    assert.equal((await worker.client.request("GET", `/api/v1/queues/${queue}/pause`)).status, 405);
  });
});
