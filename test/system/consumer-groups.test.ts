/** Consumer groups as operators see them: lists, lag, seek, subscription, delete; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import {
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
  until,
} from "../support/system.ts";

let system: System;
before(async () => {
  system = await startSystem();
});
after(() => system.stop());

const GROUPS = "/api/v1/consumer-groups";
const send = (method: string, path: string, body?: unknown): Promise<HttpAnswer> =>
  system.client.request(method, path, body);

const seek = (queue: string, group: string, body: unknown, partition?: string): Promise<HttpAnswer> =>
  send(
    "POST",
    `${GROUPS}/${group}/queues/${queue}${partition === undefined ? "" : `/partitions/${partition}`}/seek`,
    body,
  );

/** Sets back the times of everything in a queue, so that it is so many seconds old. */
async function age(queue: string, seconds: number): Promise<void> {
  const older = (column: string) => `${column} = ${column} - ${seconds} * interval '1 second'`;
  await system.database.query(
    `with lanes as (
       update queen.partitions set ${older("created_at")}, ${older("last_at")}
        where queue_id = (select id from queen.queues where name = $1) returning id)
     update queen.segments set ${older("created_at")} where partition_id in (select id from lanes)`,
    [queue],
  );
}

const entry = async (queue: string, name: string) =>
  (await send("GET", GROUPS)).json.find(
    (each: { name: string; queueName: string }) => each.name === name && each.queueName === queue,
  );

/** Pops until nothing comes, acknowledging everything. */
async function drain(queue: string, consumerGroup: string): Promise<string[]> {
  const got: string[] = [];
  for (;;) {
    const { messages } = await system.client.pop(queue, { consumerGroup, batch: 100, partitions: 10 });
    if (messages.length === 0) return got;
    got.push(...idsOf(messages));
    await system.client.ackMessages(messages);
  }
}

// ------------------------------------------------------------------------------------------------------- lists

test("list: one entry per group and queue, with lag from offsets, and queue mode among them", async () => {
  const queue = newQueue();
  await system.client.push([
    ...numbered(queue, 5, "a"),
    ...numbered(queue, 3, "b"),
    ...numbered(queue, 2, "c"),
  ]);
  await system.client.pop(queue, { consumerGroup: "fresh", batch: 1 });
  await drain(queue, "done");
  const { messages } = await system.client.pop(queue, { partition: "a", batch: 5 });
  await system.client.ackMessages([messages[0]!, messages[1]!, messages[3]!]);

  const fresh = await entry(queue, "fresh");
  assert.deepEqual(
    {
      ...fresh,
      subscriptionCreatedAt: typeof fresh.subscriptionCreatedAt,
      maxTimeLag: fresh.maxTimeLag < 300 ? "some seconds" : fresh.maxTimeLag,
    },
    {
      name: "fresh",
      topics: [queue],
      queueName: queue,
      members: 1,
      partitionsWithLag: 3,
      totalLag: 10,
      maxTimeLag: "some seconds",
      state: "Dead",
      subscriptionMode: "all",
      subscriptionTimestamp: null,
      subscriptionCreatedAt: "string",
    },
  );
  const done = await entry(queue, "done");
  assert.deepEqual([done.members, done.partitionsWithLag, done.totalLag, done.state], [3, 0, 0, "Stable"]);
  const queueMode = await entry(queue, "__QUEUE_MODE__");
  assert.deepEqual([queueMode.members, queueMode.partitionsWithLag, queueMode.totalLag], [1, 3, 7]);

  await age(queue, 400);
  const lagging = await entry(queue, "__QUEUE_MODE__");
  assert.equal(lagging.state, "Lagging");
  assert.ok(lagging.maxTimeLag >= 400 && lagging.maxTimeLag < 700);
  assert.equal((await entry(queue, "done")).maxTimeLag, 0);
  assert.deepEqual((await send("GET", `${GROUPS}?queue=${queue}`)).json.length, 3);
  assert.deepEqual((await send("GET", `${GROUPS}?queue=nobody`)).json, []);
});

test("list: a group that starts later counts only what comes after its start", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 5));
  await system.client.pop(queue, { consumerGroup: "late", subscriptionMode: "new" });
  assert.equal((await entry(queue, "late")).totalLag, 0);
  await system.client.push(numbered(queue, 2, "other"));
  const late = await entry(queue, "late");
  assert.deepEqual([late.totalLag, late.subscriptionMode], [2, "new"]);
  assert.ok(Date.parse(late.subscriptionTimestamp) > 0);
});

