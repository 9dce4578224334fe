/** A look that could not be used to the end counts as none: the next one begins anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Directory } from "../src/lanes/directory.ts";
import { HintReader } from "../src/popping/hint-reader.ts";
import type { Popper } from "../src/popping/popper.ts";
import type { Session } from "../src/postgres/session.ts";

const NOTHING = {
  snapshot: null,
  queueId: null,
  partitionId: null,
  name: null,
  nextOffset: null,
  appended: null,
};

function reader(stateChanged: () => Promise<void>, refresh: () => Promise<void> = async () => undefined) {
  const asked: unknown[] = [];
  let rows: object[] = [];
  let forgotten = 0;
  const hints = new HintReader(
    {
      directory: { forgetAll: () => forgotten++, refresh, meet: () => undefined } as unknown as Directory,
      use: (work) =>
        work({
          run: async (_statement: unknown, [snapshot]: unknown[]) => {
            asked.push(snapshot);
            return [{ ...NOTHING, snapshot: `s${asked.length}` }, ...rows];
          },
        } as unknown as Session),
      rewritten: () => undefined,
      stateChanged,
      intervalMs: 1000,
      now: () => 0,
      log: () => undefined,
    },
    () =>
      ({
        queueIds: [],
        forgetAll: () => undefined,
        hintAll: () => undefined,
        queuesChanged: () => undefined,
      }) as unknown as Popper,
  );
  return {
    hints,
    asked,
    forgotten: () => forgotten,
    answerWith: (next: object[]) => {
      rows = next;
    },
  };
}

test("the first look and a row of nothing but nulls have the state read", async () => {
  let reads = 0;
  const { hints, asked, answerWith } = reader(async () => {
    reads++;
  });
  await hints.look();
  assert.equal(reads, 1);
  await hints.look();
  assert.equal(reads, 1, "nothing was switched");
  answerWith([NOTHING]);
  await hints.look();
  assert.equal(reads, 2);
  assert.deepEqual(asked, [null, "s1", "s2"]);
});

test("if the state cannot be read, what was seen does not count, and the next look asks for the same again", async () => {
  let fails = false;
  const { hints, asked, answerWith, forgotten } = reader(async () => {
    if (fails) throw new Error("lost");
  });
  await hints.look();
  assert.deepEqual([hints.hasLooked, hints.isCurrent], [true, true]);
  answerWith([NOTHING]);
  fails = true;
  await assert.rejects(hints.look(), /lost/);
  fails = false;
  await hints.look();
  assert.deepEqual([asked, forgotten(), hints.hasLooked], [[null, "s1", "s1"], 1, true]);
});

test("if a queue that the bus told of cannot be read, the next look reads everything", async () => {
  const { hints } = reader(
    async () => undefined,
    () => Promise.reject(new Error("lost")),
  );
  await hints.look();
  await assert.rejects(hints.queuesChanged([1]), /lost/);
  assert.equal(hints.hasLooked, false);
});
