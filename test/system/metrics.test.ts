/** Metrics and analytics over HTTP: exact numbers after a known load, over workers and brokers, and quiet when idle. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HttpClient } from "../support/http.ts";
import { metricsIn, type ParsedFamily, parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { expireLeases, newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

let system: System;
const workers = new Map<number, HttpClient>();
let other: HttpClient;

const clients: HttpClient[] = [];

/** A client of one worker: a connection that is kept stays with its worker, as long as it has one request at a time. */
async function connectTo(worker: number): Promise<HttpClient> {
  return until(`worker ${worker} was met`, async () => {
    const client = new HttpClient(system.broker.url);
    clients.push(client);
    return (await client.request("GET", "/metrics")).json.worker.id === worker && client;
  });
}

before(async () => {
  system = await startSystem({
    NUM_WORKERS: "2",
    QUEEN_PLACEMENT: "even",
    METRICS_AGGREGATE_INTERVAL_S: "1",
    QUEEN_METRICS_LABELS_MAX: "5",
  });
  for (const id of [0, 1]) workers.set(id, await connectTo(id));
  other = (await system.another({ NUM_WORKERS: "1" })).client;
});
after(async () => {
  for (const client of clients) client.close();
  await system.stop();
});

const get = async (path: string, client: HttpClient = system.client) => {
  const answer = await client.request("GET", path);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};

const scrape = async (client: HttpClient = system.client): Promise<Map<string, ParsedFamily>> => {
  const answer = await client.request("GET", "/metrics/prometheus");
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
  assert.equal(answer.headers["cache-control"], "no-cache");
  return parsePrometheus(answer.text);
};

interface Operations {
  readonly [name: string]: number;
}

/** What was done with a queue in the last hour, summed over buckets. */
async function operationsOf(queue: string): Promise<Operations> {
  const { series } = await get(`/api/v1/analytics/queue-ops?queue=${queue}`);
  const sums: Record<string, number> = {};
  for (const bucket of series as Record<string, number>[]) {
    for (const [name, value] of Object.entries(bucket)) {
      if (typeof value === "number") sums[name] = (sums[name] ?? 0) + value;
    }
  }
  return sums;
}

const pickFrom = (record: Operations, names: readonly string[]): number[] =>
  names.map((name) => record[name] ?? 0);

// --------------------------------------------------------------------------------------------------- exact numbers

const COUNTED = [
  "pushRequests",
  "pushMessages",
  "popMessages",
  "popEmpty",
  "ackRequests",
  "ackSuccess",
  "ackFailed",
  "transactions",
  "partitionsCreated",
];

