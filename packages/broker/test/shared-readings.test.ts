import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedReadings } from "../src/control/shared-readings.ts";

/** Readings that are answered by hand, on a clock that is moved by hand. */
function readings() {
  const state = {
    nowMs: 1_000,
    calls: [] as string[],
    answer: (_value: number) => {},
    fail: (_: Error) => {},
  };
  const shared = new SharedReadings<string, number>(
    (key) => {
      state.calls.push(key);
      return new Promise((resolve, reject) => {
        state.answer = resolve;
        state.fail = reject;
      });
    },
    () => state.nowMs,
  );
  return { state, shared };
}

test("who asks while a reading is under way gets that one", async () => {
  const { state, shared } = readings();
  const both = Promise.all([shared.get("a"), shared.get("a")]);
  state.nowMs += 7;
  state.answer(5);
  assert.deepEqual(await both, [
    { value: 5, atMs: 1_007 },
    { value: 5, atMs: 1_007 },
  ]);
  assert.deepEqual(state.calls, ["a"]);
});

test("a reading is kept for ten times as long as it took, at most a second", async () => {
  for (const [tookMs, keptMs] of [
    [3, 30],
    [400, 1_000],
  ] as const) {
    const { state, shared } = readings();
    const first = shared.get("a");
    state.nowMs += tookMs;
    state.answer(1);
    await first;
    state.nowMs += keptMs - 1;
    assert.equal((await shared.get("a")).value, 1);
    assert.equal(state.calls.length, 1, `kept after ${tookMs} ms`);
    state.nowMs += 1;
    const second = shared.get("a");
    state.answer(2);
    assert.equal((await second).value, 2);
    assert.equal(state.calls.length, 2, `read again after ${tookMs} ms`);
  }
});

test("readings of different things are apart, and a refresh reads whatever is kept", async () => {
  const { state, shared } = readings();
  const first = shared.get("a");
  state.nowMs += 100;
  state.answer(1);
  await first;
  const other = shared.get("b");
  state.answer(2);
  await other;
  const fresh = shared.refresh("a");
  state.answer(3);
  assert.equal((await fresh).value, 3);
  assert.deepEqual(state.calls, ["a", "b", "a"]);
});

test("a reading that failed is not kept", async () => {
  const { state, shared } = readings();
  const failed = shared.get("a");
  state.fail(new Error("away"));
  await assert.rejects(failed, /away/);
  const again = shared.get("a");
  state.answer(1);
  assert.equal((await again).value, 1);
});
