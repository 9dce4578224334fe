/** Order and load over HTTP (P2, P3, P9): strict per partition, whoever consumes, and nobody spoils it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer, PopQuery } from "../support/http.ts";
import { countMessages, dataOf, newQueue, numbered, type System, startSystem } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Pops and acks until so many messages came; what `seen` gets is in the order of delivery. */
async function consume(
  queue: string,
  progress: { seen: unknown[]; wanted: number },
  query: PopQuery = {},
): Promise<void> {
  while (progress.seen.length < progress.wanted) {
    const { messages } = await system.client.pop(queue, { wait: true, timeout: 500, batch: 10, ...query });
    if (messages.length === 0) continue;
    progress.seen.push(...dataOf(messages));
    const results = await system.client.ackMessages(messages);
    assert.ok(results.every((result) => result.success));
  }
}

// ---------------------------------------------------------------------------------------- testConsumerOrdering

test("testConsumerOrdering: one by one, what was pushed first comes first", async () => {
  const queue = newQueue();
  const progress = { seen: [], wanted: 200 };
  const consuming = consume(queue, progress, { batch: 1 });
  for (const payload of upTo(200)) await system.client.push([{ queue, payload }]);
  await consuming;
  assert.deepEqual(progress.seen, upTo(200));
});

test("testConsumerOrdering: batches of any size keep the order", async () => {
  const queue = newQueue();
  for (let from = 0; from < 2_000; from += 50) {
    await system.client.push(numbered(queue, 50, undefined, from));
  }
  const progress: { seen: unknown[]; wanted: number } = { seen: [], wanted: 2_000 };
  while (progress.seen.length < 2_000) {
    const { messages } = await system.client.pop(queue, { batch: 1 + ((progress.seen.length * 7) % 131) });
    progress.seen.push(...dataOf(messages));
    await system.client.ackMessages(messages);
  }
  assert.deepEqual(progress.seen, upTo(2_000));
});

test("testConsumerOrdering: ten competing workers on one partition get each message once, in order", async () => {
  const queue = newQueue();
  const progress = { seen: [], wanted: 1_000 };
  const workers = upTo(10).map((worker) => consume(queue, progress, { batch: 1 + worker }));
  for (let from = 0; from < 1_000; from += 20) {
    await system.client.push(numbered(queue, 20, undefined, from));
  }
  await Promise.all(workers);
  assert.deepEqual(progress.seen, upTo(1_000));
});

test("testConsumerOrdering: ten workers over ten partitions keep each partition's order", async () => {
  const queue = newQueue();
  const progress: { seen: string[]; wanted: number } = { seen: [], wanted: 1_000 };
  const pushing = Promise.all(
    upTo(10).map(async (lane) => {
      for (const index of upTo(100)) {
        await system.client.push([{ queue, partition: `p${lane}`, payload: `${lane}:${index}` }]);
      }
    }),
  );
  await Promise.all([pushing, ...upTo(10).map(() => consume(queue, progress, { partitions: 3 }))]);
  for (const lane of upTo(10)) {
    assert.deepEqual(
      progress.seen.filter((value) => value.startsWith(`${lane}:`)),
      upTo(100).map((index) => `${lane}:${index}`),
    );
  }
});

test("testConsumerOrdering: with many producers' pushes in flight, each producer's own order holds", async () => {
  const queue = newQueue();
  await Promise.all(
    upTo(20).map(async (producer) => {
      for (let from = 0; from < 60; from += 3) {
        const items = [0, 1, 2].map((index) => ({ queue, payload: `${producer}:${from + index}` }));
        await system.client.push(items);
      }
    }),
  );
  const progress: { seen: string[]; wanted: number } = { seen: [], wanted: 1_200 };
  await consume(queue, progress, { batch: 100 });
  assert.equal(progress.seen.length, 1_200);
  for (const producer of upTo(20)) {
    assert.deepEqual(
      progress.seen.filter((value) => value.startsWith(`${producer}:`)),
      upTo(60).map((index) => `${producer}:${index}`),
    );
  }
});

// --------------------------------------------------------------------------------------------------- testLoad

async function produce(queue: string, count: number, size: number, partition?: string): Promise<void> {
  for (let from = 0; from < count; from += size) {
    const items = upTo(Math.min(size, count - from)).map((index) => ({
      queue,
      ...(partition === undefined ? {} : { partition }),
      payload: from + index,
    }));
    await system.client.push(items);
  }
}

test("testLoad: 100,000 messages of one partition come in strict order", async () => {
  const queue = newQueue();
  const progress: { seen: unknown[]; wanted: number } = { seen: [], wanted: 100_000 };
  await Promise.all([produce(queue, 100_000, 2_000), consume(queue, progress, { batch: 2_000 })]);
  assert.equal(progress.seen.length, 100_000);
  const misplaced = progress.seen.findIndex((value, index) => value !== index);
  assert.equal(misplaced, -1, `${progress.seen[misplaced]} came at ${misplaced}`);
});

