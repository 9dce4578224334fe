/** Background sweeps of running brokers: rules of queues come true by themselves, once, however many sweep. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PushItem } from "../support/http.ts";
import { until } from "../support/moments.ts";
import {
  countMessages,
  expireLeases,
  ids,
  idsOf,
  newQueue,
  numbered,
  readCursors,
  type System,
  startSystem,
} from "../support/system.ts";

const SWEEPS_OFTEN = {
  RETENTION_INTERVAL: "100",
  RETENTION_BATCH_SIZE: "3",
  EVICTION_INTERVAL: "100",
  EVICTION_BATCH_SIZE: "3",
  QUEEN_LEASE_SWEEP_INTERVAL_MS: "100",
  PARTITION_CLEANUP_DAYS: "1",
};

/** Makes everything in a queue older. */
async function age(system: System, queue: string, seconds: number): Promise<void> {
  await system.database.query(
    `with lanes as (update queen.partitions p set last_at = last_at - $2 * interval '1 second'
                      from queen.queues q where q.id = p.queue_id and q.name = $1 returning p.id)
     update queen.segments s set created_at = created_at - $2 * interval '1 second' from lanes l
      where s.partition_id = l.id`,
    [queue, seconds],
  );
}

const removed = async (system: System, queue: string) =>
  (await system.client.request("GET", `/api/v1/analytics/retention?queue=${queue}`)).json;