test("lagging: the lanes that wait longest come first, with a message's age", async () => {
  const [older, newer] = [newQueue(), newQueue()];
  await system.client.push([
    ...numbered(older, 2, "p"),
    ...numbered(newer, 1, "p"),
    ...numbered(newer, 1, "q"),
  ]);
  for (const queue of [older, newer]) {
    const { messages } = await system.client.pop(queue, { consumerGroup: "slow", partition: "p" });
    if (queue === older) await system.client.ackMessages(messages.slice(0, 1));
  }
  await age(older, 9_000);
  await age(newer, 5_000);
  const { status, json } = await send("GET", `${GROUPS}/lagging`);
  assert.equal(status, 200);
  const own = json.filter((lane: { consumer_group: string }) => lane.consumer_group === "slow");
  assert.deepEqual(
    own.map((lane: Record<string, unknown>) => [lane.queue_name, lane.partition_name, lane.offset_lag]),
    [
      [older, "p", 1],
      [newer, "p", 1],
      [newer, "q", 1],
    ],
  );
  const [first] = own;
  assert.ok(first.time_lag_seconds >= 9_000 && first.time_lag_seconds < 9_100);
  assert.equal(first.lag_hours, 2.5);
  assert.ok(Date.parse(first.oldest_unconsumed_at) < Date.now() - 9_000_000 + 60_000);
  assert.ok(Date.parse(first.last_consumed_at) > 0);
  assert.match(first.partition_id, /^[0-9a-f-]{36}$/);
  assert.equal(first.worker_id, null);
  assert.equal(typeof own[1].worker_id, "string", "its lease is held");

  const later = (await send("GET", `${GROUPS}/lagging?minLagSeconds=8000`)).json;
  assert.deepEqual(
    later.filter((lane: { consumer_group: string }) => lane.consumer_group === "slow").length,
    1,
  );
  assert.deepEqual((await send("GET", `${GROUPS}/lagging?minLagSeconds=1000000`)).json, []);
  assert.equal((await send("GET", `${GROUPS}/lagging?limit=1`)).json.length, 1);
  const wrong = await send("GET", `${GROUPS}/lagging?minLagSeconds=soon`);
  assert.deepEqual([wrong.status, wrong.json.code], [400, "VALIDATION_FAILED"]);
});

test("detail: the group's places by queue; a group that nobody knows has none", async () => {
  const [one, two] = [newQueue(), newQueue()];
  await system.client.push([...numbered(one, 4, "a"), ...numbered(one, 1, "b"), ...numbered(two, 1)]);
  const { messages } = await system.client.pop(one, { consumerGroup: "viewer", partition: "a", batch: 4 });
  await system.client.ackMessages([messages[0]!, messages[2]!]);
  await drain(two, "viewer");
  const { status, json } = await send("GET", `${GROUPS}/viewer`);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json).sort(), [one, two].sort());
  const [a, b] = json[one].partitions;
  assert.deepEqual(
    { ...a, workerId: typeof a.workerId, lastConsumedAt: typeof a.lastConsumedAt },
    {
      partition: "a",
      workerId: "string",
      lastConsumedAt: "string",
      totalConsumed: 2,
      offsetLag: 2,
      timeLagSeconds: 0,
      leaseActive: true,
    },
  );
  assert.deepEqual(b, {
    partition: "b",
    workerId: null,
    lastConsumedAt: null,
    totalConsumed: 0,
    offsetLag: 1,
    timeLagSeconds: 0,
    leaseActive: false,
  });
  assert.deepEqual(json[two].partitions[0].offsetLag, 0);
  const page = await send("GET", `${GROUPS}/viewer?queue=${one}&limit=1&offset=1`);
  assert.deepEqual(
    [page.json[one].partitions.length, page.json[one].partitions[0].partition, page.headers["queen-total"]],
    [1, "b", "2"],
  );
  const unknown = await send("GET", `${GROUPS}/nobody`);
  assert.deepEqual([unknown.status, unknown.text], [200, "{}"]);
});

