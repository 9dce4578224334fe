/** What goes together in a request, what waits, and who is told what. */
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { startTestQueen } from "@queen/testing";
import { ClosedError, InvalidRequestError, Queen } from "../src/index.ts";
import { type FakeBroker, json, startFakeBroker } from "./fake-broker.ts";

interface Item {
  readonly partition: string;
  readonly transactionId: string;
  readonly payload: unknown;
}

const itemsOf = (body: unknown): readonly Item[] => (body as { items: readonly Item[] }).items;
const stored = ({ partition, transactionId }: Item) => ({
  status: "queued",
  transaction_id: transactionId,
  message_id: `m-${transactionId}`,
  partition_id: partition,
});

/** Requests in the order of their arrival; each is answered when the test says so. */
const requests: { readonly payloads: unknown[]; answer(): void }[] = [];
let arrived: () => void = () => undefined;
let broker: FakeBroker | undefined;
let queen: Queen;

beforeEach(async () => {
  await stop();
  requests.length = 0;
  broker = await startFakeBroker(({ body }, response) => {
    const items = itemsOf(body);
    const answer = () => {
      if (!response.headersSent) json(response, 201, items.map(stored));
    };
    requests.push({ payloads: items.map(({ payload }) => payload), answer });
    arrived();
  });
  queen = new Queen(broker.url);
});
after(stop);

async function stop(): Promise<void> {
  for (const { answer } of requests.splice(0)) answer();
  await queen?.close();
  await broker?.stop();
}

async function untilRequests(count: number): Promise<void> {
  while (requests.length < count)
    await new Promise<void>((resolve) => {
      arrived = resolve;
    });
}

const push = (partition: string, data: unknown) => queen.queue("q").partition(partition).push({ data });

test("pushes made in one go share a request, and each hears of its own", async () => {
  const pushes = Array.from({ length: 20 }, (_, number) => push(`lane-${number}`, number));
  await untilRequests(1);
  assert.deepEqual(
    requests[0]?.payloads,
    Array.from({ length: 20 }, (_, number) => number),
  );
  requests[0]?.answer();
  const results = await Promise.all(pushes);
  for (const [number, [result]] of results.entries())
    assert.deepEqual([result?.index, result?.partitionId], [0, `lane-${number}`]);
});

test("many pushes made in one go are shared by two requests, lane by lane", async () => {
  const lanes = Array.from({ length: 50 }, (_, number) => `lane-${number}`);
  const pushes = [...lanes, "lane-0", "lane-49"].map((lane, number) => push(lane, number));
  await untilRequests(2);
  assert.deepEqual(
    requests.map(({ payloads }) => payloads),
    [
      [...Array.from({ length: 25 }, (_, number) => number), 50],
      [...Array.from({ length: 25 }, (_, number) => 25 + number), 51],
    ],
  );
  for (const request of requests) request.answer();
  await Promise.all(pushes);
});

test("many pushes to one lane are one request", async () => {
  const numbers = Array.from({ length: 64 }, (_, number) => number);
  const pushes = numbers.map((number) => push("lane", number));
  await untilRequests(1);
  requests[0]?.answer();
  await Promise.all(pushes);
  assert.deepEqual(
    requests.map(({ payloads }) => payloads),
    [numbers],
  );
});

test("who pushes again on hearing of an answer goes with those that waited for it", async () => {
  const again = ["a", "b", "c"].map(async (lane, number) => {
    await push(lane, number);
    await push(`${lane}${lane}`, `${number} again`);
  });
  await untilRequests(1);
  const waited = push("a", "waited");
  await new Promise(setImmediate);
  requests[0]?.answer();
  await untilRequests(2);
  requests[1]?.answer();
  await Promise.all([...again, waited]);
  assert.deepEqual(
    requests.map(({ payloads }) => payloads),
    [
      [0, 1, 2],
      ["waited", "0 again", "1 again", "2 again"],
    ],
  );
});

test("two requests of a queue are under way; what comes meanwhile goes together in the next", async () => {
  const pushes = [push("a", 1)];
  await untilRequests(1);
  pushes.push(push("b", 2));
  await untilRequests(2);
  pushes.push(push("c", 3));
  await new Promise(setImmediate);
  pushes.push(push("d", 4));
  const other = queen.queue("other").push({ data: "not held up" });
  await untilRequests(3);
  assert.deepEqual(
    requests.map(({ payloads }) => payloads),
    [[1], [2], ["not held up"]],
  );
  requests[1]?.answer();
  await untilRequests(4);
  assert.deepEqual(requests[3]?.payloads, [3, 4]);
  for (const request of requests) request.answer();
  await Promise.all([...pushes, other]);
});

