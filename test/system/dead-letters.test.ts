/** Dead letters as operators handle them: lists by filter and page, requeue, purge; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import {
  countMessages,
  dataOf,
  ids,
  idsOf,
  newQueue,
  numbered,
  type System,
  startSystem,
} from "../support/system.ts";

let system: System;
before(async () => {
  system = await startSystem();
});
after(() => system.stop());

const send = (method: string, path: string, body?: unknown): Promise<HttpAnswer> =>
  system.client.request(method, path, body);
const list = async (query: string) => (await send("GET", `/api/v1/dlq?${query}`)).json;
const transactionIds = (page: { messages: { transactionId: string }[] }): string[] =>
  page.messages.map((letter) => letter.transactionId);

/** Pops up to `count` messages of a partition for a group, and sends them to its dead letters, one by one. */
async function kill(
  queue: string,
  count: number,
  consumerGroup?: string,
  partition = "Default",
): Promise<void> {
  const { messages } = await system.client.pop(queue, {
    partition,
    batch: count,
    ...(consumerGroup ? { consumerGroup } : {}),
  });
  assert.equal(messages.length, count);
  for (const message of messages)
    await system.client.ackMessages([message], "dlq", `bad ${message.transactionId}`);
}

test("list: by queue, group, partition and time; the newest failure first", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 3, "a"), ...numbered(queue, 2, "b", 3)]);
  await kill(queue, 3, "g", "a");
  await kill(queue, 2, "h", "b");
  const all = await list(`queue=${queue}`);
  assert.deepEqual([transactionIds(all), all.total], [["t4", "t3", "t2", "t1", "t0"], 5]);
  assert.deepEqual(all.pagination, { limit: 100, offset: 0 });
  assert.equal(all.nextPage, null);
  const [letter] = all.messages;
  assert.deepEqual(
    [
      letter.data,
      letter.queue,
      letter.partition,
      letter.consumerGroup,
      letter.errorMessage,
      letter.retryCount,
    ],
    [4, queue, "b", "h", "bad t4", 0],
  );
  assert.deepEqual(transactionIds(await list(`queue=${queue}&consumerGroup=g`)), ["t2", "t1", "t0"]);
  assert.deepEqual(transactionIds(await list(`queue=${queue}&partition=b`)), ["t4", "t3"]);
  assert.deepEqual(transactionIds(await list(`queue=${queue}&partition=b&consumerGroup=g`)), []);
  const middle = all.messages[2].failedAt;
  const from = await list(`queue=${queue}&from=${middle}`);
  const to = await list(`queue=${queue}&to=${middle}`);
  assert.ok(transactionIds(from).includes("t2") && !transactionIds(from).includes("t0"));
  assert.ok(transactionIds(to).includes("t2") && !transactionIds(to).includes("t4"));
  assert.equal(from.total, from.messages.length);
  assert.deepEqual(await list("queue=no-such-queue"), {
    messages: [],
    total: 0,
    nextPage: null,
    pagination: { limit: 100, offset: 0 },
  });
});

test("list: pages by limit and offset, and by the token of the page before", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 7));
  await kill(queue, 7);
  const second = await list(`queue=${queue}&limit=3&offset=3`);
  assert.deepEqual([transactionIds(second), second.total], [["t3", "t2", "t1"], 7]);
  assert.deepEqual(transactionIds(await list(`queue=${queue}&offset=7`)), []);
  assert.equal((await list(`queue=${queue}&offset=70`)).total, 7);
  const seen: string[] = [];
  let page = "";
  do {
    const answer = await list(`queue=${queue}&limit=3&page=${page}`);
    seen.push(...transactionIds(answer));
    page = answer.nextPage;
  } while (page !== null);
  assert.deepEqual(seen, ids(0, 7).reverse());
});

test("list: what cannot be meant is refused", async () => {
  for (const query of [
    "limit=many",
    "offset=x",
    "from=soon",
    "to=5x",
    "page=next",
    `queue=${"x".repeat(300)}`,
  ]) {
    const { status, json } = await send("GET", `/api/v1/dlq?${query}`);
    assert.deepEqual([status, json.code], [400, "VALIDATION_FAILED"], query);
  }
});

