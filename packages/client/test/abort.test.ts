/** An abort does what an AbortController does, also for a signal that is asked for later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Abort } from "../src/transport/abort.ts";
import { pause } from "../src/transport/pause.ts";

const reason = new Error("enough");

test("the signal is aborted with the first reason, asked for before or after", () => {
  const [early, late] = [new Abort(), new Abort()];
  const { signal } = early;
  for (const abort of [early, late]) {
    abort.abort(reason);
    abort.abort(new Error("again"));
  }
  assert.deepEqual([signal.aborted, signal.reason], [true, reason]);
  assert.equal(early.signal, signal);
  assert.deepEqual([late.signal.aborted, late.signal.reason], [true, reason]);
  assert.throws(() => late.throwIfAborted(), reason);
});

test("whoever listens is told once, at once if it is too late; whoever stopped listening is not", () => {
  const abort = new Abort();
  const told: string[] = [];
  abort.listen(() => told.push("first"));
  abort.listen(undefined);
  abort.abort(reason);
  abort.listen(() => told.push("late"));
  abort.abort(reason);
  assert.deepEqual(told, ["late"]);
});

test("it follows signals until it is unlinked", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const [follower, former] = [new Abort(), new Abort()];
  follower.follow([one.signal, other.signal]);
  former.follow([one.signal, other.signal])();
  other.abort(reason);
  one.abort(new Error("later"));
  assert.equal(follower.reason, reason);
  assert.equal(former.isAborted, false);
  const late = new Abort();
  late.follow([other.signal]);
  assert.equal(late.reason, reason);
});

test("a pause ends with the first signal that is aborted, before it begins, too", async () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const waiting = pause(3_600_000, one.signal, other.signal);
  other.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(pause(3_600_000, one.signal, other.signal), reason);
  await pause(0, one.signal);
});
