/** "Why is this lane not moving?": every rule that can hold a message back is named, with the facts behind it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import { expireLeases, newQueue, numbered, type System, startSystem } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem({ NUM_WORKERS: "1" });
});
after(() => system?.stop());

const ask = (queue: string, partition = "Default", group?: string): Promise<HttpAnswer> =>
  system.client.request(
    "GET",
    `/api/v1/queues/${encodeURIComponent(queue)}/partitions/${encodeURIComponent(partition)}/explain` +
      (group === undefined ? "" : `?consumerGroup=${group}`),
  );

async function explain(queue: string, partition?: string, group?: string): Promise<HttpAnswer["json"]> {
  const answer = await ask(queue, partition, group);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** A queue with so many messages, t0, t1, …, whose queue mode has popped before. */
async function filled(options: Record<string, unknown> = {}, count = 1): Promise<string> {
  const queue = newQueue();
  await system.client.configure(queue, options);
  assert.equal((await system.client.pop(queue)).status, 204);
  if (count > 0) await system.client.push(numbered(queue, count));
  return queue;
}

test("empty: nothing was ever pushed, or everything is finished", async () => {
  const queue = await filled({}, 0);
  const fresh = await explain(queue);
  assert.deepEqual(
    [fresh.code, fresh.head, fresh.pending, fresh.lease, fresh.also, fresh.dueAt],
    ["empty", null, 0, null, [], null],
  );
  assert.match(fresh.message, /^Empty: nothing was ever pushed/);
  await system.client.push(numbered(queue, 2));
  await system.client.pop(queue, { batch: 2, autoAck: true });
  const finished = await explain(queue);
  assert.deepEqual([finished.code, finished.pending], ["empty", 0]);
  assert.match(finished.message, /^Empty: the group has finished everything/);
});

test("ready: a pop would get it now, and gets it", async () => {
  const queue = await filled({}, 3);
  const shown = await explain(queue);
  assert.equal(shown.code, "ready");
  assert.equal(shown.message, "Ready: a pop would get it now.");
  assert.equal(shown.head.transactionId, "t0");
  assert.deepEqual([shown.pending, shown.finishedAhead, shown.consumerGroup], [3, 0, "__QUEUE_MODE__"]);
  assert.deepEqual(shown.attempts, { failed: 0, retryLimit: 3, lastErrors: [] });
  const { messages } = await system.client.pop(queue);
  assert.equal(messages[0]!.id, shown.head.id);
  assert.equal(messages[0]!.createdAt.slice(0, 23), shown.head.createdAt.slice(0, 23));
  assert.equal("data" in shown.head || "payload" in shown.head, false);
});

test("never_popped: nobody has popped with this group yet", async () => {
  const queue = await filled({}, 2);
  const shown = await explain(queue, "Default", "nobody");
  assert.equal(shown.code, "never_popped");
  assert.equal(shown.message, 'Nobody has popped with the group "nobody" yet.');
  assert.deepEqual([shown.pending, shown.head.transactionId], [2, "t0"]);
});

test("leased: by which lease, since when, until when, for which messages", async () => {
  const queue = await filled({ leaseTime: 60 }, 5);
  const { messages } = await system.client.pop(queue, { batch: 4 });
  await system.client.ackMessages([messages[1]!]);
  const shown = await explain(queue);
  assert.equal(shown.code, "leased");
  const { leaseId } = messages[0]!;
  assert.match(shown.message, new RegExp(`^Held by lease ${leaseId} for \\d+ s, expires in \\d+ s\\.$`));
  assert.ok(shown.advice.includes(leaseId));
  const { acquiredAt, expiresAt, ...lease } = shown.lease;
  assert.deepEqual(lease, {
    leaseId,
    isActive: true,
    firstMessageId: messages[0]!.id,
    lastMessageId: messages[3]!.id,
    unfinished: 3,
  });
  assert.equal(Date.parse(expiresAt) - Date.parse(acquiredAt), 60_000);
  assert.equal(shown.dueAt, expiresAt);
  assert.deepEqual([shown.pending, shown.finishedAhead], [4, 1]);
  const groups = await system.client.request("GET", "/api/v1/consumer-groups/__QUEUE_MODE__");
  assert.equal(groups.json[queue].partitions[0].workerId, leaseId, "as the consumer-group routes show it");

  // The advice is a statement that works.
  const [, statement] = /(select queen\..*;)$/.exec(shown.advice)!;
  await system.database.query(statement!);
  assert.equal((await explain(queue)).code, "ready");
});