describe("with short intervals", () => {
  let system: System;
  before(async () => {
    system = await startSystem(SWEEPS_OFTEN);
  });
  after(() => system.stop());

  test("old messages go by themselves, and the history tells how many", async () => {
    const { client, database } = system;
    const queue = newQueue();
    await client.configure(queue, { retentionEnabled: true, retentionSeconds: 600 });
    await client.push(numbered(queue, 5));
    await age(system, queue, 1000);
    await client.push(numbered(queue, 2, undefined, 5));
    await until("the old ones are gone", async () => (await countMessages(database, queue)) === 2);
    assert.deepEqual(idsOf((await client.pop(queue, { batch: 10 })).messages), ids(5, 7));
    const { timeRange, bucketMinutes, series, totals } = await until(
      "the history tells of them",
      async () => {
        const history = await removed(system, queue);
        return history.totals.totalMsgs === 5 && history;
      },
    );
    assert.equal(bucketMinutes, 1);
    assert.equal(Date.parse(timeRange.to) - Date.parse(timeRange.from), 3_600_000);
    const expected = { retentionMsgs: 5, completedRetentionMsgs: 0, evictionMsgs: 0, totalMsgs: 5 };
    assert.deepEqual({ ...totals, eventCount: 0 }, { ...expected, eventCount: 0 });
    assert.match(series[0].bucket, /^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    assert.equal(
      series.reduce((sum: number, each: { totalMsgs: number }) => sum + each.totalMsgs, 0),
      5,
    );
  });

  test("finished messages go when the last group has finished them", async () => {
    const { client, database } = system;
    const queue = newQueue();
    await client.configure(queue, { retentionEnabled: true, completedRetentionSeconds: 600 });
    await client.push(numbered(queue, 4));
    await client.pop(queue, { batch: 10, consumerGroup: "fast", autoAck: true });
    const { messages } = await client.pop(queue, { batch: 10, consumerGroup: "slow" });
    await age(system, queue, 1000);
    const passes = await passesOf("retention");
    await until("retention has passed twice", async () => (await passesOf("retention")) > passes + 2);
    assert.equal(await countMessages(database, queue), 4, "the slow group has not finished");
    await client.ackMessages(messages);
    await until("they are gone", async () => (await countMessages(database, queue)) === 0);
    await until(
      "the history tells of them",
      async () => (await removed(system, queue)).totals.completedRetentionMsgs === 4,
    );
  });

  test("a message that waits too long is a dead letter of its group, with the reason", async () => {
    const { client } = system;
    const queue = newQueue();
    await client.configure(queue, { maxWaitTimeSeconds: 600 });
    await client.push(numbered(queue, 7));
    const { messages } = await client.pop(queue, { batch: 2, consumerGroup: "billing" });
    await age(system, queue, 1000);
    const letters = await until("the letters are there", async () => {
      const answer = await client.request("GET", `/api/v1/dlq?queue=${queue}`);
      return answer.json.total === 5 && answer.json;
    });
    for (const letter of letters.messages) {
      assert.equal(letter.consumerGroup, "billing");
      assert.equal(letter.errorMessage, "waited longer than maxWaitTimeSeconds (600 s)");
    }
    assert.ok(
      (await client.ackMessages(messages)).every((each) => each.success),
      "what is held stays with its consumer",
    );
    const next = await client.pop(queue, { consumerGroup: "billing" });
    assert.equal(next.emptyReason, "no_available_partition");
    await until(
      "the history tells of them",
      async () => (await removed(system, queue)).totals.evictionMsgs === 5,
    );
  });

  test("a lease that ran out is ended, its message counted, and a parked pop gets it", async () => {
    const { client, database } = system;
    const queue = newQueue();
    await client.configure(queue, { retryLimit: 0 });
    await client.push(numbered(queue, 2));
    const [held] = (await client.pop(queue, { batch: 1 })).messages;
    await expireLeases(database, queue);
    await until("the lane is free", async () =>
      (await readCursors(database, queue)).every((each) => !each.leased),
    );
    const [refused] = await client.ackMessages([held!]);
    assert.deepEqual([refused!.success, refused!.error], [false, "Invalid or expired lease"]);

    const again = await client.pop(queue, { batch: 2 });
    assert.deepEqual(idsOf(again.messages), ["t0"], "its last chance, alone");
    const parked = client.pop(queue, { batch: 2, wait: true, timeout: 20_000 });
    await expireLeases(database, queue);
    assert.deepEqual(idsOf((await parked).messages), ["t1"], "the first one is a dead letter by then");
    const answer = await client.request("GET", `/api/v1/dlq?queue=${queue}`);
    assert.deepEqual(
      answer.json.messages.map((each: { errorMessage: string }) => each.errorMessage),
      ["lease expired"],
    );
  });

  test("an idle partition goes, and a push to it makes it anew", async () => {
    const { client, database } = system;
    const queue = newQueue();
    await client.configure(queue, { retentionEnabled: true, retentionSeconds: 600 });
    const [first] = await client.push(numbered(queue, 1, "lane"));
    await client.pop(queue, { partition: "lane" });
    await expireLeases(database, queue);
    await age(system, queue, 100_000);
    await database.query("update queen.partitions set created_at = created_at - interval '2 days'");
    const names = (): Promise<string[]> =>
      database
        .query(
          "select p.name from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1",
          [queue],
        )
        .then((rows) => rows.map((row) => row.name as string));
    await until("the partition is gone", async () => (await names()).join() === "Default");
    const [second] = await client.push(numbered(queue, 1, "lane", 1));
    assert.equal(second!.status, "queued");
    assert.notEqual(second!.partition_id, first!.partition_id);
    const { messages } = await client.pop(queue, { partition: "lane", batch: 5 });
    assert.deepEqual(idsOf(messages), ["t1"]);
  });

  test("a pop that is parked for a partition that goes gets what is pushed to the next one with its name", async () => {
    const { client, database } = system;
    const queue = newQueue();
    await client.configure(queue, { retentionEnabled: true, retentionSeconds: 600 });
    await client.push(numbered(queue, 1, "lane"));
    await client.pop(queue, { partition: "lane", autoAck: true });
    const parked = client.pop(queue, { partition: "lane", wait: true, timeout: 60_000 });
    await age(system, queue, 100_000);
    await database.query(
      `update queen.partition_consumers set last_consumed_at = last_consumed_at - interval '2 days'`,
    );
    await until("the partition is gone", async () => {
      const rows = await database.query(
        "select 1 from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 and p.name = 'lane'",
        [queue],
      );
      return rows.length === 0;
    });
    await client.push(numbered(queue, 1, "lane", 1));
    assert.deepEqual(idsOf((await parked).messages), ["t1"]);
  });

  test("sweeps tell what they do", async () => {
    const { sweeps } = (await system.client.request("GET", "/api/v1/system/sweeps")).json;
    assert.deepEqual(
      sweeps.map((each: { name: string }) => each.name),
      ["eviction", "lag", "leases", "metrics", "partitions", "retention"],
    );
    for (const each of sweeps) {
      assert.ok(
        each.passes > 0 && each.worker.includes("/") && Date.parse(each.finishedAt) > 0,
        JSON.stringify(each),
      );
    }
    assert.match(system.broker.output(), /"event":"sweep\.finished",.*"sweep":"retention"/);
  });

  test("a range without events is empty; a wrong range is refused", async () => {
    const { client } = system;
    const path = "/api/v1/analytics/retention";
    const { json } = await client.request("GET", `${path}?from=2020-01-01&to=2020-01-31T00:00:00Z`);
    assert.deepEqual([json.series, json.totals.totalMsgs, json.bucketMinutes], [[], 0, 360]);
    assert.deepEqual(json.timeRange, { from: "2020-01-01T00:00:00.000Z", to: "2020-01-31T00:00:00.000Z" });
    for (const [range, minutes] of [
      ["from=2020-01-01T00:00:00Z&to=2020-01-01T06:00:00Z", 5],
      ["from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z", 15],
      ["from=2020-01-01T00:00:00Z&to=2020-01-08T00:00:00Z", 60],
    ] as const) {
      assert.equal((await client.request("GET", `${path}?${range}`)).json.bucketMinutes, minutes, range);
    }
    assert.equal((await client.request("GET", `${path}?from=2020-02-01&to=2020-01-01`)).status, 400);
    assert.equal((await client.request("GET", `${path}?from=tomorrowish`)).status, 400);
    assert.deepEqual((await client.request("GET", `${path}?queue=none`)).json.series, []);
  });

  async function passesOf(name: string): Promise<number> {
    const [row] = await system.database.query("select passes from queen.sweeps where name = $1", [name]);
    return Number(row!.passes);
  }
});

test("two brokers that sweep at once do each thing once, and one that is killed is replaced", async () => {
  const system = await startSystem({ ...SWEEPS_OFTEN, EVICTION_BATCH_SIZE: "50", NUM_WORKERS: "2" });
  try {
    const { client, database } = system;
    const second = await system.another();
    const old = newQueue("old");
    const late = newQueue("late");
    await client.configure(old, { retentionEnabled: true, retentionSeconds: 600 });
    await client.configure(late, { maxWaitTimeSeconds: 600 });
    const lanes = 20;
    const items = (queue: string): PushItem[] =>
      Array.from({ length: lanes }, (_, lane) => numbered(queue, 10, `lane-${lane}`)).flat();
    for (const queue of [old, late]) {
      for (let batch = 0; batch < 3; batch++) {
        await client.push(
          items(queue).map((item) => ({ ...item, transactionId: `${item.transactionId}-${batch}` })),
        );
      }
    }
    await client.pop(late, { consumerGroup: "late", batch: 1, autoAck: true });
    await age(system, old, 1000);
    await age(system, late, 1000);
    await until("sweeping has begun", async () => (await removed(system, old)).totals.totalMsgs > 0);
    await second.broker.kill("SIGKILL");
    await until("everything old is gone", async () => (await countMessages(database, old)) === 0);
    const letters = async () => (await client.request("GET", `/api/v1/dlq?queue=${late}`)).json.total;
    await until("everything late is a letter", async () => (await letters()) === lanes * 30 - 1);
    const passes = await database.query("select sum(passes) as n from queen.sweeps");
    await until("the sweeps have come again", async () => {
      const now = await database.query("select sum(passes) as n from queen.sweeps");
      return Number(now[0]!.n) > Number(passes[0]!.n) + 10;
    });
    assert.equal((await removed(system, old)).totals.retentionMsgs, lanes * 30);
    assert.equal((await removed(system, late)).totals.evictionMsgs, lanes * 30 - 1);
    assert.equal(await countMessages(database, late), lanes * 30, "eviction deletes nothing");
  } finally {
    await system.stop();
  }
});

test("a broker that stops in the middle of a pass ends well, and the next one finishes it", async () => {
  const system = await startSystem({ RETENTION_BATCH_SIZE: "1", RETENTION_INTERVAL: "100" });
  try {
    const { client, database, broker } = system;
    const queue = newQueue();
    await client.configure(queue, { retentionEnabled: true, retentionSeconds: 600 });
    const items = Array.from({ length: 300 }, (_, lane) => numbered(queue, 1, `lane-${lane}`)).flat();
    await client.push(items);
    await age(system, queue, 1000);
    await until("the pass is under way", async () => (await countMessages(database, queue)) < 300);
    assert.equal(await broker.stop(), 0);
    assert.ok((await countMessages(database, queue)) > 0);
    await system.another({ RETENTION_BATCH_SIZE: "1000" });
    await until("the rest is gone", async () => (await countMessages(database, queue)) === 0);
    const [row] = await database.query("select sum(messages) as n from queen.retention_history");
    assert.equal(Number(row!.n), 300);
  } finally {
    await system.stop();
  }
});
