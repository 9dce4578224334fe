/** Retries and dead letters over HTTP (P8): a failing message is retried, then kept apart; nothing is lost. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PopAnswer, PopQuery } from "../support/http.ts";
import {
  expireLeases,
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
} from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

interface DeadLetter {
  readonly id: string;
  readonly transactionId: string;
  readonly queue: string;
  readonly partition: string;
  readonly partitionId: string;
  readonly consumerGroup: string;
  readonly errorMessage: string;
  readonly retryCount: number;
  readonly data: unknown;
  readonly producerSub: string | null;
  readonly createdAt: string;
  readonly failedAt: string;
}

interface DeadLetters {
  readonly messages: DeadLetter[];
  readonly total: number;
  readonly pagination: { limit: number; offset: number };
}

/** Newest first, as the broker lists them. */
async function deadLetters(query: Record<string, string | number>): Promise<DeadLetters> {
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)] as [string, string]),
  );
  const answer = await system.client.request("GET", `/api/v1/dlq?${parameters}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

const short = (letters: DeadLetters): unknown[] =>
  letters.messages.map((letter) => [letter.transactionId, letter.errorMessage, letter.retryCount]).reverse();

const pop = (queue: string, query: PopQuery = {}): Promise<PopAnswer> =>
  system.client.pop(queue, { batch: 10, ...query });

/** Pops when the lane is to be had again: after a retry's delay, or when a lease has run out. */
const popWaiting = (queue: string, query: PopQuery = {}): Promise<PopAnswer> =>
  pop(queue, { wait: true, timeout: 10_000, ...query });

test("a failed message and all after it come again in order, retryLimit times, then it is a dead letter", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 2, retryDelay: 0 });
  await system.client.push(numbered(queue, 4));
  for (let attempt = 0; attempt < 3; attempt++) {
    const { messages } = await pop(queue);
    assert.deepEqual(idsOf(messages), attempt === 0 ? ids(0, 4) : ids(1, 4), `attempt ${attempt}`);
    if (attempt === 0) await system.client.ackMessages(messages.slice(0, 1));
    const [failed] = await system.client.ackMessages(
      messages.filter((message) => message.transactionId === "t1"),
      "failed",
      `error ${attempt}`,
    );
    assert.deepEqual([failed!.success, failed!.dlq], [true, attempt === 2]);
    // With retries left the lane is free at once; a dead letter leaves the rest with its holder.
    assert.equal(failed!.leaseReleased, attempt < 2);
    if (attempt === 2) await system.client.ackMessages(messages.slice(1));
  }
  assert.equal((await pop(queue)).status, 204);
  const letters = await deadLetters({ queue });
  assert.deepEqual(short(letters), [["t1", "error 2", 2]]);
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: "__QUEUE_MODE__", committed: 4, acked: null, leased: false },
  ]);
});

test("a dead letter has the payload byte for byte, its error, its group and its history", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 1, retryDelay: 0 });
  const payload = '{"b":12345678901234567890,"a":1e400,"a":"\\u0000"}';
  const body = `{"items":[{"queue":"${queue}","partition":"p","transactionId":"t","payload":${payload}}]}`;
  const [pushed] = (await system.client.request("POST", "/api/v1/push", body)).json;
  for (const error of ["first", "second"]) {
    await system.client.ackMessages((await pop(queue, { consumerGroup: "g" })).messages, "failed", error);
  }
  const answer = await system.client.request("GET", `/api/v1/dlq?queue=${queue}`);
  assert.ok(answer.text.includes(`"data":${payload},`), answer.text);
  const [{ createdAt, failedAt, data, deadLetterId, ...letter }] = answer.json.messages;
  assert.match(deadLetterId, /^[0-9a-f-]{36}$/);
  assert.deepEqual(letter, {
    id: pushed.message_id,
    transactionId: "t",
    traceId: null,
    producerSub: null,
    queue,
    partition: "p",
    partitionId: pushed.partition_id,
    consumerGroup: "g",
    errorMessage: "second",
    retryCount: 1,
    isEncrypted: false,
    payloadError: null,
  });
  for (const time of [createdAt, failedAt]) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const [row] = await system.database.query(
    `select history from queen.dead_letters d join queen.queues q on q.id = d.queue_id where q.name = $1`,
    [queue],
  );
  assert.deepEqual(
    row!.history.map((entry: { error: string }) => entry.error),
    ["first", "second"],
  );
});

test("the dead letter outlives the log", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  await system.client.ackMessages((await pop(queue)).messages, "dlq", "why");
  await system.database.query(
    `delete from queen.segments s using queen.partitions p, queen.queues q
      where s.partition_id = p.id and p.queue_id = q.id and q.name = $1`,
    [queue],
  );
  assert.deepEqual(short(await deadLetters({ queue })), [["t0", "why", 0]]);
});

test("a failed message waits for retryDelay, and nothing of its lane passes it meanwhile", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 5, retryDelay: 1_000 });
  await system.client.push(numbered(queue, 2));
  await system.client.ackMessages((await pop(queue, { batch: 1 })).messages, "failed");
  assert.equal((await pop(queue)).emptyReason, "retry_delay");
  await system.client.push(numbered(queue, 1, undefined, 2));
  assert.equal((await pop(queue, { partition: "Default" })).emptyReason, "retry_delay");
  assert.deepEqual(idsOf((await popWaiting(queue)).messages), ids(0, 3));
});

test("nacking a whole batch on the last retry loses nothing (C-2)", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 3, retryDelay: 0 });
  await system.client.push(numbered(queue, 4));
  for (let attempt = 0; attempt < 4; attempt++) {
    const { messages } = await pop(queue, { batch: 3 });
    assert.deepEqual(idsOf(messages), ids(0, 3), `attempt ${attempt}`);
    const results = await system.client.ackMessages(messages, "failed", "broken");
    assert.deepEqual(
      results.map((result) => [result.success, result.dlq]),
      Array(3).fill([true, attempt === 3]),
    );
  }
  assert.deepEqual(
    short(await deadLetters({ queue })),
    ids(0, 3).map((id) => [id, "broken", 3]),
  );
  assert.deepEqual(idsOf((await pop(queue)).messages), ["t3"]);
});

test("failures are counted per message: a neighbour's do not count against the next one (C-3)", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 1, retryDelay: 0 });
  await system.client.push(numbered(queue, 3));
  const failOne = async (id: string): Promise<boolean> => {
    const { messages } = await pop(queue);
    const [result] = await system.client.ackMessages(
      messages.filter((message) => message.transactionId === id),
      "failed",
      `${id} failed`,
    );
    await system.client.ackMessages(messages.slice(0, 1), "retry");
    return result!.dlq;
  };
  assert.equal(await failOne("t0"), false);
  assert.equal(await failOne("t0"), true);
  assert.equal(await failOne("t1"), false, "its first failure");
  assert.equal(await failOne("t2"), false, "its first failure");
  assert.equal(await failOne("t1"), true);
  assert.equal(await failOne("t2"), true);
  assert.deepEqual(
    short(await deadLetters({ queue })),
    ids(0, 3).map((id) => [id, `${id} failed`, 1]),
  );
});

test("in a batch with every kind of ack, each message gets what was said of it", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0, retryDelay: 0 });
  await system.client.push(numbered(queue, 6));
  const { messages } = await pop(queue, { batch: 5 });
  const statuses = ["completed", "failed", "dlq", "retry", "success"] as const;
  const results = await system.client.ack(
    messages.map(({ transactionId, partitionId, leaseId }, index) => ({
      transactionId,
      partitionId,
      leaseId,
      status: statuses[index]!,
      error: `e${index}`,
    })),
  );
  assert.deepEqual(
    results.map((result) => [result.success, result.dlq, result.leaseReleased]),
    [false, true, true, false, false].map((dlq) => [true, dlq, true]),
  );
  assert.deepEqual(short(await deadLetters({ queue })), [
    ["t1", "e1", 0],
    ["t2", "e2", 0],
  ]);
  assert.deepEqual(idsOf((await pop(queue)).messages), ["t3", "t5"], "what was to be retried, and the rest");
});

test("dlq puts a message among the dead letters at once, and the lane goes on", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  const { messages } = await pop(queue, { batch: 1 });
  const [result] = await system.client.ackMessages(messages, "dlq", "poison");
  assert.deepEqual([result!.success, result!.dlq, result!.leaseReleased], [true, true, true]);
  assert.deepEqual(short(await deadLetters({ queue })), [["t0", "poison", 0]]);
  assert.deepEqual(idsOf((await pop(queue)).messages), ["t1"]);
});

test("retry gives the messages back at once and counts nothing", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0, retryDelay: 600_000 });
  await system.client.push(numbered(queue, 3));
  for (let time = 0; time < 5; time++) {
    const { messages } = await pop(queue);
    assert.deepEqual(idsOf(messages), ids(0, 3));
    const [result] = await system.client.ackMessages(messages.slice(1, 2), "retry");
    assert.deepEqual([result!.success, result!.leaseReleased, result!.dlq], [true, true, false]);
  }
  assert.equal((await deadLetters({ queue })).total, 0);
});

test("retryLimit 0: the first failure is the last", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0 });
  await system.client.push(numbered(queue, 1));
  const [result] = await system.client.ackMessages((await pop(queue)).messages, "failed");
  assert.deepEqual([result!.dlq, result!.leaseReleased], [true, true]);
  assert.deepEqual(short(await deadLetters({ queue })), [["t0", "Retries exhausted", 0]]);
});

for (const option of ["deadLetterQueue", "dlqAfterMaxRetries"]) {
  test(`${option}: false, said explicitly, retries for ever`, async () => {
    const queue = newQueue();
    await system.client.configure(queue, { retryLimit: 1, retryDelay: 0, [option]: false });
    await system.client.push(numbered(queue, 1));
    for (let attempt = 0; attempt < 8; attempt++) {
      const [result] = await system.client.ackMessages((await pop(queue)).messages, "failed");
      assert.deepEqual([result!.success, result!.dlq], [true, false]);
    }
    assert.equal((await deadLetters({ queue })).total, 0);
    await system.client.ackMessages((await pop(queue)).messages, "dlq", "by hand");
    assert.deepEqual(short(await deadLetters({ queue })), [["t0", "by hand", 8]]);
  });
}

test("a failure on one broker counts on another", async () => {
  const { client } = await system.another();
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 1, retryDelay: 0 });
  await system.client.push(numbered(queue, 1));
  await client.ackMessages((await pop(queue)).messages, "failed", "there");
  const popped = await popWaiting(queue);
  const [result] = await client.ackMessages(popped.messages, "failed", "there again");
  assert.equal(result!.dlq, true);
  assert.deepEqual(short(await deadLetters({ queue })), [["t0", "there again", 1]]);
});

test("groups fail on their own: a dead letter of one is delivered to the other", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0 });
  await system.client.push(numbered(queue, 1));
  await system.client.ackMessages((await pop(queue, { consumerGroup: "a" })).messages, "failed", "a");
  assert.deepEqual(idsOf((await pop(queue, { consumerGroup: "b" })).messages), ["t0"]);
  assert.equal((await deadLetters({ queue, consumerGroup: "a" })).total, 1);
  assert.equal((await deadLetters({ queue, consumerGroup: "b" })).total, 0);
});

// ---------------------------------------------------------------------------------- leases that run out

test("a lease that runs out is an attempt of its first message alone", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 3, retryDelay: 0, leaseTime: 1 });
  await system.client.push(numbered(queue, 3));
  await pop(queue);
  const { messages } = await popWaiting(queue);
  assert.deepEqual(idsOf(messages), ids(0, 3));
  const [row] = await system.database.query(
    `select c.failures from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1`,
    [queue],
  );
  assert.deepEqual(Object.keys(row!.failures), ["0"]);
  assert.equal(row!.failures["0"].n, 1);
});

test("a message that kills its consumers is isolated, then dead-lettered, and the others go on", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 2 });
  await system.client.push(numbered(queue, 5));
  // Named pops ask the database each time, so that leases can be ended by its clock.
  const popNext = (): Promise<PopAnswer> => pop(queue, { partition: "Default", wait: true, timeout: 10_000 });
  const first = await popNext();
  await system.client.ackMessages(first.messages.slice(0, 1)); // t1 is the poison
  const delivered: string[][] = [];
  for (let time = 0; time < 4; time++) {
    await expireLeases(system.database, queue);
    const { messages } = await popNext();
    delivered.push(idsOf(messages));
  }
  assert.deepEqual(delivered, [
    ids(1, 5), // one lease ran out
    ids(1, 5), // two
    ["t1"], // three, above the limit: alone, for the last time
    ids(2, 5), // and that one too: dead
  ]);
  assert.deepEqual(short(await deadLetters({ queue })), [["t1", "lease expired", 3]]);
  await expireLeases(system.database, queue);
  assert.deepEqual(idsOf((await popNext()).messages), ids(2, 5), "t2 has attempts of its own");
});

test("a pop of any lane buries an exhausted message too, and no lane stays behind it", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0, leaseTime: 1 });
  await system.client.push(numbered(queue, 2, "p"));
  assert.deepEqual(idsOf((await pop(queue)).messages), ids(0, 2));
  assert.deepEqual(idsOf((await popWaiting(queue)).messages), ["t0"], "the last chance, alone");
  assert.deepEqual(idsOf((await popWaiting(queue)).messages), ["t1"]);
  assert.deepEqual(short(await deadLetters({ queue })), [["t0", "lease expired", 1]]);
});

test("a poison message that succeeds in its last chance is no dead letter", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { retryLimit: 0 });
  await system.client.push(numbered(queue, 2));
  await pop(queue, { partition: "Default" });
  await expireLeases(system.database, queue);
  const { messages } = await pop(queue, { partition: "Default" });
  assert.deepEqual(idsOf(messages), ["t0"]);
  await system.client.ackMessages(messages);
  assert.deepEqual(idsOf((await pop(queue)).messages), ["t1"]);
  assert.equal((await deadLetters({ queue })).total, 0);
});

// ------------------------------------------------------------------------------------- listing dead letters

test("the listing filters, pages and counts", async () => {
  const queue = newQueue();
  const other = newQueue();
  for (const [name, partition, consumerGroup, count] of [
    [queue, "a", "g", 5],
    [queue, "b", "g", 2],
    [queue, "a", "h", 5],
    [other, "a", "g", 1],
  ] as const) {
    await system.client.push(numbered(name, count, partition));
    const { messages } = await pop(name, { partition, consumerGroup });
    await system.client.ackMessages(messages, "dlq", `${partition}/${consumerGroup}`);
  }
  const total = async (query: Record<string, string>): Promise<number> => {
    const letters = await deadLetters(query);
    assert.equal(letters.messages.length, letters.total);
    return letters.total;
  };
  assert.equal(await total({ queue }), 12);
  assert.equal(await total({ queue: other }), 1);
  assert.equal(await total({ queue, consumerGroup: "g" }), 7);
  assert.equal(await total({ queue, partition: "b" }), 2);
  assert.equal(await total({ queue, partition: "b", consumerGroup: "h" }), 0);
  assert.equal(await total({ queue: "no such queue" }), 0);
  assert.equal(await total({ queue: `${queue}%` }), 0);

  const all = (await deadLetters({ queue })).messages.map((letter) => letter.id);
  const pages: string[] = [];
  for (let offset = 0; offset < 12; offset += 5) {
    const page = await deadLetters({ queue, limit: 5, offset });
    assert.deepEqual([page.total, page.pagination], [12, { limit: 5, offset }]);
    pages.push(...page.messages.map((letter) => letter.id));
  }
  assert.deepEqual(pages, all);
  const beyond = await deadLetters({ queue, limit: 5, offset: 50 });
  assert.deepEqual([beyond.messages, beyond.total], [[], 12]);

  const failedAt = (await deadLetters({ queue })).messages.map((letter) => letter.failedAt);
  assert.deepEqual(failedAt, failedAt.toSorted().reverse(), "newest first");
  for (const query of ["limit=x", "offset=x", "limit=1.5"]) {
    const answer = await system.client.request("GET", `/api/v1/dlq?${query}`);
    assert.deepEqual([answer.status, answer.json.code], [400, "VALIDATION_FAILED"]);
  }
});
