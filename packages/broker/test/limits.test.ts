import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "../src/access/rate-limiter.ts";
import { Tally } from "../src/access/tally.ts";

test("a bucket gives its burst at once, then as fast as it fills, and says how long to wait", () => {
  const clock = { ms: 0 };
  const limiter = new RateLimiter({ perSecond: 10, burst: 3, now: () => clock.ms });
  assert.deepEqual([limiter.take("a"), limiter.take("a"), limiter.take("a")], [0, 0, 0]);
  assert.equal(limiter.take("a"), 100);
  assert.equal(limiter.take("b"), 0, "others have a bucket of their own");
  clock.ms = 50;
  assert.equal(limiter.take("a"), 50);
  clock.ms = 100;
  assert.equal(limiter.take("a"), 0);
  assert.equal(limiter.take("a"), 100);
  clock.ms = 60_000;
  assert.deepEqual(
    [1, 2, 3, 4].map(() => limiter.take("a") === 0),
    [true, true, true, false],
    "no more than the burst",
  );
});

test("a tally stops at its limit, for each key by itself, and forgets who has nothing", () => {
  const tally = new Tally(2);
  assert.deepEqual(
    [tally.enter("a"), tally.enter("a"), tally.enter("a"), tally.enter("b")],
    [true, true, false, true],
  );
  tally.leave("a");
  assert.equal(tally.enter("a"), true);
  tally.leave("a");
  tally.leave("a");
  tally.leave("b");
  assert.equal(tally.size, 0);
});

test("a tally without a limit counts nothing", () => {
  const tally = new Tally(0);
  for (let round = 0; round < 100; round += 1) assert.ok(tally.enter("a"));
  tally.leave("a");
  assert.equal(tally.size, 0);
});
