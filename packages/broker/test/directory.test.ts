/** What the directory knows of a queue is what was read last, whatever order answers would come in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Directory } from "../src/lanes/directory.ts";
import type { Pause } from "../src/lanes/pauses.ts";
import type { Session } from "../src/postgres/session.ts";
import { tryTakeTurn } from "../src/pushing/lane-turn.ts";

/** A database with one queue, whose reads are answered when the test says so, as it was when they began. */
class SlowDatabase {
  pauses: Pause[] = [];
  readonly reads: { answer: () => void; fail: () => void }[] = [];

  use = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    work({
      run: () => {
        const rows = [{ id: 1, name: "q", pauses: this.pauses }];
        return new Promise((resolve, reject) => {
          this.reads.push({ answer: () => resolve(rows), fail: () => reject(new Error("lost")) });
        });
      },
    } as unknown as Session);

  async next() {
    while (this.reads.length === 0) await turn();
    return this.reads.shift()!;
  }
}

const EVERYTHING: Pause = { lane: null, group: null };
const isPaused = async (directory: Directory): Promise<boolean> =>
  (await directory.queueById(1))!.pauses.stopGroup(7);

async function knowing(database: SlowDatabase): Promise<Directory> {
  const directory = new Directory(database.use, { lanesMax: 10, waitingFor: () => [] });
  const known = directory.queueById(1);
  (await database.next()).answer();
  await known;
  return directory;
}

test("of two refreshes at once, the one that was asked for later counts", async () => {
  const database = new SlowDatabase();
  const directory = await knowing(database);
  database.pauses = [EVERYTHING];
  const first = directory.refresh([1]);
  const slow = await database.next();
  database.pauses = [];
  const second = directory.refresh([1]);
  await turn();
  assert.equal(database.reads.length, 0, "it waits for its turn");
  slow.answer();
  await first;
  assert.equal(await isPaused(directory), true);
  (await database.next()).answer();
  await second;
  assert.equal(await isPaused(directory), false);
});

test("a queue that changes while it is read for the first time is read again", async () => {
  const database = new SlowDatabase();
  const directory = new Directory(database.use, { lanesMax: 10, waitingFor: () => [] });
  const met = directory.queueById(1);
  const slow = await database.next();
  database.pauses = [EVERYTHING];
  const refreshed = directory.refresh([1]);
  slow.answer();
  await met;
  (await database.next()).answer();
  await refreshed;
  assert.equal(await isPaused(directory), true);
});

test("a refresh that failed is made up for by the next one, whatever that is about", async () => {
  const database = new SlowDatabase();
  const directory = await knowing(database);
  database.pauses = [EVERYTHING];
  const lost = directory.refresh([1]);
  (await database.next()).fail();
  await assert.rejects(lost, /lost/);
  const next = directory.refresh([2]);
  (await database.next()).answer();
  await next;
  assert.equal(await isPaused(directory), true);
});

test("lanes that are too many are forgotten, the longest unused first, and whoever holds one is told", async () => {
  const directory = await knowing(new SlowDatabase());
  const told: string[] = [];
  directory.onLaneGone((lane) => told.push(lane.name));
  const meet = (id: number) => directory.meet(id, 1, `lane-${id}`, 0)!;
  const lanes = Array.from({ length: 10 }, (_, id) => meet(id));
  directory.lane("q", "lane-0"); // looked up by name
  directory.used(lanes[2]!);
  for (let id = 10; id < 13; id++) meet(id);
  assert.deepEqual(told, ["lane-1", "lane-3", "lane-4"]);
  const forgotten = lanes.filter((lane) => lane.gone).map((lane) => lane.name);
  assert.deepEqual(forgotten, told);
  assert.equal(directory.laneCount, 10);
  const again = directory.meet(1, 1, "lane-1", 7)!;
  assert.notEqual(again, lanes[1]);
  assert.equal(directory.lane("q", "lane-1"), again);
});

test("a lane that is appended to is not forgotten, nor the one that was just met", async () => {
  const directory = await knowing(new SlowDatabase());
  const meet = (id: number) => directory.meet(id, 1, `lane-${id}`, 0)!;
  const lanes = Array.from({ length: 10 }, (_, id) => meet(id));
  const ends = lanes.map((lane) => tryTakeTurn(lane)!);
  const eleventh = meet(10);
  assert.deepEqual(
    [...lanes, eleventh].filter((lane) => lane.gone),
    [],
  );
  ends[4]!();
  meet(11);
  assert.deepEqual(
    [...lanes, eleventh].filter((lane) => lane.gone).map((lane) => lane.name),
    ["lane-4", "lane-10"],
  );
  assert.equal(directory.laneCount, 10);
});
