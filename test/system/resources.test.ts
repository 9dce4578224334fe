/** Queues, partitions, namespaces, tasks and the overview, with their figures; through HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import { expireLeases, newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

let system: System;
before(async () => {
  system = await startSystem();
});
after(() => system.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

const send = (method: string, path: string): Promise<HttpAnswer> => system.client.request(method, path);
async function get(path: string) {
  const answer = await send("GET", `/api/v1/${path}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** Sums may be as old as a second on a busy machine: read anew, so that a test sees what it did. */
const refresh = async (): Promise<HttpAnswer> => {
  const answer = await send("POST", "/api/v1/stats/refresh");
  assert.equal(answer.status, 200, answer.text);
  return answer;
};

const six = (
  total: number,
  pending: number,
  processing: number,
  deadLetter = 0,
  completed = total - pending - processing,
) => ({ total, pending, processing, completed, failed: 0, deadLetter });

// ------------------------------------------------------------------------------------------------------ nothing

test("a broker without queues shows nothing", async () => {
  assert.deepEqual(await get("resources/queues"), { queues: [] });
  assert.deepEqual(await get("resources/namespaces"), { namespaces: [] });
  assert.deepEqual(await get("resources/tasks"), { tasks: [] });
  assert.deepEqual(await get("resources/partitions"), {
    partitions: [],
    total: 0,
    pagination: { limit: 1000, offset: 0 },
  });
  assert.deepEqual(await get("status/queues"), { queues: [], pagination: { limit: 100, offset: 0 } });
  const { timestamp, ...overview } = await get("resources/overview");
  assert.match(timestamp, TIME);
  const none = { avg: 0, median: 0, min: 0, max: 0 };
  assert.deepEqual(overview, {
    queues: 0,
    partitions: 0,
    namespaces: 0,
    tasks: 0,
    messages: six(0, 0, 0),
    lag: { time: none, offset: none },
    throughput: { ingestedPerSecond: 0, processedPerSecond: 0 },
    statsAge: 0,
  });
});

test("what is not there is a 404", async () => {
  for (const path of ["resources/queues/none", "status/queues/none", "resources/partitions?queue=none"]) {
    const { status, json } = await send("GET", `/api/v1/${path}`);
    assert.deepEqual([status, json], [404, { error: "Queue not found", code: "NOT_FOUND" }], path);
  }
});

test("a parameter that cannot be is a 400", async () => {
  for (const path of [
    "resources/partitions?sort=size",
    "resources/queues?limit=x",
    "status/queues/q?offset=1.5",
  ]) {
    const { status, json } = await send("GET", `/api/v1/${path}`);
    assert.deepEqual([status, json.code], [400, "VALIDATION_FAILED"], path);
  }
});

// ------------------------------------------------------------------------------------------------------- queues

test("queues: the newest first, with figures; by part of the name, namespace, task; page by page", async () => {
  const names = ["list.alpha", "list.beta", "other.alpha"].map((name) => newQueue(name));
  for (const [index, queue] of names.entries()) await system.client.push(numbered(queue, index + 1, "p"));
  await refresh();
  const shown = async (query: string) => {
    const answer = await send("GET", `/api/v1/resources/queues?${query}`);
    const status = await send("GET", `/api/v1/status/queues?${query}`);
    const queues = (json: { queues: { name: string }[] }) => json.queues.map((queue) => queue.name);
    assert.deepEqual(queues(status.json), queues(answer.json));
    assert.equal(status.headers["queen-total"], answer.headers["queen-total"]);
    return [queues(answer.json), Number(answer.headers["queen-total"])];
  };
  const [alpha, beta, other] = names as [string, string, string];
  assert.deepEqual(await shown(""), [[other, beta, alpha], 3]);
  assert.deepEqual(await shown("limit=1&offset=1"), [[beta], 3]);
  assert.deepEqual(await shown("offset=9"), [[], 3]);
  assert.deepEqual(await shown("search=LIST"), [[beta, alpha], 2]);
  assert.deepEqual(await shown("search=%25"), [[], 0]);
  assert.deepEqual(await shown("namespace=other"), [[other], 1]);
  assert.deepEqual(await shown(`task=${alpha.split(".")[1]}`), [[alpha], 1]);

  const [queue] = (await get("resources/queues?limit=1")).queues;
  assert.match(queue.id, UUID);
  assert.match(queue.createdAt, TIME);
  assert.deepEqual(queue, {
    id: queue.id,
    name: other,
    namespace: "other",
    task: other.split(".")[1],
    createdAt: queue.createdAt,
    partitions: 1,
    messages: { total: 3, pending: 3, processing: 0 },
    lagSeconds: 0,
    inPerSecond: 0,
    outPerSecond: 0,
    deadLetters: 0,
  });
});