test("leased again: the time counts from the new lease, extended or not", async () => {
  const queue = await filled({ leaseTime: 60 }, 1);
  const { messages } = await system.client.pop(queue);
  const first = await explain(queue);
  await system.client.extend(messages[0]!.leaseId, 600);
  const extended = await explain(queue);
  assert.equal(extended.lease.acquiredAt, first.lease.acquiredAt);
  assert.ok(Date.parse(extended.lease.expiresAt) > Date.parse(first.lease.expiresAt));
  await system.client.ackMessages(messages, "retry");
  await system.client.pop(queue);
  assert.ok(Date.parse((await explain(queue)).lease.acquiredAt) > Date.parse(first.lease.acquiredAt));
});

test("ready after a lease that ran out, which is said", async () => {
  const queue = await filled({}, 1);
  await system.client.pop(queue);
  await expireLeases(system.database, queue);
  const shown = await explain(queue);
  assert.equal(shown.code, "ready");
  assert.match(shown.message, /^Ready: a pop would get it now\. The last lease ran out \d+ s ago\.$/);
  assert.equal(shown.lease.isActive, false);
});

test("exhausted: leases ran out until no attempt was left; the next pop buries it", async () => {
  const queue = await filled({ retryLimit: 0 }, 2);
  for (let n = 0; n < 2; n++) {
    assert.notEqual((await explain(queue)).code, "exhausted");
    assert.equal((await system.client.pop(queue, { wait: true })).messages[0]!.transactionId, "t0");
    await expireLeases(system.database, queue);
  }
  const shown = await explain(queue);
  assert.equal(shown.code, "exhausted");
  assert.equal(shown.attempts.failed, 1);
  assert.equal((await system.client.pop(queue, { wait: true })).messages[0]!.transactionId, "t1");
  assert.equal((await system.client.request("GET", `/api/v1/dlq?queue=${queue}`)).json.total, 1);
});

test("retry_delay: when it is tried again, after which error; the advice tries it at once", async () => {
  const queue = await filled({ retryDelay: 60_000, retryLimit: 5 }, 2);
  await system.client.ackMessages((await system.client.pop(queue)).messages, "failed", "boom");
  const shown = await explain(queue);
  assert.equal(shown.code, "retry_delay");
  assert.match(shown.message, /^Retry in \d+ s after: boom$/);
  assert.equal(shown.attempts.failed, 1);
  assert.equal(shown.attempts.retryLimit, 5);
  assert.deepEqual(
    shown.attempts.lastErrors.map(({ error }: { error: string }) => error),
    ["boom"],
  );
  assert.ok(Date.parse(shown.dueAt) > Date.parse(shown.checkedAt));
  assert.equal((await system.client.pop(queue)).emptyReason, "retry_delay");

  const [, path, body] = /POST (\S+) (\{.*\})\.$/.exec(shown.advice)!;
  assert.equal((await system.client.request("POST", path!, body)).status, 200);
  assert.equal((await explain(queue)).code, "ready");
});

test("window_buffer: when the lane will have been quiet for long enough", async () => {
  const queue = await filled({ windowBuffer: 60 }, 1);
  const shown = await explain(queue);
  assert.equal(shown.code, "window_buffer");
  assert.match(shown.message, /^Window buffer: quiet in \d+ s/);
  assert.equal(Date.parse(shown.dueAt) - Date.parse(shown.head.createdAt), 60_000);
  assert.equal((await system.client.pop(queue)).emptyReason, "window_buffer");
});

test("delayed: until when", async () => {
  const queue = await filled({ delayedProcessing: 60 }, 1);
  const shown = await explain(queue);
  assert.equal(shown.code, "delayed");
  assert.equal(shown.message, `Delayed until ${shown.dueAt}.`);
  assert.equal(Date.parse(shown.dueAt) - Date.parse(shown.head.createdAt), 60_000);
  assert.equal((await system.client.pop(queue)).emptyReason, "delayed");
});