test("a known load on two workers and two brokers is counted exactly, by queue, by worker and in all", async () => {
  const queue = newQueue("load");
  const sink = newQueue("sink");
  await system.client.configure(queue, { retryLimit: 0 });
  const before = (await get("/api/v1/analytics/worker-metrics")).summary;
  const [first, second] = [workers.get(0)!, workers.get(1)!];

  await first.push(numbered(queue, 100, "a"));
  await second.push([...numbered(queue, 30, "b"), ...numbered(sink, 5)]);
  await other.push(numbered(queue, 20, "c"));
  await other.push(numbered(queue, 20, "c")); // duplicates are stored once

  const a = await second.pop(queue, { partition: "a", batch: 100 });
  const b = await first.pop(queue, { partition: "b", batch: 30 });
  const c = await other.pop(queue, { partition: "c", batch: 10, autoAck: true });
  assert.deepEqual(
    [a, b, c].map(({ messages }) => messages.length),
    [100, 30, 10],
  );
  assert.equal((await first.pop(queue, { partition: "b" })).status, 204);
  assert.equal((await other.pop(queue, { partition: "none" })).status, 204);
  assert.equal((await other.pop("nobody-made-this")).status, 204);

  await second.ackMessages(a.messages.slice(0, 98));
  const failing = await first.ackMessages(a.messages.slice(98, 99), "failed", "no luck");
  assert.equal(failing[0]!.dlq, true, "no retries, so it is a dead letter");
  const [unacked, ...acked] = b.messages;
  await first.ackMessages(acked);
  const last = a.messages[99]!;
  const refused = await first.ackMessages([{ ...last, leaseId: b.messages[0]!.leaseId }]);
  assert.equal(refused[0]!.success, false);
  const committed = await second.transaction([
    {
      type: "ack",
      transactionId: unacked!.transactionId,
      partitionId: unacked!.partitionId,
      leaseId: unacked!.leaseId,
    },
    {
      type: "push",
      items: [
        { queue: sink, payload: 1 },
        { queue: sink, payload: 2 },
      ],
    },
  ]);
  assert.equal(committed.status, 200, committed.text);

  // 98 + 29 by acks, 10 at delivery, 1 by the transaction; one failed and one was refused
  const expected = [4, 150, 140, 2, 4, 138, 2, 1, 4];
  await until("all workers have written", async () => {
    const counts = pickFrom(await operationsOf(queue), COUNTED);
    return JSON.stringify(counts) === JSON.stringify(expected);
  }).catch(async (error) => {
    assert.deepEqual(pickFrom(await operationsOf(queue), COUNTED), expected);
    throw error;
  });
  assert.deepEqual(
    pickFrom(await operationsOf(sink), ["pushRequests", "pushMessages", "transactions"]),
    [1, 7, 1],
  );

  const lag = (await get(`/api/v1/analytics/queue-lag?queue=${queue}`)) as {
    popCount: number;
    maxLagMs: number;
  }[];
  assert.equal(
    lag.reduce((sum, { popCount }) => sum + popCount, 0),
    140,
  );
  assert.ok(
    lag.every(({ maxLagMs }) => maxLagMs >= 0 && maxLagMs < 60_000),
    "by the database's clock",
  );

  const { summary, workers: listed } = await get("/api/v1/analytics/worker-metrics");
  const grew = (name: string): number => summary[name] - before[name];
  assert.deepEqual(
    ["totalPushMessages", "totalPopMessages", "totalAckMessages", "totalAckFailed", "totalDlq"].map(grew),
    [157, 140, 129, 2, 1],
  );
  assert.deepEqual(["totalPushRequests", "totalPopRequests", "totalAckRequests"].map(grew), [4, 6, 4]);
  assert.equal(listed.length, 3, "two workers of one broker and one of the other");

  const status = await get(`/api/v1/status?queue=${queue}`);
  const series = status.throughput as Operations[];
  const sum = (name: string): number => series.reduce((total, bucket) => total + bucket[name]!, 0);
  assert.deepEqual(
    ["ingested", "processed", "popMessages", "ackFailed", "dlqCount"].map(sum),
    [150, 138, 140, 2, 1],
  );
  assert.deepEqual(status.messages.requests, { push: 4, pop: 5, ack: 4 });
  assert.deepEqual(status.deadLetterQueue, {
    totalMessages: 1,
    affectedPartitions: 1,
    topErrors: [{ error: "no luck", count: 1 }],
  });
  assert.deepEqual(status.leases, { active: 1, partitionsWithLeases: 1, totalBatchSize: 1, totalAcked: 0 });
  const { total, pending, processing, completed, deadLetter } = status.messages;
  assert.deepEqual([total, pending, processing, completed, deadLetter], [150, 10, 1, 138, 1]);
  assert.deepEqual(
    status.queues.map((each: Operations) => [each.name, each.partitions, each.totalConsumed]),
    [[queue, 4, 139]],
  );
  const inAll = await get("/api/v1/status?namespace=nobody");
  assert.deepEqual([inAll.queues, inAll.throughput, inAll.messages.total], [[], [], 0]);

  const points = await get(`/api/v1/status/analytics?interval=minute&queue=${queue}`);
  assert.equal(points.interval, "minute");
  assert.equal(
    points.dataPoints.reduce((total: number, point: Operations) => total + point.messages!, 0),
    150,
  );
});

test("a message whose leases ran out until it was given up is counted as dead-lettered", async () => {
  const queue = newQueue("expired");
  await system.client.configure(queue, { retryLimit: 0 });
  await other.push(numbered(queue, 1));
  for (let attempt = 0; attempt < 2; attempt++) {
    const { messages } = await until("it is delivered", async () => {
      const answer = await other.pop(queue, { batch: 1 });
      return answer.messages.length === 1 && answer;
    });
    assert.equal(messages.length, 1);
    assert.equal(await expireLeases(system.database, queue), 1);
  }
  await until("it was given up and counted", async () => {
    await other.pop(queue);
    return (
      (await operationsOf(queue)).popEmpty! > 0 &&
      (await get(`/api/v1/status?queue=${queue}`)).errors.dlqMessages === 1
    );
  });
});

