import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { BrokerError } from "@queen/protocol";
import fc from "fast-check";
import { decideBatch } from "../src/batching/batch-policy.ts";
import { Batcher, type BatchKind, type BatchLimits } from "../src/batching/batcher.ts";
import { OperationQueue } from "../src/batching/operation-queue.ts";
import { ConnectionLostError, PostgresError } from "../src/postgres/errors.ts";
import type { Session } from "../src/postgres/session.ts";
import type { Slots } from "../src/postgres/slots.ts";

const UNLIMITED: BatchLimits = { operationsMax: 1_000, weightMax: Infinity, waitingMax: 1_000, holdMs: 0 };

const refusal = (sqlstate: string): PostgresError =>
  new PostgresError({ sqlstate, severity: "ERROR", message: `refused with ${sqlstate}` });

/** Slots without a database: a number of sessions that can be lost. */
class FakeSlots {
  unavailable: BrokerError | undefined;
  readonly #idle: { closed: boolean }[] = [];
  readonly #listeners: (() => void)[] = [];
  busy = 0;

  constructor(count: number) {
    for (let slot = 0; slot < count; slot++) this.#idle.push({ closed: false });
  }

  get free(): number {
    return this.#idle.length;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  take(): { closed: boolean } | undefined {
    const session = this.#idle.pop();
    if (session) this.busy++;
    return session;
  }

  give(session: { closed: boolean }): void {
    this.busy--;
    this.#idle.push(session.closed ? { closed: false } : session); // a lost connection is made again
    this.changed();
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

interface Rig {
  readonly batcher: Batcher<string, string>;
  readonly slots: FakeSlots;
  /** What each call had in it, in the order of the calls. */
  readonly calls: string[][];
}

function rig(
  run: (session: { closed: boolean }, operations: readonly string[]) => Promise<void> | void,
  options: {
    slots?: number;
    limits?: Partial<BatchLimits>;
    kind?: Partial<BatchKind<string, string>>;
    now?: () => number;
  } = {},
): Rig {
  const slots = new FakeSlots(options.slots ?? 1);
  const calls: string[][] = [];
  const kind: BatchKind<string, string> = {
    name: "test",
    repeatable: false,
    weight: () => 1,
    async run(session: Session, operations: readonly string[]) {
      calls.push([...operations]);
      await run(session as unknown as { closed: boolean }, operations);
      return operations.map((operation) => `done ${operation}`);
    },
    ...options.kind,
  };
  const limits = { ...UNLIMITED, ...options.limits };
  const batcher = new Batcher(
    kind,
    slots as unknown as Slots,
    limits,
    options.now ?? (() => performance.now()),
  );
  return { batcher, slots, calls };
}

const submitAll = (batcher: Batcher<string, string>, operations: readonly string[]) =>
  Promise.allSettled(operations.map((operation) => batcher.submit(operation)));

/** «ok», or the code or message of what it failed with. */
const outcomes = (results: readonly PromiseSettledResult<string>[]): string[] =>
  results.map((result) =>
    result.status === "fulfilled" ? result.value : (result.reason.sqlstate ?? result.reason.code ?? "error"),
  );

describe("the batch policy", () => {
  const limits = { sizeMax: 10, holdMs: 5 };

  test("waits for ever while there is nothing to send or nobody to send it", () => {
    assert.deepEqual(decideBatch({ queued: 0, oldestAgeMs: 99, freeSlots: 3, underWay: 0 }, limits), {
      waitMs: Infinity,
    });
    assert.deepEqual(decideBatch({ queued: 99, oldestAgeMs: 99, freeSlots: 0, underWay: 0 }, limits), {
      waitMs: Infinity,
    });
  });

  test("sends what is full or has been held long enough", () => {
    assert.equal(decideBatch({ queued: 10, oldestAgeMs: 0, freeSlots: 1, underWay: 0 }, limits), "flush");
    assert.equal(decideBatch({ queued: 1, oldestAgeMs: 5, freeSlots: 1, underWay: 0 }, limits), "flush");
    assert.equal(
      decideBatch({ queued: 1, oldestAgeMs: 0, freeSlots: 1, underWay: 0 }, { sizeMax: 10, holdMs: 0 }),
      "flush",
    );
  });

  test("beside calls under way waits for twice as many, but not long", () => {
    const none = { sizeMax: 100, holdMs: 0 };
    const view = { oldestAgeMs: 1, freeSlots: 1, underWay: 20 };
    assert.deepEqual(decideBatch({ ...view, queued: 39 }, none), { waitMs: 4 });
    assert.equal(decideBatch({ ...view, queued: 40 }, none), "flush");
    assert.equal(decideBatch({ ...view, queued: 39, oldestAgeMs: 5 }, none), "flush");
    assert.equal(decideBatch({ ...view, queued: 1, underWay: 0 }, none), "flush");
    assert.equal(decideBatch({ ...view, queued: 39 }, { sizeMax: 30, holdMs: 0 }), "flush", "it is full");
  });

  test("holds the rest for the time that is left", () => {
    assert.deepEqual(decideBatch({ queued: 9, oldestAgeMs: 2, freeSlots: 1, underWay: 0 }, limits), {
      waitMs: 3,
    });
  });
});

test("beside a call under way a smaller batch waits for its end, though a slot is free", async () => {
  const ends: (() => void)[] = [];
  const { batcher, calls } = rig(() => new Promise<void>((resolve) => ends.push(resolve)), {
    slots: 2,
    now: () => 0, // no time passes
  });
  const first = submitAll(batcher, ["a", "b"]);
  await turn();
  const second = submitAll(batcher, ["c"]);
  for (let turns = 0; turns < 5; turns++) await turn();
  assert.deepEqual(calls, [["a", "b"]]);
  ends.shift()!();
  await first;
  await turn();
  assert.deepEqual(calls, [["a", "b"], ["c"]]);
  ends.shift()!();
  await second;
});

describe("the operation queue", () => {
  test("gives back in the order of arrival, and refuses what is too much", () => {
    const queue = new OperationQueue<number>(2);
    assert.equal(queue.shift(), undefined);
    assert.deepEqual([queue.push(1), queue.push(2), queue.push(3)], [true, true, false]);
    assert.deepEqual([queue.first, queue.length], [1, 2]);
    assert.equal(queue.shift(), 1);
    assert.equal(queue.push(4), true);
    assert.deepEqual([queue.shift(), queue.shift(), queue.shift()], [2, 4, undefined]);
  });

  test("is a queue, whatever is pushed and shifted, also over thousands", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -700, max: 1_000 }), { maxLength: 30 }), (steps) => {
        const queue = new OperationQueue<number>(5_000);
        const model: number[] = [];
        let next = 0;
        for (const step of steps) {
          for (let n = 0; n < step; n++) {
            assert.equal(queue.push(next), model.length < 5_000);
            if (model.length < 5_000) model.push(next);
            next++;
          }
          for (let n = 0; n > step; n--) assert.equal(queue.shift(), model.shift());
          assert.deepEqual([queue.length, queue.first], [model.length, model[0]]);
        }
      }),
    );
  });
});