test("a lane is in one request at a time, and keeps the order of its pushes", async () => {
  const pushes = [push("a", 1)];
  await untilRequests(1);
  pushes.push(
    push("a", 2),
    push("b", 3),
    queen.queue("q").push([
      { data: 4, partition: "a" },
      { data: 5, partition: "b" },
    ]),
  );
  pushes.push(push("b", 6), push("c", 7));
  await untilRequests(2);
  // 4 is behind 2, 5 goes with it, and 6 is behind 5.
  assert.deepEqual(requests[1]?.payloads, [3, 7]);
  requests[1]?.answer();
  requests[0]?.answer();
  await untilRequests(3);
  assert.deepEqual(requests[2]?.payloads, [2, 4, 5, 6]);
  requests[2]?.answer();
  const [, , , two] = await Promise.all(pushes);
  assert.deepEqual(
    two?.map(({ index, partitionId }) => [index, partitionId]),
    [
      [0, "a"],
      [1, "b"],
    ],
  );
});

test("lanes of different brokers do not share a request, and go where they belong", async () => {
  const others = await Promise.all(
    [0, 1, 2].map(() =>
      startFakeBroker(({ body }, response) => json(response, 201, itemsOf(body).map(stored))),
    ),
  );
  const cluster = new Queen({ urls: others.map(({ url }) => url) });
  try {
    const lanes = Array.from({ length: 60 }, (_, number) => `lane-${number}`);
    const pushTo = (lane: string) => cluster.queue("q").partition(lane).push({ data: lane });
    for (const lane of lanes) await pushTo(lane);
    const homes = others.map(({ asked }) =>
      asked.flatMap(({ body }) => itemsOf(body).map(({ payload }) => payload)),
    );
    assert.ok(homes.every((home) => home.length > 0));
    for (const { asked } of others) asked.length = 0;
    await Promise.all(lanes.map(pushTo));
    for (const [index, { asked }] of others.entries()) {
      assert.equal(asked.length, 1);
      assert.deepEqual(
        itemsOf(asked[0]!.body).map(({ payload }) => payload),
        homes[index],
      );
    }
  } finally {
    await cluster.close();
    await Promise.all(others.map((each) => each.stop()));
  }
});

test("large messages do not gather beyond what a request should have", async () => {
  const large = "x".repeat(100_000);
  const pushes = Array.from({ length: 5 }, (_, number) => push(`lane-${number}`, large));
  pushes.push(push("all", "x".repeat(1_000_000)));
  await untilRequests(2);
  assert.deepEqual(
    requests.map(({ payloads }) => payloads.length),
    [2, 2],
  );
  for (const { answer } of requests.slice(0, 2)) answer();
  await untilRequests(4);
  assert.deepEqual(
    requests.slice(2).map(({ payloads }) => payloads.length),
    [1, 1],
  );
  for (const { answer } of requests) answer();
  await Promise.all(pushes);
});

test("a message that is refused does not take others along", async () => {
  broker!.respond = ({ body }, response) => {
    const items = itemsOf(body);
    if (items.some(({ payload }) => payload === "bad"))
      json(response, 400, { error: "a bad message", code: "INVALID" });
    else json(response, 201, items.map(stored));
  };
  const [one, bad, two] = await Promise.allSettled([push("a", 1), push("b", "bad"), push("a", 2)]);
  assert.deepEqual([one?.status, two?.status], ["fulfilled", "fulfilled"]);
  assert.ok(bad?.status === "rejected" && bad.reason instanceof InvalidRequestError);
  assert.deepEqual(
    broker!.asked.map(({ body }) => itemsOf(body).map(({ payload }) => payload)),
    [[1, "bad", 2], [1], ["bad"], [2]],
  );
});

test("what JSON cannot hold is refused before it is sent, and by itself", async () => {
  const pushes = Promise.allSettled([push("a", 1n), push("a", 2)]);
  await untilRequests(1);
  assert.deepEqual(requests[0]?.payloads, [2]);
  requests[0]?.answer();
  const [bad, good] = await pushes;
  assert.ok(bad?.status === "rejected" && bad.reason instanceof TypeError);
  assert.equal(good?.status, "fulfilled");
});

test("closing waits for pushes that nobody awaited, and refuses later ones", async () => {
  const first = push("a", 1);
  await untilRequests(1);
  const second = push("a", 2);
  const closed = queen.close();
  requests[0]?.answer();
  await untilRequests(2);
  requests[1]?.answer();
  await closed;
  assert.deepEqual(
    (await Promise.all([first, second])).map(([result]) => result?.status),
    ["queued", "queued"],
  );
  await assert.rejects(push("a", 3), ClosedError);
});

test("pushes that nobody awaits are stored in their order", async () => {
  const system = await startTestQueen();
  try {
    const queue = system.client().queue<number>("unawaited");
    const pushes: Promise<unknown>[] = [];
    for (let number = 0; number < 500; number++) {
      pushes.push(queue.partition(`lane-${number % 5}`).push({ data: number }));
      if (number % 7 === 0) await new Promise(setImmediate);
    }
    await Promise.all(pushes);
    for (let lane = 0; lane < 5; lane++) {
      const messages = await queue.partition(`lane-${lane}`).batch(200).autoAck(true).pop();
      assert.deepEqual(
        messages.map(({ data }) => data),
        Array.from({ length: 100 }, (_, index) => index * 5 + lane),
      );
    }
  } finally {
    await system.stop();
  }
});
