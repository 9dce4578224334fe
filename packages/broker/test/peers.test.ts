/** Each lane has one home among the workers that read for a group, and all of them agree on it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Peers } from "../src/cluster/peers.ts";

const LANES = Array.from({ length: 3_000 }, (_, index) => index + 1);
const IDS = ["2f1c6a52", "90b3de11", "c7745e0d"];
const GROUP = 7;
const OTHER_GROUP = 8;

/** Workers that have heard of each other. */
function acquainted(ids: readonly string[], now = () => 0): Map<string, Peers> {
  const workers = new Map(ids.map((id) => [id, new Peers(id, now)]));
  for (const [id, peers] of workers) for (const other of ids) if (other !== id) peers.heard(other, [GROUP]);
  return workers;
}

const homesOf = (workers: Map<string, Peers>, lane: number): string[] =>
  [...workers].filter(([, peers]) => peers.isHome(lane, GROUP)).map(([id]) => id);

test("a worker alone is at home in every lane", () => {
  const alone = new Peers("2f1c6a52", () => 0);
  assert.ok(LANES.every((lane) => alone.isHome(lane, GROUP)));
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

test("a worker is no home for a group that does not read there, until it does", () => {
  const peers = new Peers("2f1c6a52", () => 0);
  const isHomeOfAll = (group: number): boolean => LANES.every((lane) => peers.isHome(lane, group));
  const said: [readonly number[] | undefined, boolean][] = [
    [undefined, true],
    [[], true],
    [[OTHER_GROUP], true],
    [undefined, true],
    [[OTHER_GROUP, GROUP], false],
    [undefined, false],
    [[OTHER_GROUP], true],
  ];
  for (const [groups, expected] of said) {
    peers.heard("90b3de11", groups);
    assert.equal(isHomeOfAll(GROUP), expected, `${groups}`);
  }
  assert.equal(isHomeOfAll(OTHER_GROUP), false);
  assert.equal(peers.isEmpty, false);
});

test("the lanes of a worker that is not heard any more are at home elsewhere", () => {
  let nowMs = 1;
  const peers = new Peers("2f1c6a52", () => nowMs);
  peers.heard("90b3de11", [GROUP]);
  nowMs += 10_000;
  peers.dropSilent();
  assert.equal(peers.isEmpty, false);
  nowMs += 10_000;
  peers.dropSilent();
  assert.deepEqual([peers.count, peers.lostCount], [0, 1]);
  assert.ok(LANES.every((lane) => peers.isHome(lane, GROUP)));
});
