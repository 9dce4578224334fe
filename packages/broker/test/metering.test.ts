/** The meter, the minutes it is written in, and the text for Prometheus. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterFigures } from "../src/metering/cluster-families.ts";
import { Distribution } from "../src/metering/distribution.ts";
import { expose } from "../src/metering/exposition.ts";
import { QUEUE_COUNTERS, WORKER_COUNTERS, zeros } from "../src/metering/figures.ts";
import { GaugeSampler, type WorkerState } from "../src/metering/gauges.ts";
import { Meter } from "../src/metering/meter.ts";
import { type Minutes, MinuteWriter } from "../src/metering/minute-writer.ts";
import { queueSnapshots, type WorkerSnapshot } from "../src/metering/snapshot.ts";

const queue = (id: number) => ({ id, name: `q${id}` });
const lane = (id: number) => ({ queue: queue(id) });
const [a, b] = [lane(1), lane(2)];

test("a distribution counts each value in the bucket whose end it does not pass, as often as it is told", () => {
  const distribution = new Distribution([1, 10]);
  distribution.add(1);
  distribution.add(1.5, 3);
  distribution.add(100, 2);
  assert.deepEqual(distribution.figures(), { bounds: [1, 10], counts: [1, 3, 2], sum: 205.5 });
});

test("a push counts once for each of its queues, its messages where they are stored", () => {
  const meter = new Meter();
  meter.pushed([a, a, b, a, undefined, b]);
  meter.stored(a.queue, 100);
  assert.equal(meter.worker.push_requests, 1);
  assert.equal(meter.worker.push_messages, 100);
  assert.deepEqual(
    [...meter.queues.values()].map(({ counts }) => [counts.push_requests, counts.push_messages]),
    [
      [1, 100],
      [1, 0],
    ],
  );
});

test("a pop counts messages with their ages; finished at delivery, they are acknowledged too", () => {
  const meter = new Meter();
  const delivered = [
    { createdAtMs: 900, count: 2 },
    { createdAtMs: 1_100, count: 1 }, // by a clock that is ahead
  ];
  meter.popped(a.queue, 3, delivered, 1_000, false);
  meter.popped(a.queue, 3, delivered, 1_000, true);
  meter.poppedNothing(a.queue);
  meter.poppedNothing(undefined);
  const { counts, ageMsMax } = meter.queues.get(1)!;
  assert.deepEqual(
    [counts.pop_requests, counts.pop_messages, counts.pop_empty, counts.ack_success, counts.age_count],
    [3, 6, 1, 3, 6],
  );
  assert.deepEqual([counts.age_ms_sum, ageMsMax], [400, 100]);
  assert.deepEqual([meter.worker.pop_requests, meter.worker.pop_empty], [4, 2]);
});

test("acks are finished, failed or refused, or given back, and dead letters are counted with them", () => {
  const meter = new Meter();
  const ack = (status: "completed" | "failed" | "dlq" | "retry" | undefined, messages = 1) => ({
    status,
    messages,
  });
  meter.acked(
    [
      ack("completed"),
      ack("completed", 9),
      ack("failed"),
      ack("dlq"),
      ack("retry"),
      ack(undefined),
      ack("completed", 5),
    ],
    [
      { lane: a, success: true, dlq: false },
      { lane: a, success: true, dlq: false },
      { lane: b, success: true, dlq: false },
      { lane: a, success: true, dlq: true },
      { lane: a, success: true, dlq: false },
      { lane: undefined, success: false, dlq: false },
      { lane: b, success: false, dlq: false },
    ],
  );
  const of = (id: number) => {
    const { ack_requests, ack_success, ack_failed, dead_lettered } = meter.queues.get(id)!.counts;
    return [ack_requests, ack_success, ack_failed, dead_lettered];
  };
  assert.deepEqual(of(1), [1, 10, 1, 1]);
  assert.deepEqual(of(2), [1, 0, 6, 0]);
  const { ack_requests, ack_messages, ack_success, ack_failed, dead_lettered } = meter.worker;
  assert.deepEqual([ack_requests, ack_messages, ack_success, ack_failed, dead_lettered], [1, 19, 10, 8, 1]);
});

test("a transaction counts once for each queue that it pushed to or acked in", () => {
  const meter = new Meter();
  meter.transacted(
    [b.queue, b.queue, undefined],
    [{ status: "completed", messages: 1 }],
    [{ lane: a, success: true, dlq: false }],
  );
  assert.deepEqual(
    [...meter.queues.values()].map(({ name, counts }) => [name, counts.transactions, counts.ack_success]),
    [
      ["q1", 1, 1],
      ["q2", 1, 0],
    ],
  );
});

// ------------------------------------------------------------------------------------------------------ minutes

const STATE: WorkerState = {
  freeSlots: 3,
  operationsWaiting: 0,
  slots: 4,
  secondaryConnections: 1,
  secondaryWaiting: 0,
  poolSize: 5,
  poolIdle: 4,
  poolActive: 1,
  requestsActive: 0,
  busPeers: 0,
};

/** A writer with a clock that tests set, and whose database may be away. */
function newWriter() {
  const meter = new Meter();
  const gauges = new GaugeSampler(
    () => STATE,
    () => 0,
  );
  const world = {
    nowMs: 60_000,
    isAway: false,
    saved: [] as Minutes[],
    save: async () => world.nowMs,
    parked: new Map<number, number>(),
  };
  const writer = new MinuteWriter({
    meter,
    gauges,
    save: async (minutes) => {
      if (world.isAway) throw new Error("away");
      world.saved.push(structuredClone(minutes));
      return world.save();
    },
    readClock: async () => world.nowMs,
    parked: () => world.parked,
    wallMs: () => world.nowMs,
    sampleMs: 1_000,
    writeMs: 10_000,
    log: () => undefined,
  });
  gauges.stop();
  return { meter, writer, world };
}

