/** Push, pop, ack, leases, transactions, dead letters and administration, on a live broker. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestQueen, type TestQueen } from "@queen/testing";
import {
  AckError,
  ConflictError,
  InvalidRequestError,
  LeaseLostError,
  NotFoundError,
  type Queen,
} from "../src/index.ts";

let system: TestQueen;
let queen: Queen;
before(async () => {
  system = await startTestQueen();
  queen = system.client();
});
after(() => system?.stop());

const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ data: from + index, transactionId: `t${from + index}` }));
const dataOf = (messages: readonly { data: unknown }[]): unknown[] => messages.map(({ data }) => data);

test("what is pushed is popped in order, and stored once by its transactionId", async () => {
  const lane = queen.queue<number>("push").partition("c-42");
  const first = await lane.push(numbers(3));
  assert.deepEqual(
    first.map(({ index, status, transactionId }) => [index, status, transactionId]),
    [
      [0, "queued", "t0"],
      [1, "queued", "t1"],
      [2, "queued", "t2"],
    ],
  );
  const [again] = await lane.push({ data: 99, transactionId: "t1" });
  assert.deepEqual([again?.status, again?.messageId], ["duplicate", first[1]?.messageId]);
  const [own] = await queen.queue("push").push({ data: null, partition: "other" });
  assert.match(own!.transactionId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(await queen.queue("push").push([]), []);

  const messages = await lane.batch(10).pop();
  assert.deepEqual(dataOf(messages), [0, 1, 2]);
  assert.deepEqual([messages[0]?.queue, messages[0]?.partition], ["push", "c-42"]);
  const acked = await queen.ack(messages);
  assert.ok(acked.every(({ success }) => success) && acked.at(-1)?.leaseReleased);
  assert.deepEqual(await lane.pop(), []);
});

test("more messages than one request takes are pushed in order", async () => {
  const results = await queen.queue<number>("many").push(numbers(6_000));
  assert.deepEqual(
    [results.length, results.at(-1)?.index, results.at(-1)?.transactionId],
    [6_000, 5_999, "t5999"],
  );
  const messages = await queen.queue<number>("many").batch(10_000).autoAck(true).pop();
  assert.deepEqual(dataOf(messages), dataOf(numbers(6_000)));
});

test("a payload is null rather than lost, and any JSON comes back", async () => {
  const payloads = [undefined, null, 0, "", [], { a: [1, { b: "ü\u0000" }] }];
  await queen.queue("payloads").push(payloads.map((data) => ({ data })));
  const messages = await queen.queue("payloads").batch(10).autoAck(true).pop();
  assert.deepEqual(dataOf(messages), [null, ...payloads.slice(1)]);
  assert.equal(messages[0]?.leaseId, "");
});

test("names of any shape reach their queue", async () => {
  for (const name of ["..", "a b/c?d=e&f#g", "ümläut%20", "'quoted'"]) {
    await queen.queue(name).partition(`${name}/lane`).push({ data: name });
    const [message] = await queen.queue(name).partition(`${name}/lane`).autoAck(true).pop();
    assert.deepEqual([message?.data, message?.queue, message?.partition], [name, name, `${name}/lane`]);
  }
});

test("every group reads the whole queue, and one that starts now skips what was there", async () => {
  const queue = queen.queue<number>("groups");
  await queue.push(numbers(2));
  assert.deepEqual(dataOf(await queue.group("a").batch(9).pop()), [0, 1]);
  assert.deepEqual(dataOf(await queue.group("b").batch(9).pop()), [0, 1]);
  const late = queue.group("late").subscriptionMode("new").batch(9);
  assert.deepEqual(await late.pop(), []);
  await queue.push(numbers(1, 2));
  assert.deepEqual(dataOf(await late.pop()), [2]);
});

test("a pop that waits is answered by a push, and ends with its signal", async () => {
  const waiting = queen.queue<number>("waiting").wait(true).timeoutMillis(20_000).pop();
  await queen.queue("waiting").push({ data: 7 });
  assert.deepEqual(dataOf(await waiting), [7]);
  assert.deepEqual(await queen.queue("waiting").wait(true).timeoutMillis(50).pop(), []);
  const abort = new AbortController();
  const aborted = queen.queue("waiting").wait(true).pop({ signal: abort.signal });
  abort.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
});

test("a pop of several partitions, and one by namespace", async () => {
  await queen.queue("mail.out").namespace("mail").task("out").config({ leaseTime: 30 }).create();
  for (const lane of ["a", "b", "c"]) await queen.queue("mail.out").partition(lane).push({ data: lane });
  const messages = await queen.queue<string>("mail.out").batch(9).partitions(3).pop();
  assert.deepEqual(new Set(dataOf(messages)), new Set(["a", "b", "c"]));
  assert.equal(new Set(messages.map(({ leaseId }) => leaseId)).size, 1);
  await queen.ack(messages, "retry");
  const [message] = await queen.queue().namespace("mail").pop();
  assert.equal(message?.queue, "mail.out");
  await assert.rejects(queen.queue().pop(), /Name a queue/);
});

test("acks say what becomes of a message", async () => {
  const queue = queen.queue<number>("acks").config({ retryLimit: 1, retryDelay: 0 });
  await queue.create();
  await queue.push(numbers(2));
  const [first] = await queue.pop();
  await queen.ack(first!, "retry");
  const [second] = await queue.pop();
  assert.equal(second?.data, 0);
  await queen.ack(second!, false, { error: "once" });
  const [third] = await queue.pop();
  const [result] = await queen.ack(third!, "failed", { error: "twice" });
  assert.equal(result?.dlq, true); // one retry is the limit
  const [fourth] = await queue.pop();
  assert.equal((await queen.ack(fourth!, "dlq", { error: "at once" }))[0]?.dlq, true);

  const { messages, total } = await queue.dlq().get();
  assert.deepEqual([total, messages.map(({ errorMessage }) => errorMessage)], [2, ["at once", "twice"]]);
  const listed: unknown[] = [];
  for await (const letter of queue.dlq().limit(1)) listed.push(letter.data);
  assert.deepEqual(listed, [1]);
  assert.equal((await queue.dlq().requeue()).requeued, 2);
  const again = await queue.batch(9).pop();
  assert.deepEqual(new Set(dataOf(again)), new Set([0, 1]));
  await queen.ack(again, "dlq");
  assert.equal((await queue.dlq().purge()).purged, 2);
  assert.equal((await queue.dlq().get()).total, 0);
});

test("a lost lease is an error, and others' messages stay untouched", async () => {
  const queue = queen.queue<number>("lost");
  await queue.push(numbers(1));
  const [mine] = await queue.pop();
  assert.match(await queen.renew(mine!, 90), /^\d{4}-/);
  await system.expireLeases("lost");
  const [theirs] = await queue.pop();
  assert.equal(theirs?.data, 0);
  await assert.rejects(queen.ack(mine!), (error) => {
    assert.ok(error instanceof AckError);
    return error.results[0]?.error === "Invalid or expired lease";
  });
  await assert.rejects(queen.renew(mine!), LeaseLostError);
  await queen.ack(theirs!);
});

test("a transaction acks and pushes together, or not at all", async () => {
  const orders = queen.queue<number>("tx-orders");
  await orders.push(numbers(2));
  const [order] = await orders.group("billing").pop();
  const result = await queen
    .transaction()
    .ack(order!)
    .queue<{ of: number }>("tx-invoices")
    .partition("c-1")
    .push({ data: { of: 0 } })
    .commit();
  assert.deepEqual([result.pushed[0]?.status, result.acked.length], ["queued", 1]);
  const [invoice] = await queen.queue("tx-invoices").partition("c-1").autoAck(true).pop();
  assert.deepEqual(invoice?.data, { of: 0 });

  const [lost] = await orders.group("billing").pop();
  await system.expireLeases("tx-orders");
  await orders.group("billing").pop();
  const late = queen.transaction().ack(lost!).queue("tx-invoices").push({ data: "never" });
  await assert.rejects(late.commit(), ConflictError);
  assert.deepEqual(await queen.queue("tx-invoices").pop(), []);
  await assert.rejects(queen.transaction().commit(), /is empty/);
});

test("a transaction that is committed again after a lost answer is stored once", async () => {
  const transaction = queen.transaction().queue("tx-again").push({ data: 1 });
  const broken = transaction.commit();
  assert.equal(transaction.commit(), broken); // under way: the same one
  await broken;
  const [stored] = await queen.queue("tx-again").batch(9).autoAck(true).pop();
  assert.equal(stored?.data, 1);
});

test("administration is typed and reaches every part of the control plane", async () => {
  const queue = queen.queue<number>("admin").config({ leaseTime: 7 });
  await queue.create();
  await queue.partition("a").push(numbers(2));
  const { queue: facts } = await queen.admin.statusOfQueue("admin");
  assert.equal(facts.config.leaseTime, 7);
  const [message] = await queue.group("g").pop();
  await queen.trace(message!, { step: 1 }, { traceNames: "checkout" });
  assert.equal((await queen.admin.tracesByName("checkout")).total, 1);
  assert.deepEqual((await queen.admin.explain("admin", "a", "g")).code, "leased");
  await queen.ack(message!);
  assert.equal((await queen.admin.consumerGroups({ queue: "admin" }))[0]?.totalLag, 1);
  await queen.admin.seek("g", "admin", "end");
  assert.equal((await queen.admin.consumerGroups({ queue: "admin" }))[0]?.totalLag, 0);
  await queen.admin.pause("admin", { reason: "test" });
  assert.equal((await queen.admin.pauses("admin")).pauses.length, 1);
  await queen.admin.resume("admin");
  assert.equal((await queen.admin.message(message!)).payload, 0);
  assert.equal((await queen.admin.health()).status, "healthy");
  assert.equal((await queen.admin.call("GET /api/v1/system/doctor")).findings.length > 0, true);
  assert.equal((await queen.admin.clearQueue("admin")).messages, 2);
  await queue.delete();
  await assert.rejects(queen.admin.queue("admin"), NotFoundError);
  await assert.rejects(queen.queue("x".repeat(300)).push({ data: 1 }), InvalidRequestError);
});