test("paused: by whom, since when, why; every pause that covers the lane, and what else is in the way", async () => {
  const queue = await filled({ delayedProcessing: 60 }, 1);
  await system.client.pop(queue, { consumerGroup: "g" });
  const pause = (body: object): Promise<HttpAnswer> =>
    system.client.request("POST", `/api/v1/queues/${queue}/pause`, body, {
      headers: { "x-proxy-user": "anna" },
    });
  const { pausedAt } = (await pause({ reason: "wrong prices" })).json;
  await pause({ partition: "Default", consumerGroup: "g" });
  const shown = await explain(queue);
  assert.equal(shown.code, "paused");
  assert.equal(shown.message, `Paused by anna since ${pausedAt} (the queue): wrong prices`);
  assert.deepEqual(
    shown.also.map(({ code }: { code: string }) => code),
    ["delayed"],
  );
  const ofGroup = await explain(queue, "Default", "g");
  assert.deepEqual(
    ofGroup.also.map(({ code }: { code: string }) => code),
    ["paused", "delayed"],
  );
  assert.match(ofGroup.also[0].message, /\(the group "g" on the partition\)\.$/);

  for (const { advice } of [ofGroup, ofGroup.also[0]]) {
    const [, path, body] = /POST (\S+) (\{.*\})\.$/.exec(advice)!;
    assert.equal((await system.client.request("POST", path!, body)).json.changed, true);
  }
  assert.equal((await explain(queue, "Default", "g")).code, "delayed");
});

test("pop_maintenance: nothing else matters as long as there is something to deliver", async () => {
  const queue = await filled({}, 1);
  await system.client.request("POST", "/api/v1/system/maintenance/pop", { enabled: true });
  try {
    const shown = await explain(queue);
    assert.equal(shown.code, "pop_maintenance");
    assert.equal(shown.message, "Pop maintenance is on: no pop gets anything.");
    assert.equal((await explain(await emptyQueue())).code, "empty");
  } finally {
    await system.client.request("POST", "/api/v1/system/maintenance/pop", { enabled: false });
  }
  assert.equal((await explain(queue)).code, "ready");
});

async function emptyQueue(): Promise<string> {
  const queue = newQueue();
  await system.client.configure(queue);
  return queue;
}

for (const isNew of [false, true]) {
  const what = isNew ? "a place that is being made" : "the group's place";
  test(`locked: by which process, since when, with which statement: ${what}`, async () => {
    const queue = await filled({}, 2);
    if (!isNew) await system.client.ackMessages((await system.client.pop(queue)).messages, "retry");
    const user = await system.database.client();
    await user.query("begin");
    const { rows } = await user.query("select pg_backend_pid() as pid");
    await user.query(`select queen.pop_messages_v2('{"queue_name": "${queue}"}') as "the user's pop"`);
    const shown = await explain(queue);
    assert.equal(shown.code, "locked");
    const { pid } = rows[0];
    const pattern = `^Locked by the transaction of process ${pid}, open for \\d+ s, idle in transaction: select`;
    assert.match(shown.message, new RegExp(pattern));
    assert.ok(shown.advice.includes(`pg_terminate_backend(${pid})`));
    await user.query("rollback");
    assert.equal((await explain(queue)).code, "ready");
  });
}

test("the head is the first message that is not finished and not deleted", async () => {
  const queue = await filled({}, 4);
  const { messages } = await system.client.pop(queue, { batch: 4 });
  await system.client.ackMessages([messages[2]!]);
  const path = (index: number): string =>
    `/api/v1/messages/${messages[index]!.partitionId}/${messages[index]!.transactionId}`;
  await system.client.request("DELETE", path(0));
  const shown = await explain(queue);
  assert.deepEqual([shown.head.transactionId, shown.pending, shown.finishedAhead], ["t1", 2, 1]);
  const other = await explain(queue, "Default", "nobody");
  assert.equal(other.head.transactionId, "t1", "for a group without a place of its own, too");
});

test("what is gone by retention is not the head", async () => {
  const queue = await filled({}, 3);
  await system.client.push(numbered(queue, 1, undefined, 3));
  await system.database.query(
    `with p as (update queen.partitions p set start_offset = 3 from queen.queues q
                 where q.id = p.queue_id and q.name = $1 returning p.id)
     delete from queen.segments s using p where s.partition_id = p.id and s.first_offset + s.count <= 3`,
    [queue],
  );
  const shown = await explain(queue);
  assert.deepEqual([shown.code, shown.head.transactionId, shown.pending], ["ready", "t3", 1]);
});

test("a queue or a partition that does not exist is not found", async () => {
  const queue = await filled({}, 1);
  for (const answer of [await ask("nobody's"), await ask(queue, "none")]) {
    assert.deepEqual([answer.status, answer.json.code], [404, "NOT_FOUND"]);
  }
  assert.equal((await ask(queue, "x".repeat(300))).status, 400);
});
