/** Long polls by namespace and task: they wait for queues, too, that do not exist yet, on every worker of every broker. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Fleet, type FleetWorker, startFleet } from "../support/fleet.ts";
import type { HttpAnswer, PoppedMessage } from "../support/http.ts";
import { until } from "../support/moments.ts";
import { newQueue } from "../support/system.ts";

// Longer than any test waits: a pop that ends by its deadline was not woken.
const LONG_MS = 30_000;

const parkedOn = async ({ watch }: FleetWorker): Promise<number> =>
  (await watch.request("GET", "/metrics")).json.pops.parked;

/** A pop that waits; resolves when it is parked. */
async function park(
  worker: FleetWorker,
  query: Record<string, string>,
): Promise<{ readonly answer: Promise<HttpAnswer> }> {
  const before = await parkedOn(worker);
  const parameters = new URLSearchParams({ wait: "true", timeout: String(LONG_MS), ...query });
  const answer = worker.client.request("GET", `/api/v1/pop?${parameters}`);
  answer.catch(() => undefined); // whoever awaits it is told
  await until("the pop is parked", async () => (await parkedOn(worker)) > before);
  return { answer };
}

const dataOf = ({ json }: HttpAnswer): unknown[] =>
  ((json?.messages ?? []) as PoppedMessage[]).map((message) => message.data);

for (const bus of ["on", "off"] as const) {
  describe(`pops by namespace and task with the bus ${bus}`, () => {
    let fleet: Fleet;
    let workers: Fleet["workers"];

    before(async () => {
      fleet = await startFleet(bus);
      workers = fleet.workers;
    });
    after(() => fleet?.stop());

    const pairs = (): (readonly [FleetWorker, FleetWorker])[] => {
      const [alone, first, second] = workers;
      return [
        [alone, alone],
        [alone, first],
        [first, second],
        [second, alone],
      ];
    };

    test("a pop waits for a queue that does not exist, and gets the first message that makes it", async () => {
      for (const [popping, pushing] of pairs()) {
        const namespace = newQueue("space");
        const { answer } = await park(popping, { namespace });
        await pushing.client.push([{ queue: `${namespace}.mail`, payload: pushing.name }]);
        assert.deepEqual(dataOf(await answer), [pushing.name]);
      }
    });

    test("a queue that comes to match by its configuration joins a pop that waits for others already", async () => {
      for (const [popping, other] of pairs()) {
        const [namespace, task] = [newQueue("space"), newQueue("task")];
        const queue = newQueue("late");
        await other.client.request("POST", "/api/v1/configure", {
          queue: newQueue("early"),
          namespace,
          task,
        });
        await other.client.push([{ queue, payload: "stored before" }]);
        const { answer } = await park(popping, { namespace, task });
        await other.client.request("POST", "/api/v1/configure", { queue, namespace, task });
        assert.deepEqual(dataOf(await answer), ["stored before"]);
      }
    });

    test("for a group that starts with what is new, a queue that is made while it waits is new as a whole", async () => {
      const namespace = newQueue("space");
      const query = { namespace, consumerGroup: "late", subscriptionMode: "new", batch: "10" };
      const { answer } = await park(workers[0], query);
      await workers[1].client.push([1, 2].map((payload) => ({ queue: `${namespace}.q`, payload })));
      assert.deepEqual(dataOf(await answer), [1, 2]);
    });

    test("its deadline and pop maintenance end it, also where there is no queue", async () => {
      const [{ client }] = workers;
      const namespace = newQueue("space");
      const timeout = await client.request("GET", `/api/v1/pop?namespace=${namespace}&wait=true&timeout=200`);
      assert.deepEqual([timeout.status, timeout.headers["queen-empty-reason"]], [204, "timeout"]);
      assert.equal(await parkedOn(workers[0]), 0);

      const { answer } = await park(workers[0], { namespace });
      const path = "/api/v1/system/maintenance/pop";
      await workers[1].client.request("POST", path, { enabled: true });
      const paused = await answer;
      assert.deepEqual([paused.status, paused.headers["queen-empty-reason"]], [204, "paused"]);
      const { status } = await client.request("GET", `/api/v1/pop?namespace=${namespace}&wait=true`);
      assert.equal(status, 204, "it does not wait during maintenance");
      await workers[1].client.request("POST", path, { enabled: false });
      for (const { client: each } of workers)
        await until(
          "it is over",
          async () => (await each.request("GET", path)).json.popMaintenanceMode === false,
        );
    });

    test("pops with auto-ack over several queues lose nothing when messages come to all of them at once", async () => {
      const namespace = newQueue("space");
      const queues = Array.from({ length: 10 }, (_, index) => `${namespace}.${index}`);
      for (const queue of queues) await workers[0].client.push([{ queue, payload: "first" }]);
      const query = `namespace=${namespace}&autoAck=true&wait=true&timeout=2000`;
      const got: unknown[] = [];
      let isOver = false;
      const consume = async ({ client }: FleetWorker): Promise<void> => {
        while (!isOver) got.push(...dataOf(await client.request("GET", `/api/v1/pop?${query}`)));
      };
      const consuming = [consume(workers[0]), consume(workers[1])];
      for (let round = 0; round < 5; round++) {
        await until("everything so far came", () => got.length >= queues.length * (round + 1));
        await until("pops wait", async () => (await parkedOn(workers[0])) >= queues.length);
        await workers[2].client.push(queues.map((queue) => ({ queue, payload: `${round} ${queue}` })));
      }
      await until("everything came", () => got.length >= queues.length * 6);
      isOver = true;
      await Promise.all(consuming);
      const expected = queues.flatMap((queue) => [
        "first",
        ...[0, 1, 2, 3, 4].map((round) => `${round} ${queue}`),
      ]);
      assert.deepEqual(got.sort(), expected.sort());
    });
  });
}
