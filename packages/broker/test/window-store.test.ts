/** The window store reads many lanes in one call, but not so many that the first wait for the last. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane } from "../src/lanes/lane.ts";
import type { Queue } from "../src/lanes/queue.ts";
import { WindowStore } from "../src/lanes/window-store.ts";
import { DedupWindow } from "../src/operations/dedup-window.ts";
import type { Session } from "../src/postgres/session.ts";
import { tryTakeTurn } from "../src/pushing/lane-turn.ts";

const DEDUP = { windowUs: 3_600_000_000, messagesMin: 1_000, messagesMax: 100_000 };
const queue = { options: { dedup: DEDUP } } as Queue;

/** Loads the windows of lanes with so many messages each, and returns how many lanes each call asked for. */
async function callsFor(messages: readonly number[]): Promise<number[]> {
  const calls: number[] = [];
  const run = async (_statement: unknown, [ids]: [number[]]) => {
    calls.push(ids.length);
    return ids.map((id, lane) => ({ lane, nextOffset: messages[id]!, keys: null, createdAtUs: null }));
  };
  const store = new WindowStore((work) => work({ run } as unknown as Session), 1_000_000);
  const lanes = messages.map((count, id) => new Lane(id, queue, `lane-${id}`, count));
  await Promise.all(lanes.map((lane) => store.load(lane)));
  for (const [id, lane] of lanes.entries()) assert.equal(lane.window?.completeTo, messages[id]);
  return calls;
}

test("lanes with few messages are read together", async () => {
  assert.deepEqual(await callsFor(Array.from({ length: 450 }, () => 100)), [200, 200, 50]);
});

test("lanes with many messages are read a few at a time, and one that has more than that by itself", async () => {
  assert.deepEqual(await callsFor([40_000, 40_000, 40_000, 5_000_000, 10, 10]), [2, 1, 1, 2]);
});

test("a lane that was empty when it was met is not read, unless its window proved untrue", async () => {
  assert.deepEqual(await callsFor([0, 0, 7]), [1]);
  const asked: number[][] = [];
  const run = async (_statement: unknown, [ids]: [number[]]) => {
    asked.push(ids);
    return [{ lane: 0, nextOffset: 5_000, keys: null, createdAtUs: null }];
  };
  const store = new WindowStore((work) => work({ run } as unknown as Session), 1_000_000);
  const lane = new Lane(1, queue, "lane", 0);
  await store.load(lane);
  assert.deepEqual([asked, lane.window?.completeTo], [[], 0]);
  store.drop(lane);
  await store.load(lane);
  assert.deepEqual([asked, lane.window?.completeTo], [[[1]], 5_000]);
});

test("what is too much is forgotten of the lane used longest ago, and read again; what is appended to keeps it", async () => {
  const asked: number[] = [];
  const run = async (_statement: unknown, [ids]: [number[]]) => {
    asked.push(...ids);
    return ids.map((_, lane) => ({ lane, nextOffset: 7, keys: null, createdAtUs: null }));
  };
  const one = new DedupWindow(DEDUP, 0).bytes;
  const store = new WindowStore((work) => work({ run } as unknown as Session), 3 * one);
  const lanes = Array.from({ length: 5 }, (_, id) => new Lane(id, queue, `lane-${id}`, 7));
  const held = () => lanes.filter((lane) => lane.window).map((lane) => lane.id);
  for (const lane of lanes.slice(0, 3)) await store.load(lane);
  store.grew(lanes[0]!, 7, 8);
  await store.load(lanes[3]!);
  assert.deepEqual(held(), [0, 2, 3]);
  const endTurn = tryTakeTurn(lanes[2]!)!;
  await store.load(lanes[4]!);
  assert.deepEqual(held(), [0, 2, 3, 4]);
  assert.equal(store.bytes, 3 * one);
  endTurn();
  store.grew(lanes[2]!, 7, 8); // counted again
  assert.deepEqual(held(), [2, 3, 4]);
  await store.load(lanes[0]!);
  assert.deepEqual(asked, [0, 1, 2, 3, 4, 0]);
  assert.deepEqual(held(), [0, 2, 4]);
  store.forget(lanes[2]!);
  assert.deepEqual([held(), store.bytes], [[0, 4], 2 * one]);
});
