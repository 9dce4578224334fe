/** What a consumer promises: order in a lane, acks as the handler ends, and an orderly stop. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { messageId, partitionId } from "@queen/protocol";
import { startTestQueen, type TestQueen, until } from "@queen/testing";
import { type AckError, ForbiddenError, Queen } from "../src/index.ts";
import { json, startFakeBroker } from "./fake-broker.ts";

let system: TestQueen;
let queen: Queen;
const warnings: string[] = [];
before(async () => {
  system = await startTestQueen();
  queen = system.client({ onWarning: (message) => warnings.push(message) });
});
after(() => system?.stop());

async function fill(name: string, lanes: readonly string[], count: number, config = {}) {
  const queue = queen.queue<number>(name).config({ retryDelay: 0, ...config });
  await queue.create();
  for (const lane of lanes)
    await queue.partition(lane).push(Array.from({ length: count }, (_, data) => ({ data })));
  return queue;
}

test("every message is handled once, in its lane's order, whatever the concurrency", async () => {
  const lanes = Array.from({ length: 8 }, (_, index) => `lane-${index}`);
  const queue = await fill("order", lanes, 25);
  const seen = new Map<string, number[]>();
  const inLane = new Set<string>();
  const summary = await queue
    .group("g")
    .batch(10)
    .partitions(2)
    .concurrency(4)
    .each()
    .limit(200)
    .consume(async ({ partition, data }) => {
      assert.ok(!inLane.has(partition), "two handlers in one lane");
      inLane.add(partition);
      await sleep(1);
      seen.set(partition, [...(seen.get(partition) ?? []), data]);
      inLane.delete(partition);
    });
  assert.deepEqual(summary, { completed: 200, failed: 0 });
  for (const lane of lanes)
    assert.deepEqual(
      seen.get(lane),
      Array.from({ length: 25 }, (_, data) => data),
    );
  await system.drained("order", "g");
});

test("a handler that throws fails its message, and the rest of the lane waits for it", async () => {
  const queue = await fill("fails", ["a", "b"], 4, { retryLimit: 5 });
  const seen: string[] = [];
  const errors: unknown[] = [];
  let failures = 0;
  await queue
    .batch(8)
    .partitions(2)
    .each()
    .limit(10)
    .consume(async ({ partition, data }) => {
      seen.push(`${partition}${data}`);
      if (partition === "a" && data === 1 && failures++ < 2) throw new Error("not yet");
    })
    .onError((error) => {
      errors.push(error);
    });
  assert.deepEqual(
    seen.filter((each) => each.startsWith("a")),
    ["a0", "a1", "a1", "a1", "a2", "a3"],
  );
  assert.deepEqual(
    seen.filter((each) => each.startsWith("b")),
    ["b0", "b1", "b2", "b3"],
  );
  assert.equal(errors.length, 2);
  await system.drained("fails");
});

test("onError decides what becomes of a message, and onSuccess hears of the ack", async () => {
  const queue = await fill("decides", ["a"], 3);
  const succeeded: unknown[] = [];
  await queue
    .each()
    .limit(3)
    .consume((message) => {
      if (message.data === 1) throw new Error("poison");
      return message.data * 10;
    })
    .onError(() => "dlq")
    .onSuccess((message, result) => succeeded.push([message.data, result]));
  assert.deepEqual(succeeded, [
    [0, 0],
    [2, 20],
  ]);
  const { messages } = await queue.dlq().get();
  assert.deepEqual(
    messages.map(({ data, errorMessage }) => [data, errorMessage]),
    [[1, "poison"]],
  );
});

test("a batch is acked as a whole, and fails as a whole", async () => {
  const queue = await fill("batches", ["a"], 4);
  const batches: number[][] = [];
  await queue
    .batch(4)
    .limit(8)
    .consume((messages) => {
      batches.push(messages.map(({ data }) => data));
      if (batches.length === 1) throw new Error("all of them");
    });
  assert.deepEqual(batches, [
    [0, 1, 2, 3],
    [0, 1, 2, 3],
  ]);
  await system.drained("batches");
  assert.ok(warnings.some((warning) => warning.includes("The handler of batches failed")));
});

test("a limit is exact, also with several loops", async () => {
  const queue = await fill("limit", ["a", "b", "c"], 10);
  let handled = 0;
  await queue
    .batch(4)
    .concurrency(3)
    .each()
    .limit(11)
    .consume(() => {
      handled++;
    });
  assert.equal(handled, 11);
  const [rest] = await queen.admin.consumerGroups({ queue: "limit" });
  assert.equal(rest?.totalLag, 19);
});

test("messages that the handler settled itself are not settled again", async () => {
  const queue = await fill("by-hand", ["a"], 3);
  const seen: number[] = [];
  await queue
    .batch(3)
    .each()
    .limit(4)
    .consume(async (message) => {
      seen.push(message.data);
      if (seen.length === 1) await queen.ack(message, "retry"); // the whole lane comes again
      if (message.data === 1)
        await queen.transaction().ack(message).queue("by-hand-out").push({ data: 1 }).commit();
      if (seen.length === 4) await queen.ack(message, "dlq");
    });
  assert.deepEqual(seen, [0, 0, 1, 2]);
  assert.deepEqual(
    (await queue.dlq().get()).messages.map(({ data }) => data),
    [2],
  );
  await system.drained("by-hand");
});

test("without autoAck nothing is acked but by hand", async () => {
  const queue = await fill("manual", ["a"], 2);
  await queue
    .batch(2)
    .autoAck(false)
    .limit(2)
    .consume(async ([first]) => {
      await queen.ack(first!);
    });
  assert.equal((await queen.admin.consumerGroups({ queue: "manual" }))[0]?.totalLag, 1);
});

test("closing lets the handler finish and gives the rest back, at once and uncounted", async () => {
  const queue = await fill("closing", ["a"], 5, { leaseTime: 300, retryLimit: 0 });
  const own = system.client();
  const begun: number[] = [];
  let finish: () => void = () => undefined;
  const consumption = own
    .queue<number>("closing")
    .batch(5)
    .each()
    .consume(async (message) => {
      begun.push(message.data);
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
  await until("the handler has begun", () => begun.length === 1);
  const closed = own.close();
  finish();
  await closed;
  assert.deepEqual(await consumption, { completed: 1, failed: 0 });
  const rest = await queue.batch(9).pop();
  assert.deepEqual(
    rest.map(({ data }) => data),
    [1, 2, 3, 4],
  );
});

test("a handler that does not end in time sees its signal, and its message is given back", async () => {
  const queue = await fill("stuck", ["a"], 2, { leaseTime: 300 });
  const own = system.client();
  let seen: AbortSignal | undefined;
  void own
    .queue("stuck")
    .batch(2)
    .consume(async (_, { signal }) => {
      seen = signal;
      await new Promise(() => undefined);
    });
  await until("the handler has begun", () => seen !== undefined);
  await own.close({ timeoutMillis: 50 });
  assert.equal(seen?.aborted, true);
  assert.equal((await queue.batch(9).pop()).length, 2);
});

test("a signal, stop(), or nothing to do for a while ends a consumer that waits", async () => {
  const abort = new AbortController();
  const waiting = queen.queue("nobody-pushes").consume(() => undefined, { signal: abort.signal });
  abort.abort();
  assert.deepEqual(await waiting, { completed: 0, failed: 0 });
  const other = queen.queue("nobody-pushes").consume(() => undefined);
  assert.deepEqual(await other.stop(), { completed: 0, failed: 0 });
  const idle = queen.queue("nobody-pushes").concurrency(2).idleMillis(100);
  assert.deepEqual(await idle.consume(() => undefined), { completed: 0, failed: 0 });
  for await (const _ of queen.queue("nobody-pushes").messages({ idleMillis: 100 }))
    assert.fail("who pushed?");
});

test("the loop over messages finishes each, and leaving it gives the present one and the rest back", async () => {
  const queue = await fill("loop", ["a"], 6, { leaseTime: 300, retryLimit: 0 });
  const seen: number[] = [];
  for await (const message of queue.messages({ group: "g", batch: 4 })) {
    assert.equal(message.signal.aborted, false);
    seen.push(message.data);
    if (message.data === 2) break;
  }
  assert.deepEqual(seen, [0, 1, 2]);
  const failing = async (): Promise<void> => {
    for await (const { data } of queue.messages({ group: "g", batch: 2 })) throw new Error(`stop at ${data}`);
  };
  await assert.rejects(failing(), /stop at 2/);
  const rest: number[] = [];
  for await (const { data } of queue.messages({ group: "g", batch: 9, limit: 4 })) rest.push(data);
  assert.deepEqual(rest, [2, 3, 4, 5]);
  await system.drained("loop", "g");
});

test("acks that come together go together", async () => {
  const acks: number[] = [];
  let popped = false;
  const broker = await startFakeBroker((asked, response) => {
    if (asked.path.startsWith("/api/v1/pop")) {
      if (popped) return; // the next long poll
      popped = true;
      const place = { partitionId: "p", partition: "a", leaseId: "l", consumerGroup: "g", id: "i" };
      const message = (data: number) => ({ ...place, transactionId: `t${data}`, data, traceId: null });
      json(response, 200, { queue: "q", messages: Array.from({ length: 50 }, (_, data) => message(data)) });
      return;
    }
    const { acknowledgments } = asked.body as { acknowledgments: { transactionId: string }[] };
    acks.push(acknowledgments.length);
    const results = acknowledgments.map(({ transactionId }) => ({
      transactionId,
      success: true,
      error: null,
    }));
    json(response, 200, results);
  });
  const own = new Queen({ url: broker.url, useWorker: false });
  await own
    .queue("q")
    .group("g")
    .batch(50)
    .each()
    .limit(50)
    .consume(() => undefined);
  await own.close();
  await broker.stop();
  assert.equal(
    acks.reduce((sum, count) => sum + count, 0),
    50,
  );
  assert.ok(acks.length <= 5, `${acks}`);
});

test("a batch is acked as a range, and what becomes of it becomes of each of its messages", async () => {
  const asks: unknown[] = [];
  const outcomes = [
    { success: true, error: null },
    { success: false, error: "Invalid or expired lease" },
  ];
  const broker = await startFakeBroker((asked, response) => {
    if (asked.path.startsWith("/api/v1/pop")) {
      const place = {
        partitionId: partitionId(3),
        partition: "a",
        leaseId: `l${asks.length}`,
        consumerGroup: "g",
      };
      const messages = [5, 6, 7].map((offset) => ({
        ...place,
        id: messageId(3, offset),
        transactionId: `t${offset}`,
        data: offset,
      }));
      json(response, 200, { queue: "q", messages });
      return;
    }
    const { acknowledgments } = asked.body as { acknowledgments: unknown[] };
    const outcome = outcomes[asks.length]!;
    asks.push(...acknowledgments);
    json(response, 200, [{ index: 0, messages: 3, ...outcome, leaseReleased: true, dlq: false }]);
  });
  const finished: unknown[] = [];
  const refused: unknown[] = [];
  const own = new Queen({
    url: broker.url,
    useWorker: false,
    onWarning: (_, error) => refused.push(...(error as AckError).results),
  });
  await own
    .queue("q")
    .group("g")
    .batch(3)
    .limit(6)
    .consume(() => undefined)
    .onSuccess((messages) => finished.push(...messages.map(({ data }) => data)));
  await own.close();
  await broker.stop();
  const range = { firstId: messageId(3, 5), lastId: messageId(3, 7), status: "completed" };
  assert.deepEqual(asks, [
    { ...range, leaseId: "l0" },
    { ...range, leaseId: "l1" },
  ]);
  assert.deepEqual(finished, [5, 6, 7], "only of the ack that was a success");
  assert.deepEqual(
    refused,
    [5, 6, 7].map((offset) => ({
      transactionId: `t${offset}`,
      ...outcomes[1],
      leaseReleased: true,
      dlq: false,
    })),
  );
});

test("a consumer goes on when brokers come back, and ends where it may not read", async () => {
  let answers = 0;
  const broker = await startFakeBroker((_, response) => {
    answers++;
    if (answers <= 2) response.socket?.resetAndDestroy();
    else if (answers === 3) json(response, 503, { error: "away", code: "DATABASE_UNAVAILABLE" });
    else json(response, 403, { error: "You may not.", code: "FORBIDDEN" });
  });
  const own = new Queen({ url: broker.url, retries: 0, useWorker: false });
  await assert.rejects(async () => own.queue("q").consume(() => undefined), ForbiddenError);
  assert.equal(answers, 4);
  await broker.stop();
});