test("waiting consumers are counted by queue and worker, and the bucket keeps the most of them", async () => {
  const queue = newQueue("waiting");
  await other.push(numbered(queue, 1));
  const waiting = await Promise.all(
    [0, 0, 1, 1].map(async (id) => {
      const client = await connectTo(id);
      return { answer: client.pop(queue, { wait: true, timeout: 30_000, consumerGroup: `g${id}` }) };
    }),
  );
  // Each group has one message, and one consumer that waits.
  await until("two wait", async () => (await get("/metrics")).pops.parked === 2);
  const series = await until("they were written", async () => {
    // Something must be counted for a queue to be written.
    await workers.get(0)!.pop(queue, { partition: "none" });
    await workers.get(1)!.pop(queue, { partition: "none" });
    const answer = await get(`/api/v1/analytics/queue-parked-replicas?queue=${queue}`);
    return answer.replicas.length === 2 && answer;
  });
  for (const { parkedCount } of series.series) assert.ok(parkedCount === 1 || parkedCount === 2);
  await other.push(numbered(queue, 1, "second"));
  await Promise.all(waiting.map(({ answer }) => answer));
});

// ------------------------------------------------------------------------------------------------------ the metrics

test("metrics: any worker answers with the sums of all, and lists each", async () => {
  const queue = newQueue();
  const before = await get("/metrics", workers.get(0));
  await workers.get(0)!.push(numbered(queue, 3));
  await workers.get(1)!.push(numbered(queue, 4, "p"));
  for (const id of [0, 1]) {
    const figures = await get("/metrics", workers.get(id));
    assert.equal(figures.worker.id, id, "who answered");
    assert.equal(figures.messages.pushed - before.messages.pushed, 7);
    assert.equal(figures.sidecar.operations.push.count - before.sidecar.operations.push.count, 2);
    assert.equal(figures.silentWorkers, 0);
    const pushed = figures.workers.map((each: { id: number; messages: { pushed: number } }, at: number) => [
      each.id,
      each.messages.pushed - before.workers[at].messages.pushed,
    ]);
    assert.deepEqual(pushed, [
      [0, 3],
      [1, 4],
    ]);
  }
});

test("prometheus: every worker gives the same text, all series once, workers and brokers summed up", async () => {
  const queue = newQueue("prom");
  const count = (families: Map<string, ParsedFamily>, name: string, labels: Record<string, string>): number =>
    seriesValue(families, name, labels) ?? 0;
  const before = await scrape();
  await workers.get(0)!.push(numbered(queue, 2_000, "a"));
  await workers.get(1)!.push(numbered(queue, 1_000, "b"));
  const { messages } = await workers.get(1)!.pop(queue, { partition: "a", batch: 10 });
  await workers.get(0)!.ackMessages(messages);
  for (const id of [0, 1]) {
    const families = await scrape(workers.get(id));
    const grew = (name: string, labels: Record<string, string>): number =>
      count(families, name, labels) - count(before, name, labels);
    assert.equal(grew("queen_messages_total", { op: "push" }), 3_000);
    assert.equal(grew("queen_requests_total", { op: "push" }), 2);
    assert.equal(grew("queen_acks_total", { result: "success" }), 10);
    assert.equal(count(families, "queen_queue_push_messages_total", { queue }), 3_000);
    assert.equal(count(families, "queen_queue_pop_messages_total", { queue }), 10);
    assert.equal(count(families, "queen_workers", { state: "answered" }), 2);
    assert.equal(count(families, "queen_cluster_figures_available", {}), 1);
    for (const name of ["queen_push_duration_seconds", "queen_message_age_seconds"]) {
      const grown = grew(`${name}_count`, {});
      assert.equal(grown, name.includes("push") ? 2 : 10);
    }
  }
  const families = await until("the figures of all brokers are there", async () => {
    const now = await scrape(other);
    return seriesValue(now, "queen_queue_depth", { queue }) === 2_990 && now;
  });
  const group = { queue, consumer_group: "__QUEUE_MODE__" };
  assert.equal(seriesValue(families, "queen_queue_lag_messages", group), 2_990);
  assert.ok(seriesValue(families, "queen_queue_lag_seconds", group)! > 0);
  const named = families.get("queen_queue_depth")!.series.map(({ labels }) => labels.queue);
  assert.equal(named.length, 6, "five queues have names");
  assert.ok(named.includes("other"));
  const totals = await until("the totals were written", async () => {
    const now = await scrape();
    return (seriesValue(now, "queen_cluster_push_messages_total", { scope: "cluster" }) ?? 0) >= 3_000 && now;
  });
  assert.deepEqual(
    [...totals.keys()].filter((name) => !name.startsWith("queen_")),
    [],
  );
});