test("a group called lagging can be deleted: the list of lagging lanes is only read", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  await drain(queue, "lagging");
  const { json } = await send("DELETE", `${GROUPS}/lagging`);
  assert.deepEqual([json.consumerGroup, json.deletedPartitions], ["lagging", 1]);
});

// -------------------------------------------------------------------------------------------------------- seek

test("seek to the end: everything there is counts as finished, also in lanes that are not met yet", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 3, "met"), ...numbered(queue, 3, "unmet")]);
  await system.client.pop(queue, { consumerGroup: "g", partition: "met" });
  const { status, json } = await seek(queue, "g", { toEnd: true });
  assert.equal(status, 200);
  assert.deepEqual(json, {
    success: true,
    consumerGroup: "g",
    queueName: queue,
    seekToEnd: true,
    targetTimestamp: null,
    partitionsUpdated: 1,
  });
  assert.deepEqual(await drain(queue, "g"), []);
  await system.client.push([
    ...numbered(queue, 1, "met", 3),
    ...numbered(queue, 1, "unmet", 4),
    ...numbered(queue, 1, "new", 5),
  ]);
  assert.deepEqual((await drain(queue, "g")).sort(), ["t3", "t4", "t5"]);
});

test("seek to a time wins over the group's start, in both directions", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  await age(queue, 3_600);
  const { messages: none } = await system.client.pop(queue, { consumerGroup: "g", subscriptionMode: "new" });
  assert.deepEqual(none, []);
  await system.client.push(numbered(queue, 2, undefined, 3));
  assert.deepEqual(await drain(queue, "g"), ids(3, 5));

  const early = new Date(Date.now() - 2 * 3_600_000).toISOString();
  const back = await seek(queue, "g", { timestamp: early });
  assert.deepEqual(
    [back.status, back.json.seekToEnd, back.json.targetTimestamp, back.json.partitionsUpdated],
    [200, false, early.replace(/\.?0*Z$/, "Z"), 1],
  );
  assert.deepEqual(await drain(queue, "g"), ids(0, 5));

  await seek(queue, "g", { timestamp: new Date(Date.now() - 60_000).toISOString() });
  assert.deepEqual(await drain(queue, "g"), ids(3, 5), "the first message stored at that time or later");
  const [watermark] = await system.database.query(
    `select count(*) from queen.consumer_watermarks where queue_name = $1 and last_empty_scan_at > now()`,
    [queue],
  );
  assert.equal(watermark!.count, 0);
});

test("seek ends a lease at once, and its token is dead", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 3));
  const held = await system.client.pop(queue, { consumerGroup: "g", batch: 3 });
  await system.client.ackMessages([held.messages[1]!]);
  await seek(queue, "g", { timestamp: "2000-01-01T00:00:00Z" });
  assert.deepEqual(await readCursors(system.database, queue), [
    { partition: "Default", group: "g", committed: 0, acked: null, leased: false },
  ]);
  const [refused] = await system.client.ackMessages([held.messages[0]!]);
  assert.deepEqual([refused!.success, refused!.error], [false, "Invalid or expired lease"]);
  const renewed = await system.client.extend(held.json.leaseId);
  assert.equal(renewed.json[0].success, false);
  const again = await system.client.pop(queue, { consumerGroup: "g", batch: 3 });
  assert.deepEqual(idsOf(again.messages), ids(0, 3), "also what had been acked above its place");
});

test("seek wakes a pop that waits, on the same broker and on another one", async () => {
  const { client } = await system.another();
  for (const popper of [system.client, client]) {
    const queue = newQueue();
    await system.client.push(numbered(queue, 2));
    assert.deepEqual(await drain(queue, "g"), ids(0, 2));
    const waiting = popper.pop(queue, { consumerGroup: "g", batch: 2, wait: true, timeout: 20_000 });
    const named = popper.pop(queue, {
      consumerGroup: "g",
      partition: "Default",
      wait: true,
      timeout: 20_000,
    });
    await until("both wait", async () => {
      const metrics = await popper.request("GET", "/metrics");
      return metrics.json.pops.parked >= 2;
    });
    await seek(queue, "g", { timestamp: "2000-01-01" });
    const { messages } = await Promise.race([waiting, named]);
    assert.equal(messages[0]!.transactionId, "t0");
    await system.client.ackMessages(messages);
    await seek(queue, "g", { timestamp: "2000-01-01" });
    await Promise.all([waiting, named]);
  }
});

