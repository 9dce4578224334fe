/** The ceilings of a soak: minutes as they should be break none, and each planted excess is named. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenCeilings, brokenIndexes } from "../soak/ceilings.ts";
import type { BrokerFigures, Minute, TableFigures } from "../soak/minute.ts";

const MEGABYTE = 1024 ** 2;
const PLAN = { retentionSeconds: 600, sweepSeconds: 30 };
const PUSHED = 30_000;

const table = (more: Partial<TableFigures> = {}): TableFigures => ({
  tableBytes: MEGABYTE,
  indexBytes: MEGABYTE / 4,
  live: 200,
  dead: 100,
  updates: 1_000,
  hotUpdates: 999,
  vacuumedSecondsAgo: 60,
  ...more,
});
const broker = (more: Partial<BrokerFigures> = {}): BrokerFigures => ({
  memoryMb: 280,
  processMb: 190,
  heapMb: 50,
  files: 60,
  ...more,
});

/** A run of so many minutes; `change` makes one of them different. */
function run(minutes: number, change: (index: number) => Partial<Minute> = () => ({})): Minute[] {
  return Array.from({ length: minutes }, (_, index) => {
    const tables = {
      segments: table({ live: 26_000, dead: 3_000, tableBytes: 100 * MEGABYTE }),
      partitions: table(),
      partition_consumers: table(),
    };
    return {
      minute: index + 1,
      faults: [],
      pushed: PUSHED,
      buffered: 0,
      delivered: 2 * PUSHED,
      acked: 2 * PUSHED,
      redelivered: 0,
      lag: 10,
      logMessages: Math.min(index + 1, 10.5) * PUSHED,
      spooled: 0,
      deadLetters: 0,
      brokers: [broker(), broker()],
      tables,
      liveBytes: { partitions: 20_000, partition_consumers: 40_000 },
      xids: 100 * index,
      multixacts: 0,
      calls: 100 * index,
      catalogRows: 4_000,
      violations: 0,
      clientsMb: 150,
      remembered: 1_000,
      ...change(index),
    };
  });
}

const withTable = (name: string, more: Partial<TableFigures>): Partial<Minute> => {
  const { tables } = run(1)[0]!;
  return { tables: { ...tables, [name]: { ...tables[name]!, ...more } } };
};

test("minutes as they should be break no ceiling", () => {
  assert.deepEqual(brokenCeilings(run(60), PLAN), []);
  assert.deepEqual(brokenCeilings(run(200), PLAN), []);
  assert.deepEqual(
    brokenCeilings(
      run(3, () => ({ logMessages: PUSHED / 2 })),
      { retentionSeconds: 30, sweepSeconds: 2 },
    ),
    [],
    "a quick try",
  );
  assert.deepEqual(brokenCeilings([], PLAN), []);
});

const EXCESSES: readonly (readonly [string, RegExp, Minute[]])[] = [
  [
    "a process that is too large",
    /a process of a broker had 401 MB/,
    run(5, (index) => (index === 2 ? { brokers: [broker(), broker({ processMb: 401 })] } : {})),
  ],
  [
    "memory that grows in the last half hour",
    /never killed grows: \d+ MB on average/,
    run(60, (index) => ({ brokers: [broker({ memoryMb: index < 45 ? 280 : 400 }), broker()] })),
  ],
  [
    "memory that grows slowly for hours",
    /grows by 3\.0 MB an hour after the first/,
    run(240, (index) => ({ brokers: [broker({ memoryMb: 280 + 0.05 * index }), broker()] })),
  ],
  [
    "a heap that grows for hours",
    /its heap after collections went from/,
    run(240, (index) => ({ brokers: [broker({ heapMb: 50 + 0.1 * index }), broker()] })),
  ],
  [
    "files that are not closed",
    /files open at most, then/,
    run(60, (index) => ({ brokers: [broker({ files: 60 + 2 * index }), broker()] })),
  ],
  [
    "a log that retention does not shorten",
    /the log had \d+ messages in minute/,
    run(60, (index) => ({ logMessages: (index + 1) * PUSHED })),
  ],
  [
    "a log that retention shortens too soon",
    /by its retention of 600 s it should have/,
    run(60, (index) => ({ logMessages: Math.min(index + 1, 5) * PUSHED })),
  ],
  [
    "a hot table that is bloated",
    /partitions has \d+ bytes for rows of 20000/,
    run(5, () => withTable("partitions", { tableBytes: 3 * MEGABYTE })),
  ],
  [
    "a table that grows",
    /segments grows/,
    run(60, (index) =>
      withTable("segments", { live: 26_000, dead: 0, tableBytes: 10 * (index + 1) * MEGABYTE }),
    ),
  ],
  [
    "updates that are not HOT",
    /\d+\.\d % of updates were HOT/,
    run(5, () => withTable("partitions", { hotUpdates: 800 })),
  ],
  [
    "dead rows that a vacuum leaves",
    /segments had 9000 dead rows beside 26000 in minute 1, a minute after it was vacuumed/,
    run(5, () => withTable("segments", { live: 26_000, dead: 9_000 })),
  ],
  [
    "too many transaction ids",
    /400 transaction ids were used for 300 calls/,
    run(4, () => ({ xids: 400, calls: 300 })),
  ],
  ["multixacts", /500 multixacts were used/, run(4, () => ({ multixacts: 500 }))],
  [
    "a growing catalogue",
    /pg_attribute grew from 4000 to 4003/,
    run(4, (index) => ({ catalogRows: 4_000 + index })),
  ],
];

for (const [what, sentence, minutes] of EXCESSES)
  test(`${what} is named`, () => {
    const found = brokenCeilings(minutes, PLAN);
    assert.ok(
      found.some((each) => sentence.test(each)),
      JSON.stringify(found),
    );
  });

test("an index that has twice what it needs is named, unless it is tiny", () => {
  const index = (bytes: number, freshBytes: number) => ({ name: "segments_pkey", bytes, freshBytes });
  assert.deepEqual(brokenIndexes([index(10 * MEGABYTE, 6 * MEGABYTE), index(300_000, 16_384)], 1), []);
  assert.deepEqual(brokenIndexes([index(2_400_000, 890_000)], 101), [], "of many short lanes");
  assert.match(
    brokenIndexes([index(10 * MEGABYTE, 4 * MEGABYTE)], 101)[0]!,
    /segments_pkey has 10485760 bytes/,
  );
});
