import assert from "node:assert/strict";
import { test } from "node:test";
import { Progress } from "../src/output/progress.ts";

test("a bar shows the share, the count and what is left; a line the same in words", () => {
  const progress = new Progress({ label: "push", unit: "messages", total: 10_000 });
  progress.to(5_200);
  assert.match(
    progress.bar(),
    /^push {2}█{12}▍ {11} {3}52 % {2}5,200 of 10,000 messages {2}[\d,]+\/s {2}.+ left$/,
  );
  assert.match(progress.plain(), /^push: 5,200 of 10,000 messages \(52 %\), [\d,]+\/s$/);
  progress.to(10_000);
  assert.match(progress.bar(), /^push {2}█{24} {2}100 % {2}10,000 of 10,000 messages {2}[\d,]+\/s$/);
});

test("without a total it counts, and time has no speed", () => {
  const counting = new Progress({ label: "push", unit: "messages" });
  counting.add(3);
  assert.match(counting.plain(), /^push: 3 messages, [\d,]+\/s$/);
  assert.match(counting.bar(), /^push {2}3 messages {2}[\d,]+\/s$/);
  const time = new Progress({ label: "bench", unit: "seconds", total: 4, isTime: true });
  time.to(1);
  assert.equal(time.plain(), "bench: 1 of 4 seconds (25 %)");
});

test("what was there before counts for the bar and not for the speed; nothing to do is all done", () => {
  const resumed = new Progress({ label: "adopt", unit: "messages", total: 100, from: 50 });
  assert.equal(resumed.plain(), "adopt: 50 of 100 messages (50 %), 0/s");
  assert.match(
    new Progress({ label: "requeue", unit: "letters", total: 0 }).plain(),
    /0 of 0 letters \(100 %\)/,
  );
});