test("seek in one partition: to the end, or to a time; other partitions stay where they are", async () => {
  const queue = newQueue();
  const pushed = await system.client.push([...numbered(queue, 2, "a"), ...numbered(queue, 2, "b", 2)]);
  await system.client.pop(queue, { consumerGroup: "g", partition: "b" });
  const { status, json } = await seek(queue, "g", undefined, "a");
  assert.equal(status, 200);
  assert.deepEqual(json, {
    success: true,
    consumerGroup: "g",
    queueName: queue,
    partitionName: "a",
    updated: true,
    cursorMovedTo: pushed[1]!.message_id,
  });
  assert.deepEqual((await system.client.pop(queue, { consumerGroup: "g", partition: "a" })).status, 204);
  const back = await seek(queue, "g", { timestamp: "2000-01-01T00:00:00Z" }, "a");
  assert.deepEqual([back.status, back.json.cursorMovedTo], [200, null]);
  const again = await system.client.pop(queue, { consumerGroup: "g", partition: "a", batch: 5 });
  assert.deepEqual(idsOf(again.messages), ids(0, 2));
  const cursors = await readCursors(system.database, queue);
  assert.deepEqual(
    cursors.map(({ partition, leased }) => [partition, leased]),
    [
      ["a", true],
      ["b", true],
    ],
  );
});

test("seek: what does not exist is not found, what is not said is refused", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  await drain(queue, "g");
  for (const [answer, error] of [
    [await seek("no-such-queue", "g", { toEnd: true }), "Queue not found"],
    [await seek(queue, "nobody", { toEnd: true }), "Consumer group not found"],
    [await seek(queue, "g", {}, "nowhere"), "Partition not found"],
  ] as const) {
    assert.deepEqual([answer.status, answer.json.error, answer.json.code], [404, error, "NOT_FOUND"]);
  }
  for (const body of [undefined, {}, { toEnd: false }, [], { timestamp: null }]) {
    const answer = await seek(queue, "g", body);
    assert.deepEqual(
      [answer.status, answer.json.error],
      [400, "Must specify either 'toEnd': true or 'timestamp'"],
    );
  }
  for (const body of [
    { timestamp: "soon" },
    { timestamp: 5 },
    { timestamp: "infinity" },
    { timestamp: "2026-01-01", toEnd: true },
  ]) {
    const answer = await seek(queue, "g", body);
    assert.deepEqual([answer.status, answer.json.code], [400, "VALIDATION_FAILED"], JSON.stringify(body));
  }
  assert.equal((await seek(queue, "g", "{")).json.code, "INVALID_JSON");
});

// ------------------------------------------------------------------------------------------------ subscription

test("subscription: lanes that the group has not met start there, its places stay", async () => {
  const queue = newQueue();
  await system.client.push([...numbered(queue, 2, "met"), ...numbered(queue, 2, "unmet", 2)]);
  await system.client.pop(queue, { consumerGroup: "s", partition: "met", autoAck: true });
  const time = new Date(Date.now() + 3_600_000).toISOString();
  const { status, json } = await send("POST", `${GROUPS}/s/subscription`, { subscriptionTimestamp: time });
  assert.equal(status, 200);
  assert.deepEqual(json, {
    success: true,
    consumerGroup: "s",
    newTimestamp: time.replace(/\.?0*Z$/, "Z"),
    rowsUpdated: 1,
  });
  assert.deepEqual(await drain(queue, "s"), ["t1"]);

  for (const body of [undefined, {}, { subscriptionTimestamp: 5 }, { subscriptionTimestamp: "" }]) {
    const answer = await send("POST", `${GROUPS}/s/subscription`, body);
    assert.deepEqual(
      [answer.status, answer.json.error],
      [400, "Missing subscriptionTimestamp in request body"],
    );
  }
  const wrong = await send("POST", `${GROUPS}/s/subscription`, { subscriptionTimestamp: "soon" });
  assert.deepEqual([wrong.status, wrong.json.code], [400, "VALIDATION_FAILED"]);
  const unknown = await send("POST", `${GROUPS}/nobody/subscription`, { subscriptionTimestamp: time });
  assert.deepEqual([unknown.status, unknown.json.code], [404, "NOT_FOUND"]);
});