test("figures follow push, pop, ack, dead letter, expiry and deletion", async () => {
  const queue = newQueue("life");
  await system.client.push([...numbered(queue, 6, "a"), ...numbered(queue, 2, "b")]);
  const totals = async () => {
    await refresh();
    // A queue's own sums are shared, too, for ten times as long as they took.
    return until("sums that agree with the list", async () => {
      const [listed] = (await get(`resources/queues?search=${queue}`)).queues;
      const { totals: sums } = await get(`resources/queues/${queue}`);
      const { total, pending, processing } = sums;
      return (
        JSON.stringify(listed.messages) === JSON.stringify({ total, pending, processing }) && { ...sums }
      );
    });
  };
  assert.deepEqual(await totals(), six(8, 8, 0));
  const { messages } = await system.client.pop(queue, { partition: "a", batch: 4 });
  assert.deepEqual(await totals(), six(8, 4, 4));
  const [status] = (await get(`status/queues?search=${queue}`)).queues;
  assert.deepEqual(
    status.messages,
    { total: 8, pending: 8, processing: 4 },
    "here pending is with processing",
  );
  await system.client.ackMessages([messages[0]!, messages[2]!]);
  assert.deepEqual(await totals(), six(8, 4, 2));
  await system.client.ackMessages([messages[1]!], "dlq");
  assert.deepEqual(await totals(), six(8, 4, 1, 1));
  await expireLeases(system.database, queue);
  assert.deepEqual(await totals(), six(8, 5, 0, 1));
  const deleted = await send("DELETE", `/api/v1/messages/${messages[3]!.partitionId}/t5?x=1`);
  assert.equal(deleted.json.success, true);
  assert.deepEqual(await totals(), six(8, 4, 0, 1), "a deleted message's place counts in total");
  assert.equal((await send("DELETE", `/api/v1/resources/queues/${queue}`)).status, 200);
  await refresh();
  assert.deepEqual(await get(`resources/queues?search=${queue}`), { queues: [] });
});

test("a queue that only named groups read shows the slowest of them", async () => {
  const queue = newQueue("bus");
  await system.client.push(numbered(queue, 5, "p"));
  const fast = await system.client.pop(queue, { consumerGroup: "fast", batch: 5 });
  await system.client.ackMessages(fast.messages);
  const slow = await system.client.pop(queue, { consumerGroup: "slow", batch: 2 });
  assert.equal(slow.messages.length, 2);
  const { totals, partitions } = await get(`resources/queues/${queue}`);
  assert.deepEqual([totals, partitions[0].stats], [six(5, 3, 2), six(5, 3, 2)]);
});

test("one queue: its partitions page by page, by name, depth and age; totals over all", async () => {
  const queue = newQueue("wide");
  for (const [partition, count] of [
    ["old", 2],
    ["deep", 7],
    ["young", 1],
  ] as const) {
    await system.client.push(numbered(queue, count, partition));
  }
  const names = async (query: string): Promise<string[]> => {
    const paths = [`resources/queues/${queue}?${query}`, `status/queues/${queue}?${query}`];
    const [one, two] = await Promise.all([...paths, `resources/partitions?queue=${queue}&${query}`].map(get));
    const three = await get(`resources/partitions?queue=${queue}&${query}`);
    const of = (json: { partitions: { name: string }[] }) => json.partitions.map((lane) => lane.name);
    assert.deepEqual([of(two), of(three)], [of(one), of(one)]);
    assert.equal(one.totals.total, 10, "whatever the page is");
    assert.equal(one.pagination.total, three.total);
    return of(one);
  };
  assert.deepEqual(await names(""), ["deep", "old", "young"]);
  assert.deepEqual(await names("sort=depth"), ["deep", "old", "young"]);
  assert.deepEqual(await names("sort=age"), ["old", "deep", "young"]);
  assert.deepEqual(await names("sort=age&limit=1&offset=2"), ["young"]);
  assert.deepEqual(await names("search=O"), ["old", "young"]);
  assert.deepEqual(await names("offset=3"), []);

  const detail = await get(`resources/queues/${queue}?limit=1`);
  const [lane] = detail.partitions;
  assert.match(lane.id, UUID);
  for (const time of [lane.createdAt, lane.oldestMessage, lane.newestMessage, lane.oldestPending]) {
    assert.match(time, TIME);
  }
  assert.deepEqual(Object.keys(detail), [
    "id",
    "name",
    "namespace",
    "task",
    "createdAt",
    "partitions",
    "totals",
    "pagination",
  ]);
  assert.deepEqual(lane.stats, six(7, 7, 0));
  assert.deepEqual(detail.pagination, { limit: 1, offset: 0, total: 3 });
});