const pick = (rows: Minutes["queues"], name: string) =>
  rows.map((row) => [row.minute, row.queue_id, row[name]].filter((value) => value !== undefined));

test("the database's clock is known by its answers, however long they take", async () => {
  const { meter, writer, world } = newWriter();
  const after = async (answer: () => Promise<number>): Promise<number> => {
    world.save = answer;
    meter.stored(a.queue, 1);
    await writer.flush();
    return writer.nowMs - world.nowMs;
  };
  const slow = async (aheadMs: number, takesMs: number): Promise<number> => {
    const clockMs = world.nowMs + aheadMs;
    world.nowMs += takesMs;
    return clockMs;
  };
  assert.equal(await after(() => slow(0, 3_000)), 0, "a slow answer makes no clock late");
  assert.equal(await after(() => slow(2_500, 3_000)), 0);
  assert.equal(await after(() => slow(10_000, 3_000)), 7_000);
  assert.equal(await after(() => slow(-5_000, 0)), -5_000);
  assert.equal(await after(() => slow(0, 0)), 0);
});

test("a minute is written when something was counted, as it stands by then, and not again while nothing is", async () => {
  const { meter, writer, world } = newWriter();
  await writer.flush();
  assert.equal(world.saved.length, 0, "nothing was counted");
  meter.pushed([a]);
  meter.stored(a.queue, 5);
  await writer.flush();
  await writer.flush();
  assert.equal(world.saved.length, 1);
  meter.stored(a.queue, 2);
  await writer.flush();
  assert.deepEqual(
    world.saved.map(({ queues }) => pick(queues, "push_messages")),
    [[["1970-01-01T00:01:00.000Z", 1, 5]], [["1970-01-01T00:01:00.000Z", 1, 7]]],
    "the whole minute, each time",
  );
});

test("what was counted before a minute's end is written for it, and the next one starts from there", async () => {
  const { meter, writer, world } = newWriter();
  meter.stored(a.queue, 5);
  await writer.flush();
  meter.stored(a.queue, 1);
  meter.popped(a.queue, 1, [{ createdAtMs: 0, count: 1 }], 50, false);
  world.nowMs = 120_000;
  await writer.flush();
  meter.stored(a.queue, 10);
  world.parked.set(1, 4);
  await writer.flush();
  const [, second, third] = world.saved;
  assert.deepEqual(pick(second!.queues, "push_messages"), [["1970-01-01T00:01:00.000Z", 1, 6]]);
  assert.equal(second!.queues[0]!.age_ms_max, 50);
  assert.deepEqual(pick(third!.queues, "push_messages"), [["1970-01-01T00:02:00.000Z", 1, 10]]);
  assert.deepEqual([third!.queues[0]!.age_ms_max, third!.queues[0]!.parked], [0, 4]);
  assert.deepEqual(pick(third!.workers, "push_messages"), [["1970-01-01T00:02:00.000Z", 10]]);
});

test("while the database is away minutes are kept, an hour of them, and written when it is back", async () => {
  const { meter, writer, world } = newWriter();
  world.isAway = true;
  for (let minute = 1; minute <= 70; minute++) {
    world.nowMs = minute * 60_000;
    await writer.flush();
    meter.stored(a.queue, 1);
    await writer.flush();
  }
  world.isAway = false;
  await writer.flush();
  assert.equal(world.saved.length, 1);
  const minutes = world.saved[0]!.workers.map((row) => row.minute);
  assert.equal(minutes.length, 61, "an hour and the minute that is going on");
  assert.equal(minutes.at(-1), "1970-01-01T01:10:00.000Z");
});

test("a queue that is idle for ten minutes, or deleted, is forgotten", async () => {
  const { meter, writer, world } = newWriter();
  meter.stored(a.queue, 1);
  meter.stored(b.queue, 1);
  meter.queueGone(2);
  for (let minute = 2; minute <= 12; minute++) {
    world.nowMs = minute * 60_000;
    await writer.flush();
    assert.deepEqual([...meter.queues.keys()], [1]);
  }
  assert.equal(world.saved[0]!.queues.length, 2, "not before its figures are written");
  for (let minute = 13; minute <= 14; minute++) {
    world.nowMs = minute * 60_000;
    await writer.flush();
  }
  assert.deepEqual([...meter.queues.keys()], []);
  assert.equal(world.saved.length, 1);
});

// --------------------------------------------------------------------------------------------------- exposition

