import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { staggered } from "../src/postgres/staggered.ts";

const options = { headStartMs: 5, discard: () => undefined };
const never = (): Promise<string> => new Promise(() => undefined);

test("where the first one answers, no other is asked", async () => {
  let asked = 0;
  const second = async (): Promise<string> => {
    asked++;
    return "second";
  };
  assert.equal(await staggered([async () => "first", second], options), "first");
  await new Promise((resolve) => setTimeout(resolve, 4 * options.headStartMs));
  assert.equal(asked, 0);
});

test("one that does not answer delays the next by its head start only", async () => {
  assert.equal(await staggered([never, never, async () => "third"], options), "third");
});

test("one that fails has the next asked at once", async () => {
  const fail = (): Promise<string> => Promise.reject(new Error("refused"));
  assert.equal(await staggered([fail, async () => "second"], { ...options, headStartMs: 60_000 }), "second");
});

test("what comes after the first result is discarded", async () => {
  const discarded: string[] = [];
  let answerFirst = (_: string): void => undefined;
  const first = (): Promise<string> =>
    new Promise((resolve) => {
      answerFirst = resolve;
    });
  const result = await staggered([first, async () => "second"], {
    ...options,
    discard: (late) => discarded.push(late),
  });
  answerFirst("first");
  await nextTurn();
  assert.deepEqual([result, discarded], ["second", ["first"]]);
});

test("where all fail, all reasons are told", async () => {
  const fail = (reason: string) => () => Promise.reject(new Error(reason));
  await assert.rejects(staggered([fail("one"), fail("two")], options), (error: AggregateError) => {
    assert.deepEqual(
      error.errors.map(({ message }) => message),
      ["one", "two"],
    );
    return true;
  });
});