test("the status of a queue has its options, and per partition how far it was consumed", async () => {
  const queue = newQueue("status");
  await system.client.configure(queue, {
    leaseTime: 77,
    retryLimit: 5,
    priority: 3,
    maxSize: 9,
    deadLetterQueue: true,
  });
  await system.client.push(numbered(queue, 3));
  const { messages } = await system.client.pop(queue, { batch: 2 });
  await system.client.ackMessages(messages);
  const { queue: shown, partitions, totals, pagination } = await get(`status/queues/${queue}`);
  assert.deepEqual(shown, {
    id: shown.id,
    name: queue,
    namespace: "",
    task: "",
    createdAt: shown.createdAt,
    priority: 3,
    options: shown.options,
    config: {
      leaseTime: 77,
      retryLimit: 5,
      retryDelay: 1000,
      ttl: 3600,
      maxQueueSize: 9,
      deadLetterQueue: true,
    },
  });
  assert.equal(Object.keys(shown.options).length, 18);
  assert.deepEqual([shown.options.maxSize, shown.options.windowBuffer], [9, 0]);
  const [lane] = partitions;
  assert.deepEqual(lane, {
    id: lane.id,
    name: "Default",
    createdAt: lane.createdAt,
    messages: six(3, 1, 0),
    stats: six(3, 1, 0),
    cursor: { totalConsumed: 2, batchesConsumed: 0 },
    lastActivity: lane.lastActivity,
    oldestMessage: lane.oldestMessage,
    newestMessage: lane.newestMessage,
    oldestPending: lane.oldestPending,
    retrying: 0,
  });
  assert.ok(lane.lastActivity >= lane.newestMessage);
  assert.deepEqual(totals, { messages: six(3, 1, 0), ...six(3, 1, 0) });
  assert.deepEqual(pagination, { limit: 1000, offset: 0, total: 1 });
});

test("names that need escapes are found", async () => {
  const queue = newQueue("a b/ü%");
  await system.client.push(numbered(queue, 1, "p/1 ü"));
  const { name, partitions } = await get(`resources/queues/${encodeURIComponent(queue)}`);
  assert.deepEqual([name, partitions[0].name], [queue, "p/1 ü"]);
});

// ----------------------------------------------------------------------------------------------------- overview

test("namespaces, tasks and the overview are the sums over their queues", async () => {
  const [one, two] = [newQueue("sums.x"), newQueue("sums.x")];
  await system.client.push([...numbered(one, 3, "a"), ...numbered(one, 1, "b"), ...numbered(two, 5)]);
  await system.client.pop(one, { partition: "a", batch: 2 });
  const { json: read } = await refresh();
  const { namespaces } = await get("resources/namespaces");
  assert.deepEqual(
    namespaces.find((each: { namespace: string }) => each.namespace === "sums"),
    { namespace: "sums", queues: 2, partitions: 3, messages: { total: 9, pending: 7, processing: 2 } },
  );
  const { tasks } = await get("resources/tasks");
  assert.deepEqual(
    tasks.find((each: { task: string }) => each.task === one.split(".")[1]),
    { task: one.split(".")[1], queues: 1, partitions: 2, messages: { total: 4, pending: 2, processing: 2 } },
  );
  const overview = await get("resources/overview");
  const { queues } = await get("resources/queues");
  const sum = (pick: (queue: { partitions: number; messages: Record<string, number> }) => number): number =>
    queues.reduce((total: number, queue: Parameters<typeof pick>[0]) => total + pick(queue), 0);
  assert.deepEqual(
    [overview.queues, overview.partitions, overview.namespaces, overview.tasks],
    [queues.length, sum((queue) => queue.partitions), namespaces.length, tasks.length],
  );
  assert.equal(
    overview.messages.total,
    sum((queue) => queue.messages.total!),
  );
  assert.equal(
    overview.messages.processing,
    sum((queue) => queue.messages.processing!),
  );
  assert.deepEqual(read, {
    partition: {
      partitionsUpdated: overview.partitions,
      dirtyPartitionsScanned: overview.partitions,
      partitionsSkippedByWatermark: 0,
      newPartitions: 0,
    },
    queue: { queuesUpdated: queues.length },
    namespace: { namespacesUpdated: namespaces.length },
    task: { tasksUpdated: tasks.length },
    system: { systemUpdated: 1 },
    cleanup: { orphanedDeleted: 0 },
  });
});

