/** What was delivered is remembered within a number of bytes: the oldest is forgotten first, and read again by who needs it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane } from "../src/lanes/lane.ts";
import type { Queue } from "../src/lanes/queue.ts";
import { Delivered, DeliveredLeases } from "../src/settling/delivered.ts";

const delivered = (token: number, lane: number): Delivered =>
  new Delivered({
    token,
    lane: new Lane(lane, {} as Queue, `lane-${lane}`, 1),
    groupId: 1,
    groupName: "group",
    from: 0,
    to: 1,
    segments: [],
    servedHere: true,
  });
const ONE = delivered(0, 0).bytes;

test("the oldest goes first, of a lease of several lanes as well, but nothing of the newest", () => {
  const leases = new DeliveredLeases(3 * ONE);
  const knows = (...names: [number, number][]): boolean[] =>
    names.map(([token, lane]) => leases.find(token, lane) !== undefined);
  for (const [token, lane] of [
    [1, 10],
    [1, 11],
    [2, 10],
    [3, 10],
  ] as const)
    leases.add(delivered(token, lane));
  assert.deepEqual(knows([1, 10], [1, 11], [2, 10], [3, 10]), [false, true, true, true]);
  assert.deepEqual([leases.count, leases.bytes], [3, 3 * ONE]);
  leases.remove(leases.find(2, 10)!);
  for (const lane of [10, 11, 12, 13]) leases.add(delivered(4, lane));
  assert.deepEqual(knows([1, 11], [3, 10]), [false, false]);
  assert.deepEqual(knows([4, 10], [4, 11], [4, 12], [4, 13]), [true, true, true, true]);
  assert.deepEqual([leases.count, leases.bytes], [1, 4 * ONE]);
  leases.add(delivered(5, 10));
  assert.deepEqual(knows([4, 10], [4, 11], [4, 12], [4, 13], [5, 10]), [false, false, true, true, true]);
});

test("what is removed twice, or was forgotten before, is counted once", () => {
  const leases = new DeliveredLeases(ONE);
  const first = delivered(1, 10);
  leases.add(first);
  leases.add(delivered(2, 10));
  leases.remove(first);
  assert.deepEqual([leases.count, leases.bytes], [1, ONE]);
});