test("testLoad: ten partitions, two groups: each group gets every partition whole and in order", async () => {
  const queue = newQueue();
  const lanes = upTo(10).map((lane) => `p${lane}`);
  const perLane = 1_000;
  const seen = new Map<string, unknown[]>();
  const left = new Map<string, number>();
  const work = async (consumerGroup: string): Promise<void> => {
    while (left.get(consumerGroup)! > 0) {
      const { messages } = await system.client.pop(queue, {
        consumerGroup,
        batch: 500,
        partitions: 2,
        wait: true,
        timeout: 500,
      });
      for (const { partition, data } of messages) {
        const key = `${consumerGroup}/${partition}`;
        if (!seen.has(key)) seen.set(key, []);
        seen.get(key)!.push(data);
      }
      if (messages.length > 0) await system.client.ackMessages(messages);
      left.set(consumerGroup, left.get(consumerGroup)! - messages.length);
    }
  };
  for (const group of ["a", "b"]) left.set(group, lanes.length * perLane);
  await Promise.all([
    ...lanes.map((lane) => produce(queue, perLane, 100, lane)),
    ...["a", "b", "a", "b", "a", "b"].map(work),
  ]);
  assert.equal(seen.size, 20);
  for (const [key, values] of seen) assert.deepEqual(values, upTo(perLane), key);
});

// ------------------------------------------------------------------------------------- P9: nobody spoils others

test("one bad request among a hundred merged good ones fails alone, many times over (P9)", async () => {
  const queue = newQueue();
  const bad: (() => Promise<HttpAnswer>)[] = [
    () => push([{ queue, partition: "p1", traceId: "no-uuid" }]),
    () => push([{ queue, partition: "x".repeat(300) }]),
    () => system.client.request("POST", "/api/v1/push", `{"items":[{"queue":"${queue}","payload":}]}`),
    () => system.client.request("GET", `/api/v1/pop/queue/${queue}?batch=-x`),
    () =>
      system.client.request("POST", "/api/v1/ack", {
        transactionId: "t",
        partitionId: "not-a-uuid",
        leaseId: "x",
      }),
    () => system.client.transaction([{ type: "push", queue, partition: 7 }]),
  ];
  for (const round of upTo(12)) {
    const guilty = bad[round % bad.length]!();
    const good = await Promise.all(
      upTo(100).map((index) => push([{ queue, partition: `p${index % 20}`, payload: index }])),
    );
    assert.equal((await guilty).status, 400);
    assert.ok(good.every((answer) => answer.status === 201));
  }
  assert.equal(await countMessages(system.database, queue), 1_200);
});

const push = (items: unknown[]): Promise<HttpAnswer> =>
  system.client.request("POST", "/api/v1/push", { items });

test("a message that only PostgreSQL refuses fails alone, whatever it was merged with (P9)", async () => {
  const queue = newQueue();
  await system.database.query(
    "alter table queen.segments add constraint no_poison check (position('poison'::bytea in body) = 0)",
  );
  try {
    for (const round of upTo(10)) {
      // On a lane of its own, and in the middle of a lane that others use too.
      const poison = round % 2 ? "p3" : "poisoned";
      const answers = await Promise.all(
        upTo(100).map((index) =>
          index === 50
            ? push([{ queue, partition: poison, payload: "poison" }])
            : push([{ queue, partition: `p${index % 7}`, payload: index }]),
        ),
      );
      const failed = answers.flatMap((answer, index) => (answer.status === 201 ? [] : [index]));
      assert.deepEqual(failed, [50]);
    }
    assert.equal(await countMessages(system.database, queue), 990);
    const { status } = await push([{ queue, partition: "poisoned", payload: "good again" }]);
    assert.equal(status, 201);
  } finally {
    await system.database.query("alter table queen.segments drop constraint no_poison");
  }
});

test("a lane that a user's own transaction holds makes nobody wait but those who want that lane", async () => {
  const queue = newQueue();
  await Promise.all(upTo(20).map((lane) => system.client.push(numbered(queue, 2, `p${lane}`))));
  const client = await system.database.client();
  await client.query("begin");
  const { rows } = await client.query(
    `select p.id from queen.partitions p join queen.queues q on q.id = p.queue_id
      where q.name = $1 and p.name = 'p0' for update of p`,
    [queue],
  );
  let isHeldDone = false;
  const held = system.client.push([{ queue, partition: "p0", payload: "held" }]).then((results) => {
    isHeldDone = true;
    return results;
  });
  for (const round of upTo(5)) {
    const results = await Promise.all(
      upTo(19).map((lane) => system.client.push([{ queue, partition: `p${lane + 1}`, payload: round }])),
    );
    assert.ok(results.every(([result]) => result!.status === "queued"));
  }
  assert.equal(isHeldDone, false, "its lane is still held");
  await client.query("commit");
  assert.equal((await held)[0]!.status, "queued");

  // The same for a group's place in a lane: others are popped and acked meanwhile.
  const first = await system.client.pop(queue, { partition: "p0", batch: 2 });
  await client.query("begin");
  await client.query("select 1 from queen.partition_consumers where partition_id = $1 for update", [
    rows[0].id,
  ]);
  const acking = system.client.ackMessages(first.messages);
  for (const lane of upTo(19)) {
    const { messages } = await system.client.pop(queue, { partition: `p${lane + 1}`, batch: 2 });
    assert.equal(messages.length, 2);
    assert.ok((await system.client.ackMessages(messages)).every((result) => result.success));
  }
  await client.query("commit");
  assert.ok((await acking).every((result) => result.success));
});