test("requeue: a letter is a message again, with its payload and transactionId, and no letter any more", async () => {
  const queue = newQueue();
  const payload = '{"big":12345678901234567890,"text":"\\u0000 ü"}';
  await send(
    "POST",
    "/api/v1/push",
    `{"items":[{"queue":"${queue}","transactionId":"one","payload":${payload}}]}`,
  );
  await kill(queue, 1);
  await system.client.push(numbered(queue, 1));
  const [letter] = (await list(`queue=${queue}`)).messages;
  const { status, json } = await send("POST", "/api/v1/dlq/requeue", { ids: [letter.deadLetterId] });
  assert.equal(status, 200);
  assert.deepEqual([json.success, json.requeued, json.remaining], [true, 1, 0]);
  assert.equal(json.messages[0].deadLetterId, letter.deadLetterId);
  assert.equal((await list(`queue=${queue}`)).total, 0);

  const popped = await system.client.pop(queue, { batch: 10 });
  assert.deepEqual(idsOf(popped.messages), ["t0", "one"], "behind what was pushed meanwhile");
  assert.equal(popped.messages[1]!.id, json.messages[0].id);
  assert.ok(popped.text.includes(`"data":${payload}`), "byte for byte");
  assert.ok((await system.client.ackMessages(popped.messages)).every((ack) => ack.success));
  const again = await send("POST", "/api/v1/dlq/requeue", { ids: [letter.deadLetterId] });
  assert.deepEqual([again.status, again.json.requeued], [200, 0]);
  assert.equal((await system.client.pop(queue)).status, 204);
  const [repeated] = await system.client.push([{ queue, transactionId: "one" }]);
  assert.equal(repeated!.status, "duplicate");
});

test("requeue: stored once, however many ask at the same time", async () => {
  const { client: other } = await system.another();
  const queue = newQueue();
  await system.client.push([...numbered(queue, 20, "a"), ...numbered(queue, 20, "b", 20)]);
  await kill(queue, 20, undefined, "a");
  await kill(queue, 20, undefined, "b");
  const before = await countMessages(system.database, queue);
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      (index % 2 === 0 ? system.client : other).request("POST", "/api/v1/dlq/requeue", { queue }),
    ),
  );
  assert.deepEqual(
    answers.map((answer) => answer.status),
    Array(8).fill(200),
  );
  assert.equal(
    answers.reduce((sum, { json }) => sum + json.requeued, 0),
    40,
  );
  assert.equal(await countMessages(system.database, queue), before + 40);
  for (const [partition, from] of [
    ["a", 0],
    ["b", 20],
  ] as const) {
    const { messages } = await other.pop(queue, { partition, batch: 100 });
    assert.deepEqual(idsOf(messages), ids(from, from + 20), "in their old order");
    await other.ackMessages(messages);
  }
});

test("requeue: only the group that gave the message up gets it again", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  await kill(queue, 2, "billing");
  const mail = await system.client.pop(queue, { consumerGroup: "mail", batch: 2 });
  await system.client.pop(queue, { consumerGroup: "idle", partition: "nowhere" });
  const { json } = await send("POST", "/api/v1/dlq/requeue", { queue, consumerGroup: "billing" });
  assert.equal(json.requeued, 2);
  await system.client.push(numbered(queue, 1, undefined, 3));
  await system.client.ackMessages(mail.messages);
  const take = async (consumerGroup: string): Promise<string[]> =>
    idsOf((await system.client.pop(queue, { consumerGroup, batch: 10 })).messages);
  assert.deepEqual(await take("billing"), ["t2", "t0", "t1", "t3"]);
  assert.deepEqual(await take("mail"), ["t2", "t3"]);
  assert.deepEqual(await take("idle"), ["t0", "t1", "t2", "t3"], "a group that had met no partition");
  assert.deepEqual(
    await take("later"),
    ["t0", "t1", "t2", "t0", "t1", "t3"],
    "a group made after it reads the log",
  );
});

test("requeue: by the id of a message, for one group of several", async () => {
  const queue = newQueue();
  const [pushed] = await system.client.push(numbered(queue, 1));
  await kill(queue, 1, "g");
  await kill(queue, 1, "h");
  const one = await send("POST", "/api/v1/dlq/requeue", { ids: [pushed!.message_id], consumerGroup: "h" });
  assert.equal(one.json.requeued, 1);
  assert.deepEqual((await list(`queue=${queue}`)).messages[0].consumerGroup, "g");
  const rest = await send("POST", "/api/v1/dlq/requeue", { ids: [pushed!.message_id] });
  assert.equal(rest.json.requeued, 1);
  for (const consumerGroup of ["g", "h"]) {
    const { messages } = await system.client.pop(queue, { consumerGroup, batch: 5 });
    assert.deepEqual(idsOf(messages), ["t0"]);
  }
});

test("requeue: a pop that waits is woken, also on another broker", async () => {
  const { client } = await system.another();
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  await kill(queue, 1);
  const waiting = client.pop(queue, { wait: true, timeout: 20_000 });
  await send("POST", "/api/v1/dlq/requeue", { queue });
  assert.deepEqual(dataOf((await waiting).messages), [0]);
});