const NO_VALUES = new Distribution([1]).figures();
const NO_OPERATION = { requests: 0, duration: NO_VALUES, database: NO_VALUES };

const worker = (id: number, queues: WorkerSnapshot["queues"] = []): WorkerSnapshot => ({
  ...STATE,
  workerId: id,
  uptimeSeconds: 10 + id,
  cpuUserUs: 1,
  cpuSystemUs: 1,
  rssBytes: 1,
  heapBytes: 1,
  virtualBytes: 1,
  popsParked: 0,
  spoolPending: 3,
  spoolRejected: 1,
  isDatabaseHealthy: id === 0,
  isPushMaintenance: true,
  isPopMaintenance: false,
  loopLagMsAverage: 0,
  loopLagMsMax: 0,
  counts: zeros(WORKER_COUNTERS),
  operations: {
    push: NO_OPERATION,
    pop: NO_OPERATION,
    ack: NO_OPERATION,
    transaction: NO_OPERATION,
    renew_lease: NO_OPERATION,
  },
  ages: NO_VALUES,
  queues,
});

const snapshotOf = (name: string, pushed: number) => ({
  name,
  counts: { ...zeros(QUEUE_COUNTERS), push_messages: pushed },
  parked: 1,
});

const linesOf = (text: string, name: string): string[] =>
  text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

test("workers are summed up, the busiest queues are named, and the others are one", async () => {
  const workers = [
    worker(0, [snapshotOf("big", 10), snapshotOf("small", 1), snapshotOf("tiny", 1)]),
    worker(1, [snapshotOf("big", 5), snapshotOf('mid"\n', 7), snapshotOf("tiny", 1)]),
  ];
  const text = await expose({ workers, silentWorkers: 1, cluster: undefined }, 2);
  assert.deepEqual(linesOf(text, "queen_queue_push_messages_total"), [
    'queen_queue_push_messages_total{queue="big"} 15',
    'queen_queue_push_messages_total{queue="other"} 3',
    'queen_queue_push_messages_total{queue="mid\\"\\n"} 7',
  ]);
  assert.deepEqual(
    linesOf(text, "queen_queue_parked_consumers").at(0),
    'queen_queue_parked_consumers{queue="big"} 2',
  );
  assert.deepEqual(linesOf(text, "queen_uptime_seconds"), ["queen_uptime_seconds 11"]);
  assert.deepEqual(linesOf(text, "queen_workers"), [
    'queen_workers{state="answered"} 2',
    'queen_workers{state="silent"} 1',
  ]);
  assert.equal(linesOf(text, "queen_db_pool_size")[0], "queen_db_pool_size 10");
  // What the workers share does not add up, and a database that one of them cannot use is not healthy.
  for (const [name, value] of [
    ["queen_file_buffer_pending", 3],
    ["queen_file_buffer_failed", 1],
    ["queen_file_buffer_db_healthy", 0],
    ["queen_maintenance_mode_enabled", 1],
    ["queen_pop_maintenance_mode_enabled", 0],
  ] as const)
    assert.deepEqual(linesOf(text, name), [`${name} ${value}`]);
  assert.equal(linesOf(text, "queen_cluster_figures_available")[0], "queen_cluster_figures_available 0");
  assert.ok(!text.includes("queen_queue_depth"), "what the database did not tell is left out");
});

test("groups that are furthest behind are named; of the others the sum and the longest wait are told", async () => {
  const cluster: ClusterFigures = {
    totals: {},
    queues: [{ name: "q", total: 9, unfinished: 8, dead: 2 }],
    groups: [
      { queue: "q", group: "far", messages: 8, seconds: 3 },
      { queue: "q", group: "near", messages: 2, seconds: 7 },
      { queue: "q", group: "nearer", messages: 1, seconds: 5 },
    ],
    recentQueues: [],
    recentWorkers: [],
  };
  const text = await expose({ workers: [worker(0)], silentWorkers: 0, cluster }, 1);
  assert.deepEqual(linesOf(text, "queen_queue_lag_messages"), [
    'queen_queue_lag_messages{queue="q",consumer_group="far"} 8',
    'queen_queue_lag_messages{queue="other",consumer_group="other"} 3',
  ]);
  assert.deepEqual(linesOf(text, "queen_queue_lag_seconds"), [
    'queen_queue_lag_seconds{queue="q",consumer_group="far"} 3',
    'queen_queue_lag_seconds{queue="other",consumer_group="other"} 7',
  ]);
  assert.deepEqual(linesOf(text, "queen_dlq_depth_by_queue"), ['queen_dlq_depth_by_queue{queue="q"} 2']);
});

test("a worker tells of its busiest queues by name, and of the others together", () => {
  const meter = new Meter();
  for (let id = 1; id <= 5; id++) meter.stored(queue(id), id);
  const snapshots = queueSnapshots(meter, new Map([[1, 3]]), 2, "other");
  assert.deepEqual(
    snapshots.map(({ name, counts, parked }) => [name, counts.push_messages, parked]),
    [
      ["q5", 5, 0],
      ["q4", 4, 0],
      ["other", 6, 3],
    ],
  );
});
