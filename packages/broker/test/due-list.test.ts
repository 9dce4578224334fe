import assert from "node:assert/strict";
import { mock, test } from "node:test";
import fc from "fast-check";
import { type Due, DueList } from "../src/popping/due-list.ts";

interface Thing extends Due {
  readonly name: string;
}

const thing = (name: string): Thing => ({ name, dueAtMs: undefined, listedAtMs: Infinity });

/** A due list on a clock that moves only when told to, with what fired and when. */
function onClock(
  work: (list: DueList<Thing>, fired: [string, number][], pass: (ms: number) => void) => void,
): void {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let nowMs = 0;
    const fired: [string, number][] = [];
    const list = new DueList<Thing>(
      () => nowMs,
      (each) => fired.push([each.name, nowMs]),
    );
    work(list, fired, (ms) => {
      for (let passed = 0; passed < ms; passed++) {
        nowMs++;
        mock.timers.tick(1);
      }
    });
    list.stop();
  } finally {
    mock.timers.reset();
  }
}

test("things fire in the order of their times, each once", () => {
  onClock((list, fired, pass) => {
    for (const [name, ms] of [
      ["late", 30],
      ["early", 10],
      ["middle", 20],
    ] as const)
      list.set(thing(name), ms);
    pass(100);
    assert.deepEqual(
      fired.map(([name]) => name),
      ["early", "middle", "late"],
    );
    assert.equal(list.length, 0);
  });
});

test("nothing fires before its time", () => {
  onClock((list, fired, pass) => {
    list.set(thing("a"), 10);
    pass(9);
    assert.deepEqual(fired, []);
    pass(5);
    assert.equal(fired.length, 1);
  });
});

test("a thing has one time: the last that was set, earlier or later", () => {
  onClock((list, fired, pass) => {
    const later = thing("later");
    list.set(later, 10);
    list.set(later, 50);
    const earlier = thing("earlier");
    list.set(earlier, 50);
    list.set(earlier, 10);
    pass(30);
    assert.deepEqual(
      fired.map(([name]) => name),
      ["earlier"],
    );
    pass(100);
    assert.deepEqual(
      fired.map(([name]) => name),
      ["earlier", "later"],
    );
  });
});

test("a cleared thing does not fire, and may be set again", () => {
  onClock((list, fired, pass) => {
    const each = thing("a");
    list.set(each, 10);
    list.clear(each);
    pass(50);
    assert.deepEqual(fired, []);
    list.set(each, 10);
    pass(50);
    assert.equal(fired.length, 1);
  });
});

test("what a firing sets is heard too, at once or later", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let nowMs = 0;
    let left = 3;
    const each = thing("a");
    const list = new DueList<Thing>(
      () => nowMs,
      () => {
        if (--left > 0) list.set(each, left === 1 ? 0 : 10);
      },
    );
    list.set(each, 5);
    for (let passed = 0; passed < 100; passed++) {
      nowMs++;
      mock.timers.tick(1);
    }
    assert.equal(left, 0);
    list.stop();
  } finally {
    mock.timers.reset();
  }
});

test("a stopped list fires nothing", () => {
  onClock((list, fired, pass) => {
    list.set(thing("a"), 10);
    list.stop();
    pass(50);
    assert.deepEqual(fired, []);
  });
});

test("whatever is set and cleared when, each thing fires at its last time and not before", () => {
  const step = fc.record({
    which: fc.nat({ max: 4 }),
    inMs: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
    thenMs: fc.nat({ max: 15 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      onClock((list, fired, pass) => {
        const things = [0, 1, 2, 3, 4].map((n) => thing(String(n)));
        let nowMs = 0;
        const due = new Map<string, number>();
        const expected = new Map<string, number>(things.map((each) => [each.name, 0]));
        const settle = (untilMs: number): void => {
          for (const [name, atMs] of due) {
            // It fires a millisecond after its time at the latest: in between, both are right.
            if (atMs + 2 > untilMs) continue;
            due.delete(name);
            expected.set(name, expected.get(name)! + 1);
          }
        };
        for (const { which, inMs, thenMs } of steps) {
          const each = things[which]!;
          if (due.has(each.name) && each.dueAtMs === undefined) {
            due.delete(each.name); // it has just fired
            expected.set(each.name, expected.get(each.name)! + 1);
          }
          if (inMs === undefined) {
            list.clear(each);
            due.delete(each.name);
          } else {
            list.set(each, inMs);
            due.set(each.name, nowMs + inMs);
          }
          pass(thenMs);
          nowMs += thenMs;
          settle(nowMs);
        }
        pass(100);
        settle(Infinity);
        const counts = new Map(things.map((each) => [each.name, 0]));
        for (const [name] of fired) counts.set(name, counts.get(name)! + 1);
        assert.deepEqual(counts, expected);
      });
    }),
    { numRuns: 200 },
  );
});