describe("a batcher", () => {
  test("sends together what is submitted together, and tells each its own result", async () => {
    const { batcher, calls } = rig(() => undefined);
    const results = await submitAll(batcher, ["a", "b", "c"]);
    assert.deepEqual(calls, [["a", "b", "c"]]);
    assert.deepEqual(outcomes(results), ["done a", "done b", "done c"]);
  });

  test("gathers what comes while its slots are busy", async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { batcher, calls } = rig((_session, [first]) => (first === "a" ? gate : undefined));
    const first = batcher.submit("a");
    await turn();
    const others = submitAll(batcher, ["b", "c"]);
    await turn();
    const last = batcher.submit("d");
    await turn();
    assert.deepEqual(calls, [["a"]]);
    open();
    await Promise.all([first, others, last]);
    assert.deepEqual(calls, [["a"], ["b", "c", "d"]]);
  });

  test("uses every free slot", async () => {
    let running = 0;
    let most = 0;
    const { batcher } = rig(
      async () => {
        most = Math.max(most, ++running);
        await turn();
        running--;
      },
      { slots: 3, limits: { operationsMax: 1 } },
    );
    await submitAll(batcher, ["a", "b", "c", "d"]);
    assert.equal(most, 3);
  });

  test("makes batches of at most so many operations, and of at most such a weight", async () => {
    const byNumber = rig(() => undefined, { limits: { operationsMax: 2 } });
    await submitAll(byNumber.batcher, ["a", "b", "c", "d", "e"]);
    assert.deepEqual(byNumber.calls, [["a", "b"], ["c", "d"], ["e"]]);
    const byWeight = rig(() => undefined, {
      limits: { weightMax: 3 },
      kind: { weight: (operation) => operation.length },
    });
    await submitAll(byWeight.batcher, ["aa", "b", "cccccc", "d"]);
    assert.deepEqual(byWeight.calls, [["aa", "b"], ["cccccc"], ["d"]]);
  });

  test("splits a refused batch until the bad one fails alone, and the others are done once (P9)", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (bad) => {
        const done: string[] = [];
        const operations = bad.map((isBad, n) => `${isBad ? "bad" : "good"}${n}`);
        const { batcher } = rig((_session, batch) => {
          if (batch.some((operation) => operation.startsWith("bad"))) throw refusal("22P02");
          done.push(...batch);
        });
        const results = await submitAll(batcher, operations);
        assert.deepEqual(
          outcomes(results),
          operations.map((operation) => (operation.startsWith("bad") ? "22P02" : `done ${operation}`)),
        );
        assert.deepEqual(
          done,
          operations.filter((operation) => operation.startsWith("good")),
        );
      }),
    );
  });

  test("tries again what was refused for the moment, and gives up in the end", async () => {
    let left = 2;
    const passing = rig(() => {
      if (left-- > 0) throw refusal("40P01");
    });
    assert.deepEqual(outcomes(await submitAll(passing.batcher, ["a", "b"])), ["done a", "done b"]);
    assert.deepEqual(passing.calls, [
      ["a", "b"],
      ["a", "b"],
      ["a", "b"],
    ]);
    const lasting = rig(() => {
      throw refusal("40P01");
    });
    assert.deepEqual(outcomes(await submitAll(lasting.batcher, ["a", "b"])), ["40P01", "40P01"]);
    assert.equal(lasting.calls.length, 3);
  });

  const loseFirst = () => {
    let isFirst = true;
    return (session: { closed: boolean }): void => {
      if (!isFirst) return;
      isFirst = false;
      session.closed = true;
      throw new ConnectionLostError("lost", { outcomeUnknown: true });
    };
  };

  test("repeats after a lost connection only what may be done twice", async () => {
    const safe = rig(loseFirst(), { kind: { repeatable: true } });
    assert.deepEqual(outcomes(await submitAll(safe.batcher, ["a", "b"])), ["done a", "done b"]);
    assert.equal(safe.calls.length, 2);
    const unsafe = rig(loseFirst());
    const results = await submitAll(unsafe.batcher, ["a", "b"]);
    assert.ok(
      results.every((result) => result.status === "rejected" && result.reason instanceof ConnectionLostError),
    );
    assert.equal(unsafe.calls.length, 1);
    assert.equal(await unsafe.batcher.submit("c"), "done c", "the next goes over the next connection");
  });

  test("refuses at once when too many wait", async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { batcher } = rig(() => gate, { limits: { waitingMax: 2 } });
    const running = batcher.submit("a");
    await turn();
    const waiting = submitAll(batcher, ["b", "c"]);
    const [refused] = outcomes(await submitAll(batcher, ["d"]));
    assert.equal(refused, "OVERLOADED");
    open();
    assert.equal(await running, "done a");
    assert.deepEqual(outcomes(await waiting), ["done b", "done c"]);
  });

  test("refuses everything, also what waits, while the database cannot be reached", async () => {
    const { batcher, slots, calls } = rig(() => undefined, { slots: 0 });
    const waiting = submitAll(batcher, ["a"]);
    await turn();
    slots.unavailable = new BrokerError("DATABASE_UNAVAILABLE", "away");
    slots.changed();
    assert.deepEqual(outcomes(await waiting), ["DATABASE_UNAVAILABLE"]);
    assert.deepEqual(outcomes(await submitAll(batcher, ["b"])), ["DATABASE_UNAVAILABLE"]);
    assert.deepEqual(calls, []);
  });

  test("gives its slot back whatever happens", async () => {
    const { batcher, slots } = rig((_session, [first]) => {
      if (first === "bad") throw new Error("a mistake of our own");
    });
    assert.deepEqual(outcomes(await submitAll(batcher, ["bad"])), ["error"]);
    await turn();
    assert.deepEqual([slots.free, slots.busy], [1, 0]);
    assert.equal(await batcher.submit("good"), "done good");
  });

  test("holds what is not full for a while, so that more can join", async () => {
    const { batcher, calls } = rig(() => undefined, { limits: { holdMs: 50, operationsMax: 3 } });
    const first = batcher.submit("a");
    await turn();
    const second = batcher.submit("b");
    await turn();
    assert.deepEqual(calls, []);
    await Promise.all([first, second]);
    assert.deepEqual(calls, [["a", "b"]]);
    await submitAll(batcher, ["c", "d", "e"]);
    assert.deepEqual(calls.at(-1), ["c", "d", "e"], "a full one leaves at once");
  });
});
