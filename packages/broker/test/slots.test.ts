import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { Session } from "../src/postgres/session.ts";
import { Slots } from "../src/postgres/slots.ts";

test("while nothing can be reached, one of the connections goes on trying after short pauses", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const attemptsAtMs: number[] = [];
    let nowMs = 0;
    const slots = new Slots({
      count: 3,
      connect: (): Promise<Session> => {
        attemptsAtMs.push(nowMs);
        return Promise.reject(new Error("refused"));
      },
      patienceMs: 1_000,
      log: () => undefined,
    });
    slots.start();
    for (; nowMs < 20_000; nowMs += 10) {
      await Promise.resolve();
      await Promise.resolve();
      mock.timers.tick(10);
    }
    const late = attemptsAtMs.filter((atMs) => atMs > 10_000);
    const pausesMs = late.slice(1).map((atMs, index) => atMs - late[index]!);
    assert.ok(Math.max(...pausesMs) <= 250, `the longest pause was ${Math.max(...pausesMs)} ms`);
    assert.ok(late.length < 100, `${late.length} attempts in ten seconds: the others wait longer`);
    await slots.stop();
  } finally {
    mock.timers.reset();
  }
});
