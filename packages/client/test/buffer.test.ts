/** A buffer groups pushes, keeps their order, has a bound, and loses nothing without saying so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Buffer } from "../src/buffer.ts";
import type { PushItem } from "../src/data-plane.ts";
import { ConnectionError, InvalidRequestError, Queen } from "../src/index.ts";
import { json, startFakeBroker } from "./fake-broker.ts";

const item = (payload: unknown): PushItem => ({
  queue: "q",
  partition: "p",
  transactionId: `t${payload}`,
  payload,
});
const items = (from: number, to: number): PushItem[] =>
  Array.from({ length: to - from }, (_, index) => item(from + index));
const never = new AbortController().signal;
const refused = new InvalidRequestError("no", {
  status: 400,
  code: "VALIDATION_FAILED",
  retryAfterMillis: null,
  requestId: null,
  body: null,
});

test("messages go together when there are enough, and the rest when its time is over", async () => {
  const pushed: unknown[][] = [];
  let done: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    done = resolve;
  });
  const buffer = new Buffer(
    async (batch) => {
      pushed.push(batch.map(({ payload }) => payload));
      if (pushed.flat().length === 5) done();
    },
    { messages: 2, millis: 5 },
  );
  await buffer.add(items(0, 5));
  await all;
  assert.deepEqual(pushed, [[0, 1], [2, 3], [4]]);
  await buffer.close(never);
});

test("one push is under way at a time, and a failed one is repeated before the next", async () => {
  const pushed: unknown[] = [];
  let underWay = 0;
  let failures = 1;
  const buffer = new Buffer(
    async (batch) => {
      assert.equal(++underWay, 1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      underWay--;
      if (failures-- > 0) throw new ConnectionError("away", true);
      pushed.push(...batch.map(({ payload }) => payload));
    },
    { messages: 3, millis: 1 },
  );
  await Promise.all([buffer.add(items(0, 4)), buffer.add(items(4, 8))]);
  await buffer.flush();
  assert.equal(pushed.length, 8);
  const ofFirst = pushed.filter((each) => (each as number) < 4);
  assert.deepEqual(ofFirst, [0, 1, 2, 3]);
  assert.equal(buffer.size, 0);
});

test("messages of an earlier push come first, also when their check takes longer", async () => {
  const pushed: unknown[] = [];
  const buffer = new Buffer(async (batch) => void pushed.push(...batch.map(({ payload }) => payload)), {});
  const slow = new Promise<PushItem[]>((resolve) => setTimeout(() => resolve(items(0, 2)), 10));
  const refusedFirst = Promise.reject(new Error("does not match"));
  void buffer.add(slow);
  const failed = buffer.add(refusedFirst);
  void buffer.add(items(2, 4));
  await assert.rejects(failed, /does not match/);
  await buffer.flush();
  assert.deepEqual(pushed, [0, 1, 2, 3]);
});

test("a full buffer makes its producers wait", async () => {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const buffer = new Buffer(() => gate, { messages: 2, millis: 1, max: 4 });
  let isIn = false;
  const adding = buffer.add(items(0, 6)).then(() => {
    isIn = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([isIn, buffer.size], [false, 4]);
  open();
  await adding;
  await buffer.close(never);
  assert.equal(buffer.size, 0);
});

test("a message that is refused takes no others along, and flush says so once", async () => {
  const pushed: unknown[] = [];
  const lost: unknown[] = [];
  const buffer = new Buffer(
    async (batch) => {
      if (batch.some(({ payload }) => payload === 1)) throw refused;
      pushed.push(...batch.map(({ payload }) => payload));
    },
    { messages: 4, millis: 1, onError: (_, bad) => lost.push(...bad.map(({ payload }) => payload)) },
  );
  await buffer.add(items(0, 4));
  await assert.rejects(buffer.flush(), InvalidRequestError);
  await buffer.flush();
  assert.deepEqual([pushed, lost], [[0, 2, 3], [1]]);
});

test("closing stores what waits, and says what it could not", async () => {
  const requests: unknown[][] = [];
  const broker = await startFakeBroker((asked, response) => {
    const sent = (asked.body as { items: PushItem[] }).items;
    requests.push(sent.map(({ payload }) => payload));
    json(
      response,
      201,
      sent.map(({ transactionId }) => ({ status: "queued", transaction_id: transactionId })),
    );
  });
  const queen = new Queen(broker.url);
  const buffered = queen.queue<number>("q").buffer({ messages: 100, millis: 60_000 });
  await buffered.push([{ data: 1 }, { data: 2 }]);
  await queen.queue<number>("q").buffer().partition("b").push({ data: 3 }); // the same buffer
  assert.equal(buffered.pending, 3);
  await queen.close();
  assert.deepEqual(requests, [[1, 2, 3]]);

  await broker.stop();
  const late = new Queen({ url: broker.url, retries: 0 });
  await late.queue("q").buffer().push({ data: 1 });
  await assert.rejects(late.close({ timeoutMillis: 50 }), /1 buffered messages were not stored/);
});