test("prometheus: a worker that does not answer is left out and counted, and nobody waits long for it", async () => {
  const { client } = await system.another({ NUM_WORKERS: "2" });
  const { worker, workers: all } = await until("both workers are there", async () => {
    const figures = await get("/metrics", client);
    return figures.workers.length === 2 && figures;
  });
  const asleep = all.find((each: { id: number }) => each.id !== worker.id).pid;
  process.kill(asleep, "SIGSTOP");
  try {
    const families = await scrape(client);
    assert.equal(seriesValue(families, "queen_workers", { state: "answered" }), 1);
    assert.equal(seriesValue(families, "queen_workers", { state: "silent" }), 1);
    assert.equal((await get("/metrics", client)).silentWorkers, 1);
  } finally {
    process.kill(asleep, "SIGCONT");
  }
  await until("it answers again", async () => (await get("/metrics", client)).silentWorkers === 0);
});

test("prometheus: while the database is locked the broker's own figures come, the others are left out", async () => {
  await sleep(5_100); // what was read of the cluster is kept for five seconds
  const blocker = await system.database.client();
  await blocker.query("begin; lock table queen.queues in access exclusive mode");
  try {
    const families = await scrape(other);
    assert.equal(seriesValue(families, "queen_cluster_figures_available"), 0);
    assert.ok(families.has("queen_messages_total"));
    assert.ok(!families.has("queen_queue_depth"));
  } finally {
    await blocker.query("rollback");
  }
});

// ------------------------------------------------------------------------------------- dashboard, alerts, documents

const read = (path: string): string => readFileSync(`${ROOT}${path}`, "utf8");

const known = (families: Map<string, ParsedFamily>, name: string): boolean =>
  families.has(name) || families.get(name.replace(/_(bucket|sum|count)$/, ""))?.type === "histogram";

test("every query of the dashboard and every alert uses families that exist", async () => {
  const families = await scrape();
  const { panels } = JSON.parse(read("deploy/grafana/queen.json")) as {
    panels: { title: string; targets?: { expr: string }[] }[];
  };
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const alerts = [...read("deploy/prometheus/alerts.yml").matchAll(/^\s+expr: (.+)$/gm)].map(
    ([, expr]) => expr!,
  );
  assert.ok(expressions.length > 25 && alerts.length >= 8);
  const unknown = [...expressions, ...alerts].flatMap((expression) => {
    const names = metricsIn(expression);
    if (names.length === 0 && !expression.startsWith("up{")) return [`no metric in ${expression}`];
    return names.filter((name) => !known(families, name));
  });
  assert.deepEqual(unknown, []);
  assert.equal(known(families, "queen_nothing_total"), false);
});