// ------------------------------------------------------------------------------------------------------ delete

test("delete in one queue: the group starts anew there, and elsewhere it stays", async () => {
  const [one, two] = [newQueue(), newQueue()];
  await system.client.push([...numbered(one, 2, "a"), ...numbered(one, 1, "b", 2), ...numbered(two, 1)]);
  const { client: other } = await system.another();
  await drain(one, "g");
  await drain(two, "g");
  const held = await system.client.push(numbered(one, 1, "a", 3));
  assert.equal(held[0]!.status, "queued");
  const lease = await other.pop(one, { consumerGroup: "g", batch: 5 });
  assert.deepEqual(idsOf(lease.messages), ["t3"]);

  const { status, json } = await send("DELETE", `${GROUPS}/g/queues/${one}`);
  assert.equal(status, 200);
  assert.deepEqual(json, {
    success: true,
    consumerGroup: "g",
    queueName: one,
    deletedPartitions: 2,
    metadataDeleted: true,
  });
  const [late] = await other.ackMessages(lease.messages);
  assert.equal(late!.success, false, "the lease went with the group");
  // Both brokers knew the group by its old id.
  const first = await other.pop(one, { consumerGroup: "g", partition: "a", batch: 10 });
  assert.deepEqual(idsOf(first.messages), ["t0", "t1", "t3"]);
  const acked = await system.client.ackMessages(first.messages);
  assert.ok(
    acked.every((each) => each.success),
    "an ack through the other broker finds the new group",
  );
  assert.deepEqual(await drain(one, "g"), ["t2"]);
  assert.deepEqual(await drain(two, "g"), []);
});

test("delete everywhere; with its subscription kept, the group starts where that says", async () => {
  const [one, two] = [newQueue(), newQueue()];
  await system.client.push([...numbered(one, 2), ...numbered(two, 2)]);
  await age(one, 3_600);
  await system.client.pop(one, { consumerGroup: "twice", subscriptionMode: "new" });
  await system.client.push(numbered(one, 1, undefined, 2));
  assert.deepEqual(await drain(one, "twice"), ["t2"]);
  await drain(two, "twice");
  const kept = await send("DELETE", `${GROUPS}/twice?deleteMetadata=false`);
  assert.deepEqual(kept.json, {
    success: true,
    consumerGroup: "twice",
    deletedPartitions: 2,
    metadataDeleted: false,
  });
  assert.deepEqual(await drain(one, "twice"), ["t2"], "from its subscription's start on");
  assert.deepEqual(await drain(two, "twice"), ids(0, 2));

  const gone = await send("DELETE", `${GROUPS}/twice`);
  assert.deepEqual([gone.json.deletedPartitions, gone.json.metadataDeleted], [2, true]);
  assert.deepEqual((await send("GET", `${GROUPS}/twice`)).json, {});
  assert.deepEqual(await drain(one, "twice"), ids(0, 3), "a new group sees everything");
});

test("delete: a group or queue that does not exist is no error, and counts nothing", async () => {
  for (const path of [`${GROUPS}/nobody`, `${GROUPS}/nobody/queues/nowhere`]) {
    const { status, json } = await send("DELETE", path);
    assert.deepEqual([status, json.success, json.deletedPartitions], [200, true, 0]);
  }
});

test("a pop that waits while its group is deleted gets what the new group has to get", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 2));
  await drain(queue, "g");
  const waiting = system.client.pop(queue, { consumerGroup: "g", batch: 5, wait: true, timeout: 20_000 });
  await until("it waits", async () => (await send("GET", "/metrics")).json.pops.parked >= 1);
  await send("DELETE", `${GROUPS}/g/queues/${queue}`);
  assert.deepEqual(idsOf((await waiting).messages), ids(0, 2));
});

