/** A gathering makes few calls of many, keeps one under way, and blames nobody for another's mistake. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Gathering, type GatheringOptions } from "../src/postgres/gathering.ts";

/** A gathering that answers with what it was asked for, when the test lets a call go. */
class Slow {
  readonly calls: string[] = [];
  readonly #open: { go: () => void; fail: (error: Error) => void }[] = [];
  readonly gathering: Gathering<string, string>;

  constructor(options: Partial<GatheringOptions<string, string>> = {}) {
    this.gathering = new Gathering<string, string>({
      call: async (asked) => {
        this.calls.push(asked.map(({ question }) => question).join(""));
        await new Promise<void>((go, fail) => this.#open.push({ go, fail }));
        for (const { question, resolve } of asked) resolve(question.toUpperCase());
      },
      atOnce: () => 3,
      ...options,
    });
  }

  ask(questions: string): Promise<PromiseSettledResult<string>[]> {
    return Promise.allSettled([...questions].map((question) => this.gathering.ask(question)));
  }

  async next(error?: Error): Promise<void> {
    while (this.#open.length === 0) await turn();
    const { go, fail } = this.#open.shift()!;
    if (error) fail(error);
    else go();
  }
}

const values = (results: readonly PromiseSettledResult<string>[]): string =>
  results.map((result) => (result.status === "fulfilled" ? result.value : "-")).join("");

test("what is asked for at once goes together, what comes meanwhile into the next call", async () => {
  const slow = new Slow();
  const first = slow.ask("ab");
  await turn();
  await turn();
  const second = slow.ask("cdef");
  await turn();
  assert.deepEqual(slow.calls, ["ab"], "one call is under way at a time");
  await slow.next();
  assert.equal(values(await first), "AB");
  await slow.next();
  await slow.next();
  assert.equal(values(await second), "CDEF");
  assert.deepEqual(slow.calls, ["ab", "cde", "f"]);
});

test("a call that fails is told to all who asked in it, and to nobody else", async () => {
  const slow = new Slow();
  const asked = slow.ask("abcd");
  await slow.next(new Error("lost"));
  await slow.next();
  assert.equal(values(await asked), "---D");
});

test("where one may be to blame, the others are asked for without it", async () => {
  const calls: string[] = [];
  const { gathering } = new Slow({
    call: async (asked) => {
      const together = asked.map(({ question }) => question).join("");
      calls.push(together);
      if (together.includes("x")) throw new Error("x is bad");
      for (const { question, resolve } of asked) resolve(question.toUpperCase());
    },
    atOnce: () => 8,
    isOnes: (error) => (error as Error).message === "x is bad",
  });
  const results = await Promise.allSettled([..."abcdexgh"].map((question) => gathering.ask(question)));
  assert.equal(values(results), "ABCDE-GH");
  assert.match(String((results[5] as PromiseRejectedResult).reason), /x is bad/);
  assert.deepEqual(calls.sort(), ["abcd", "abcdexgh", "e", "ex", "exgh", "gh", "x"]);
});