test("requeue and purge: so many at a time, and the rest is counted", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 300));
  const { messages } = await system.client.pop(queue, { batch: 300 });
  await system.client.ackMessages(messages, "dlq");
  const first = await send("POST", "/api/v1/dlq/requeue", { queue, limit: 150 });
  assert.deepEqual([first.json.requeued, first.json.remaining], [150, 150]);
  const { messages: again } = await system.client.pop(queue, { batch: 300 });
  assert.equal(again.length, 150);
  const purged = await send("POST", "/api/v1/dlq/purge", { queue, limit: 100 });
  assert.deepEqual(purged.json, { success: true, purged: 100, remaining: 50 });
  const rest = await send("POST", "/api/v1/dlq/purge", { queue });
  assert.deepEqual(rest.json, { success: true, purged: 50, remaining: 0 });
  assert.deepEqual((await send("POST", "/api/v1/dlq/purge", { queue })).json.purged, 0);
});

test("purge: by ids; the message stays finished", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  await kill(queue, 2);
  const { messages } = await list(`queue=${queue}`);
  const { json } = await send("POST", "/api/v1/dlq/purge", { ids: [messages[0].deadLetterId] });
  assert.deepEqual(json, { success: true, purged: 1, remaining: 0 });
  assert.deepEqual(transactionIds(await list(`queue=${queue}`)), ["t0"]);
  assert.equal((await system.client.pop(queue)).status, 204);
});

test("requeue and purge: all letters must be meant, and ids must be ids", async () => {
  for (const route of ["requeue", "purge"]) {
    for (const body of [
      undefined,
      {},
      [],
      { queue: "" },
      { ids: [] },
      { ids: "x" },
      { ids: ["x"] },
      { ids: [5] },
      { queue: "q", limit: 0 },
      { queue: "q", limit: "1" },
      { queue: 5 },
      { from: "soon" },
    ]) {
      const { status, json } = await send("POST", `/api/v1/dlq/${route}`, body);
      assert.deepEqual([status, json?.code], [400, "VALIDATION_FAILED"], `${route} ${JSON.stringify(body)}`);
    }
    assert.equal((await send("GET", `/api/v1/dlq/${route}`)).status, 405);
    const nothing = await send("POST", `/api/v1/dlq/${route}`, { queue: "no-such-queue" });
    assert.equal(nothing.status, 200);
  }
});

test("requeue: a letter whose partition and group are gone makes them again", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2, "p"));
  await kill(queue, 1, "g", "p");
  await send("DELETE", "/api/v1/consumer-groups/g");
  await system.database.query(
    "delete from queen.partitions where name = 'p' and queue_id = (select id from queen.queues where name = $1)",
    [queue],
  );
  const { json } = await send("POST", "/api/v1/dlq/requeue", { queue });
  assert.equal(json.requeued, 1);
  const { messages } = await system.client.pop(queue, {
    consumerGroup: "g",
    batch: 5,
    wait: true,
    timeout: 20_000,
  });
  assert.deepEqual(idsOf(messages), ["t0"]);
});

test("errors: each with its letters, the most frequent first; one is listed, requeued and purged by it", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 4, "a"), ...numbered(queue, 3, "b", 4)]);
  const fail = async (partition: string, errors: readonly string[]): Promise<void> => {
    const { messages } = await system.client.pop(queue, {
      partition,
      batch: errors.length,
      consumerGroup: "g",
    });
    for (const [place, error] of errors.entries())
      await system.client.ackMessages([messages[place]!], "dlq", error);
  };
  await fail("a", ["cold", "hot", "hot", "hot"]);
  await fail("b", ["hot", "cold", 'it\'s "odd"\n100 %']);
  const errors = async (query = "") =>
    (await send("GET", `/api/v1/dlq/errors?queue=${queue}${query}`)).json.errors.map(
      (each: { error: string; count: number; queues: number; partitions: number }) => [
        each.error,
        each.count,
        each.queues,
        each.partitions,
      ],
    );
  const odd = 'it\'s "odd"\n100 %';
  assert.deepEqual(await errors(), [
    ["hot", 4, 1, 2],
    ["cold", 2, 1, 2],
    [odd, 1, 1, 1],
  ]);
  assert.deepEqual(await errors("&limit=1"), [["hot", 4, 1, 2]]);
  assert.deepEqual(await errors("&consumerGroup=nobody"), []);
  assert.equal((await list(`queue=${queue}&error=${encodeURIComponent(odd)}`)).total, 1);
  assert.equal((await list(`queue=${queue}&error=ho`)).total, 0);

  const requeued = await send("POST", "/api/v1/dlq/requeue", { queue, error: "hot", limit: 3 });
  assert.deepEqual([requeued.json.requeued, requeued.json.remaining], [3, 1]);
  const purged = await send("POST", "/api/v1/dlq/purge", { queue, error: odd });
  assert.deepEqual([purged.json.purged, purged.json.remaining], [1, 0]);
  assert.deepEqual(await errors(), [
    ["cold", 2, 1, 2],
    ["hot", 1, 1, 1],
  ]);
});
