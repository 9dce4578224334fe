/** Each lane has one home among the workers that read, and all of them agree on it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Peers } from "../src/cluster/peers.ts";

const LANES = Array.from({ length: 3_000 }, (_, index) => index + 1);
const IDS = ["2f1c6a52", "90b3de11", "c7745e0d"];

/** Workers that have heard of each other. */
function acquainted(ids: readonly string[], now = () => 0): Map<string, Peers> {
  const workers = new Map(ids.map((id) => [id, new Peers(id, now)]));
  for (const [id, peers] of workers) for (const other of ids) if (other !== id) peers.heard(other, true);
  return workers;
}

const homesOf = (workers: Map<string, Peers>, lane: number): string[] =>
  [...workers].filter(([, peers]) => peers.isHome(lane)).map(([id]) => id);

test("a worker alone is at home in every lane", () => {
  const alone = new Peers("2f1c6a52", () => 0);
  assert.ok(LANES.every((lane) => alone.isHome(lane)));
  assert.equal(alone.isEmpty, true);
});

test("of three workers each lane has one home, and none has twice as many as another", () => {
  const workers = acquainted(IDS);
  const counts = new Map(IDS.map((id) => [id, 0]));
  for (const lane of LANES) {
    const homes = homesOf(workers, lane);
    assert.equal(homes.length, 1, `lane ${lane}`);
    counts.set(homes[0]!, counts.get(homes[0]!)! + 1);
  }
  assert.ok(Math.max(...counts.values()) < 2 * Math.min(...counts.values()), [...counts.values()].join());
});

test("where a worker comes, lanes move to it and to nobody else", () => {
  const before = acquainted(IDS.slice(0, 2));
  const after = acquainted(IDS);
  for (const lane of LANES) {
    const [home] = homesOf(after, lane);
    if (home !== IDS[2]) assert.deepEqual(homesOf(before, lane), [home], `lane ${lane}`);
  }
});

test("a worker where nobody reads is no lane's home, until somebody does", () => {
  const peers = new Peers("2f1c6a52", () => 0);
  const isHomeOfAll = (): boolean => LANES.every((lane) => peers.isHome(lane));
  peers.heard("90b3de11", false);
  assert.equal(isHomeOfAll(), true);
  assert.equal(peers.isEmpty, false);
  peers.heard("90b3de11", undefined);
  assert.equal(isHomeOfAll(), true, "nothing was said about it");
  peers.heard("90b3de11", true);
  assert.equal(isHomeOfAll(), false);
  peers.heard("90b3de11", undefined);
  assert.equal(isHomeOfAll(), false);
});

test("a worker that never says whether somebody reads there may be any lane's home", () => {
  const peers = new Peers("2f1c6a52", () => 0);
  peers.heard("90b3de11", undefined);
  assert.ok(LANES.some((lane) => !peers.isHome(lane)));
});

test("the lanes of a worker that is not heard any more are at home elsewhere", () => {
  let nowMs = 1;
  const peers = new Peers("2f1c6a52", () => nowMs);
  peers.heard("90b3de11", true);
  nowMs += 10_000;
  peers.dropSilent();
  assert.equal(peers.isEmpty, false);
  nowMs += 10_000;
  peers.dropSilent();
  assert.deepEqual([peers.count, peers.lostCount], [0, 1]);
  assert.ok(LANES.every((lane) => peers.isHome(lane)));
});