test("the overview has the lag of the groups in messages and seconds, and what moves", async () => {
  const queue = newQueue("lag");
  await system.client.push(numbered(queue, 8));
  await system.client.pop(queue, { consumerGroup: "behind" });
  await system.database.query(
    `update queen.segments s set created_at = s.created_at - interval '1 hour'
       from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 and p.id = s.partition_id`,
    [queue],
  );
  const lag = await until("a reading that has the group's lag", async () => {
    const overview = await get("resources/overview");
    return overview.lag.time.max >= 3_600 && overview.lag;
  });
  assert.ok(lag.time.max < 3_700);
  for (const { avg, median, min, max } of [lag.time, lag.offset]) {
    assert.ok(min <= median && median <= max && min <= avg && avg <= max);
  }
  const { json: groups } = await send("GET", "/api/v1/consumer-groups");
  const behind = groups
    .map((group: { totalLag: number }) => group.totalLag)
    .sort((a: number, b: number) => a - b);
  assert.deepEqual([lag.offset.min, lag.offset.max], [behind[0], behind.at(-1)]);

  let pushed = 8;
  await until("messages per second", async () => {
    await system.client.push(numbered(queue, 1, undefined, pushed++));
    return (await get("resources/overview")).throughput.ingestedPerSecond > 0;
  });
});

test("partitions by trouble: dead letters and retries, the most first", async () => {
  const queue = newQueue("trouble");
  await system.client.configure(queue, { retryLimit: 5, retryDelay: 60_000 });
  await system.client.push(
    ["a", "b", "c", "d"].flatMap((partition, n) => numbered(queue, 3, partition, 3 * n)),
  );
  const fail = async (partition: string, batch: number, status: "failed" | "dlq"): Promise<void> => {
    const { messages } = await system.client.pop(queue, { partition, batch });
    await system.client.ackMessages(messages, status, "no");
  };
  await fail("b", 1, "failed");
  await fail("d", 2, "dlq");
  const { partitions } = await get(`resources/queues/${queue}?sort=trouble`);
  assert.deepEqual(
    partitions.map((lane: { name: string; retrying: number; stats: { deadLetter: number } }) => [
      lane.name,
      lane.retrying,
      lane.stats.deadLetter,
    ]),
    [
      ["d", 0, 2],
      ["b", 1, 0],
      ["a", 0, 0],
      ["c", 0, 0],
      ["Default", 0, 0],
    ],
  );
});

test("a partition is shown with the place of each group", async () => {
  const queue = newQueue("places");
  await system.client.push(numbered(queue, 6, "a"));
  const { messages } = await system.client.pop(queue, { partition: "a", batch: 4, consumerGroup: "early" });
  await system.client.ackMessages([messages[0]!, messages[2]!]);
  await system.client.pop(queue, { partition: "a", batch: 6, consumerGroup: "done", autoAck: true });
  const { consumerGroups, ...lane } = await get(`queues/${queue}/partitions/a`);
  assert.deepEqual(
    [lane.queue, lane.name, lane.startOffset, lane.nextOffset, lane.deadLetter],
    [queue, "a", 0, 6, 0],
  );
  assert.deepEqual(
    consumerGroups.map((group: Record<string, unknown>) => [
      group.name,
      group.offset,
      group.pending,
      group.finishedAhead,
      group.leasedUntil,
    ]),
    [
      ["done", 6, 0, [], null],
      ["early", 1, 4, [[2, 3]], 4],
    ],
  );
  assert.equal((await send("GET", `/api/v1/queues/${queue}/partitions/none`)).status, 404);
});

test("queues are sorted by what they hold", async () => {
  const [one, other] = [newQueue("sorted"), newQueue("sorted")];
  await system.client.push([...numbered(one, 2), ...numbered(other, 5), ...numbered(other, 1, "b", 5)]);
  await refresh();
  const names = async (sort: string): Promise<string[]> =>
    (await get(`resources/queues?search=sorted&sort=${sort}`)).queues.map(
      (queue: { name: string }) => queue.name,
    );
  assert.deepEqual(await names("newest"), [other, one]);
  assert.deepEqual(await names("name"), [one, other]);
  assert.deepEqual(await names("depth"), [other, one]);
  assert.deepEqual(await names("partitions"), [other, one]);
  assert.equal((await send("GET", "/api/v1/resources/queues?sort=colour")).status, 400);
});