test("a preview says what a seek then does, and moves nothing", async () => {
  const queue = newQueue();
  const preview = async (query: string, partition?: string) => {
    const path = `${GROUPS}/g/queues/${queue}${partition === undefined ? "" : `/partitions/${partition}`}/seek`;
    const { status, json } = await send("GET", `${path}?${query}`);
    assert.equal(status, 200);
    return [json.deliveredAgain, json.skipped, json.partitionsMoved, json.leasesEnded];
  };
  await system.client.push([...numbered(queue, 4, "a"), ...numbered(queue, 3, "b", 4)]);
  await age(queue, 3_600);
  await system.client.push([...numbered(queue, 2, "a", 7), ...numbered(queue, 5, "c", 9)]);
  // a: 1 of 6 finished ahead of its place, the rest under a lease; b: all 3 finished; c: not met
  const { messages } = await system.client.pop(queue, { partition: "a", batch: 6, consumerGroup: "g" });
  await system.client.ackMessages([messages[3]!]);
  const b = await system.client.pop(queue, { partition: "b", batch: 3, consumerGroup: "g" });
  await system.client.ackMessages(b.messages);
  const before = await entry(queue, "g");
  assert.equal(before.totalLag, 10);

  const halfAnHourAgo = new Date(Date.now() - 1_800_000).toISOString();
  assert.deepEqual(await preview("timestamp=2000-01-01T00:00:00Z"), [4, 0, 2, 1]);
  assert.deepEqual(await preview("toEnd=true"), [0, 10, 2, 1]);
  assert.deepEqual(await preview(`timestamp=${halfAnHourAgo}`), [0, 3, 1, 1]);
  assert.deepEqual(await preview("toEnd=true", "a"), [0, 5, 1, 1]);
  assert.deepEqual(await preview("timestamp=2000-01-01T00:00:00Z", "b"), [3, 0, 1, 0]);
  assert.deepEqual(await entry(queue, "g"), before);

  await seek(queue, "g", { timestamp: halfAnHourAgo });
  assert.equal((await entry(queue, "g")).totalLag, 7);
  assert.deepEqual(await preview(`timestamp=${halfAnHourAgo}`), [0, 0, 0, 0]);
  await seek(queue, "g", { timestamp: "2000-01-01T00:00:00Z" });
  assert.equal((await entry(queue, "g")).totalLag, 14);

  for (const [path, sentence] of [
    [`${GROUPS}/g/queues/no-such-queue/seek?toEnd=true`, "Queue not found"],
    [`${GROUPS}/nobody/queues/${queue}/seek?toEnd=true`, "Consumer group not found"],
    [`${GROUPS}/g/queues/${queue}/partitions/none/seek?toEnd=true`, "Partition not found"],
  ] as const) {
    const { status, json } = await send("GET", path);
    assert.deepEqual([status, json.error], [404, sentence]);
  }
  assert.equal((await send("GET", `${GROUPS}/g/queues/${queue}/seek`)).status, 400);
});

test("a broker notes how far groups are behind, and tells it by stretches of time", async () => {
  const queue = newQueue();
  const shiftPasses = (by: string): Promise<unknown> =>
    system.database.query(
      `update queen.sweeps set started_at = now() + $1::interval, finished_at = now() + $1::interval where name = 'lag'`,
      [by],
    );
  await shiftPasses("1 day"); // none may note what is not acked yet
  await system.client.push(numbered(queue, 5));
  const { messages } = await system.client.pop(queue, { consumerGroup: "behind", batch: 2 });
  await system.client.ackMessages(messages);
  await age(queue, 120);
  // What was noted before, and a pass that is due for whoever asks next: a broker that starts.
  await system.database.query(
    `insert into queen.group_minutes (group_id, minute, pending, age_ms)
     select g.id, date_trunc('minute', now()) - 300 * interval '1 minute', 700, 9000
       from queen.consumer_groups g join queen.queues q on q.id = g.queue_id where q.name = $1`,
    [queue],
  );
  await shiftPasses("-1 hour");
  await system.another();
  const path = `${GROUPS}/behind/queues/${queue}/lag`;
  const { series, bucketMinutes } = await until("it is noted", async () => {
    const { json } = await send("GET", path);
    return json.series.length > 0 ? json : undefined;
  });
  const last = series.at(-1);
  assert.deepEqual([bucketMinutes, last.messages], [1, 3]);
  assert.ok(last.oldestSeconds >= 120, `${last.oldestSeconds} s`);
  const { json: day } = await send("GET", `${path}?minutes=1440`);
  assert.equal(day.bucketMinutes, 15);
  assert.deepEqual([day.series[0].messages, day.series[0].oldestSeconds], [700, 9]);
  assert.equal(day.series.at(-1).messages, 3);
  assert.deepEqual((await send("GET", `${GROUPS}/nobody/queues/${queue}/lag`)).json.series, []);
});