test("docs/observability.md lists exactly the families that there are, with their types, labels and meanings", async () => {
  const families = await scrape();
  const rows = [
    ...read("docs/observability.md").matchAll(/^\| `(queen_\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm),
  ];
  const documented = new Map(rows.map(([, name, type, labels, help]) => [name!, { type, labels, help }]));
  assert.deepEqual([...documented.keys()].sort(), [...families.keys()].sort());
  for (const [name, { type, help, series }] of families) {
    const row = documented.get(name)!;
    assert.deepEqual([row.type, row.help], [type, help], name);
    const labels = [...(row.labels ?? "").matchAll(/`(\w+)`/g)].map(([, label]) => label).sort();
    for (const each of series) {
      const shown = Object.keys(each.labels).filter((label) => label !== "le");
      assert.deepEqual(shown.sort(), labels, name);
    }
  }
});

test("alerts named in docs/observability.md are those of the file", () => {
  const rules = [...read("deploy/prometheus/alerts.yml").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const documented = [...read("docs/observability.md").matchAll(/`(Queen[A-Z]\w+)`/g)].map(
    ([, name]) => name,
  );
  assert.deepEqual([...new Set(documented)].sort(), rules.sort());
});

// ---------------------------------------------------------------------------------------------- ranges and filters

const TIMED = [
  "/api/v1/status",
  "/api/v1/status/analytics",
  "/api/v1/analytics/system-metrics",
  "/api/v1/analytics/worker-metrics",
  "/api/v1/analytics/queue-lag",
  "/api/v1/analytics/queue-ops",
  "/api/v1/analytics/queue-parked-replicas",
];

test("a time that is none, or a start after the end, is refused everywhere", async () => {
  for (const path of TIMED) {
    for (const query of ["from=yesterdayish", "to=infinity", "from=2026-01-02&to=2026-01-01"]) {
      const answer = await system.client.request("GET", `${path}?${query}`);
      assert.equal(answer.status, 400, `${path}?${query}`);
      assert.equal(answer.json.code, "VALIDATION_FAILED");
    }
  }
  for (const query of ["workerId=x", "workerId=-1"]) {
    assert.equal((await system.client.request("GET", `${TIMED[2]}?${query}`)).status, 400);
  }
  assert.equal((await system.client.request("GET", `${TIMED[1]}?interval=week`)).status, 400);
  const many = await system.client.request("GET", `${TIMED[1]}?interval=minute&from=2000-01-01`);
  assert.match(many.json.error, /intervals/);
});

test("buckets follow the range, and a range without figures is empty", async () => {
  for (const [from, to, minutes] of [
    ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00Z", 1],
    ["2020-01-01T00:00:00Z", "2020-01-01T06:00:00Z", 5],
    ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z", 15],
    ["2020-01-01T00:00:00Z", "2020-01-08T00:00:00Z", 60],
    ["2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z", 360],
  ] as const) {
    const answer = await get(`/api/v1/status?from=${from}&to=${to}`);
    assert.deepEqual(
      [answer.bucketMinutes, answer.pointCount, answer.throughput, answer.workers],
      [minutes, 0, [], []],
    );
    assert.deepEqual(answer.timeRange, { from: from.replace("Z", ".000Z"), to: to.replace("Z", ".000Z") });
  }
  const past = "from=2020-01-01&to=2020-01-02";
  assert.deepEqual(await get(`/api/v1/analytics/queue-lag?${past}`), []);
  assert.deepEqual((await get(`/api/v1/analytics/queue-ops?${past}`)).series, []);
  assert.deepEqual((await get(`/api/v1/analytics/system-metrics?${past}`)).replicas, []);
  assert.deepEqual((await get(`/api/v1/analytics/queue-parked-replicas?${past}`)).replicas, []);
  assert.deepEqual((await get(`/api/v1/status/analytics?${past}`)).dataPoints, []);
});

test("system metrics: a series for every worker, with the average, least, most and last of each figure", async () => {
  const { replicas, replicaCount, bucketMinutes } = await get("/api/v1/analytics/system-metrics");
  assert.equal(replicaCount, replicas.length);
  assert.equal(bucketMinutes, 1);
  const port = Number(new URL(system.broker.url).port);
  const own = replicas.filter((each: { port: number }) => each.port === port);
  assert.deepEqual(
    own.map((each: { workerId: string }) => each.workerId),
    ["0", "1"],
  );
  for (const { timeSeries } of own) {
    for (const { sampleCount, metrics } of timeSeries) {
      assert.ok(sampleCount > 0);
      const { rss_bytes: rss } = metrics.memory;
      assert.ok(rss.min > 1e6 && rss.min <= rss.avg && rss.avg <= rss.max && rss.last <= rss.max);
      assert.ok(metrics.database.pool_size.max >= 4);
    }
  }
  const { hostname } = own[0];
  const one = await get(`/api/v1/analytics/system-metrics?hostname=${hostname}&workerId=1`);
  assert.ok(one.replicas.length > 0);
  assert.ok(one.replicas.every((each: { workerId: string }) => each.workerId === "1"));
  assert.deepEqual((await get("/api/v1/analytics/system-metrics?hostname=nowhere")).replicas, []);
  assert.deepEqual((await get("/api/v1/analytics/worker-metrics?hostname=nowhere")).workers, []);
});

test("postgres-stats: figures of Queen's tables, without the extension for the buffer cache too", async () => {
  const stats = await get("/api/v1/analytics/postgres-stats");
  assert.deepEqual(stats.bufferUsage, []);
  const tables = stats.tableSizes.map((each: { table: string }) => each.table);
  assert.ok(tables.includes("segments") && tables.includes("partitions"));
  assert.ok(stats.tableSizes.every((each: Operations) => each.totalSizeBytes! >= each.tableSizeBytes!));
  assert.equal(typeof stats.databaseCache.cacheHitRatio, "number");
  assert.ok(stats.indexCache.some((each: { index: string }) => each.index === "partition_name_once"));
  assert.equal(stats.deadTuples.length, tables.length);
});

test("deleting partitions is counted, deleting the queue deletes its figures and disturbs nobody", async () => {
  const queue = newQueue("shrinking");
  await system.client.push([
    ...numbered(queue, 1, "a"),
    ...numbered(queue, 1, "b"),
    ...numbered(queue, 1, "c"),
  ]);
  await until("it was written", async () => (await operationsOf(queue)).pushMessages === 3);
  await system.database.query(
    `delete from queen.partitions p using queen.queues q where q.id = p.queue_id and q.name = $1 and p.name <> 'c'`,
    [queue],
  );
  const { partitionsDeleted, pushMessages } = await operationsOf(queue);
  assert.deepEqual([partitionsDeleted, pushMessages], [2, 3]);
  await system.client.push(numbered(queue, 1, "c", 5));
  await system.client.request("DELETE", `/api/v1/resources/queues/${queue}`);
  const elsewhere = newQueue();
  await system.client.push(numbered(elsewhere, 1));
  await until("others are written", async () => (await operationsOf(elsewhere)).pushMessages === 1);
  assert.deepEqual((await get(`/api/v1/analytics/queue-ops?queue=${queue}`)).series, []);
});

// ------------------------------------------------------------------------------------------------------------ quiet

test("an idle broker writes no figures", async () => {
  const quiet = await startSystem({ METRICS_AGGREGATE_INTERVAL_S: "1" });
  try {
    const queue = newQueue();
    await quiet.client.push(numbered(queue, 1));
    const { messages } = await quiet.client.pop(queue);
    await quiet.client.ackMessages(messages);
    const waiting = quiet.client.pop(queue, { wait: true, timeout: 60_000 });
    const rows = () =>
      quiet.database.query(
        `select xmin::text, minute, ack_success from queen.worker_minutes
         union all select xmin::text, minute, ack_success from queen.queue_minutes order by 1`,
      );
    await until("what it did is written", async () => (await rows()).some((row) => row.ack_success === 1));
    const before = await rows();
    await sleep(3_500); // three times its turn came
    assert.deepEqual(await rows(), before, "a pop that waits is nothing to write");
    await quiet.client.request("GET", "/metrics/prometheus");
    await sleep(1_500);
    assert.deepEqual(await rows(), before, "to be asked is nothing to write");
    await quiet.client.push(numbered(queue, 1, undefined, 1));
    assert.equal((await waiting).messages.length, 1);
    await until(
      "it is written again",
      async () => (await rows()).length >= 2 && (await rows())[0] !== before[0],
    );
  } finally {
    await quiet.stop();
  }
});

test("a broker that ends writes what it did last", async () => {
  const ending = await startSystem({ NUM_WORKERS: "2", METRICS_AGGREGATE_INTERVAL_S: "60" });
  try {
    await ending.client.push(numbered("q", 7));
    assert.equal(await ending.broker.stop(), 0);
    const [row] = await ending.database.query(
      "select sum(push_messages)::int4 as sum from queen.queue_minutes",
    );
    assert.equal(row!.sum, 7);
    const [total] = await ending.database.query(
      "select value from queen.metric_totals where name = 'push_messages'",
    );
    assert.equal(total!.value, 7);
  } finally {
    await ending.stop();
  }
});
