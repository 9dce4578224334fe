import assert from "node:assert/strict";
import { test } from "node:test";
import { Throughput } from "../src/control/throughput.ts";
import type { QueueFiguresRow } from "../src/postgres/statements.ts";

test("throughput is what came and was finished between two readings, per second", async () => {
  let atMs = 0;
  let queues: [appended: number, finished: number][] = [
    [100, 50],
    [10, 0],
  ];
  const throughput = new Throughput(async () => ({
    atMs,
    value: queues.map(([appended, finished]) => ({ appended, finished }) as QueueFiguresRow),
  }));
  const at = async (ms: number, sums: typeof queues) => {
    atMs = ms;
    queues = sums;
    const { ingestedPerSecond, processedPerSecond } = await throughput.perSecond();
    return [ingestedPerSecond, processedPerSecond];
  };
  assert.deepEqual(await at(0, queues), [0, 0], "nothing to compare with");
  assert.deepEqual(
    await at(2_000, [
      [120, 80],
      [20, 10],
    ]),
    [15, 20],
  );
  assert.deepEqual(
    await at(2_100, [
      [141, 80],
      [20, 10],
    ]),
    [24.29, 19.05],
    "a reading soon after goes on from the same one",
  );
  assert.deepEqual(
    await at(4_000, [[20, 10]]),
    [0, 0],
    "a queue that was deleted takes its messages away, and nothing is negative",
  );
});
