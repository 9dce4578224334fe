/** The online check finds nothing in a load that keeps every promise, each planted anomaly, and does not grow. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AckStatus, Delivery, HistoryEvent } from "./history.ts";
import { OnlineCheck } from "./online-check.ts";
import type { Rule } from "./rules.ts";

const LANE = { queue: "q", partition: "p" };
const READERS = [{ queue: "q", group: "g" }];
/** Message `number` of a source, where one source fills the lane: at the same offset. */
const at = (number: number, offset = number, source = "s"): Delivery => ({
  ...LANE,
  value: `${source}:${number}`,
  offset,
});
const pushed = (...items: Delivery[]): HistoryEvent[] => [
  { type: "push-sent", atMs: 0, broker: "b", keyed: true, items },
  { type: "push-answered", atMs: 0, broker: "b", items, outcome: "stored" },
];
const popped = (lease: string, messages: Delivery[], atMs = 0): HistoryEvent => ({
  type: "popped",
  atMs,
  sentAtMs: atMs,
  group: "g",
  lease,
  leaseMs: 10_000,
  messages,
});
const acks = (
  lease: string,
  messages: Delivery[],
  atMs = 0,
  status: AckStatus = "completed",
): HistoryEvent[] => [
  { type: "ack-sent", atMs, group: "g", lease, status, messages },
  { type: "acked", atMs, group: "g", lease, status, messages },
];

function rulesBroken(events: readonly HistoryEvent[], dead: readonly number[] = []): Rule[] {
  const check = new OnlineCheck(READERS, { requestMsMax: 30_000 });
  for (const event of events) check.observe(event);
  check.finish((group, lane, offset) => group === "g" && lane === "q/p" && dead.includes(offset));
  return [...check.counts.keys()];
}

test("a load that keeps every promise has no violation", () => {
  assert.deepEqual(
    rulesBroken([
      ...pushed(at(0), at(1), at(2)),
      popped("L1", [at(0), at(1)]),
      ...acks("L1", [at(0)], 1),
      // Given back, delivered again, finished.
      ...acks("L1", [at(1)], 1, "retry"),
      popped("L2", [at(1), at(2)], 2),
      ...acks("L2", [at(1), at(2)], 3),
    ]),
    [],
  );
});

test("messages of several sources may stand in any order to each other", () => {
  const items = [at(0, 0), at(0, 1, "t"), at(1, 2, "t"), at(1, 3)];
  assert.deepEqual(rulesBroken([...pushed(...items), popped("L1", items), ...acks("L1", items, 1)]), []);
});

test("what nobody asked for again is counted, and no violation", () => {
  const check = new OnlineCheck(READERS, { requestMsMax: 30_000 });
  const events = [
    ...pushed(at(0), at(1)),
    popped("L1", [at(0)]),
    popped("L2", [at(0), at(1)], 11_000),
    ...acks("L2", [at(0), at(1)], 11_001),
  ];
  for (const event of events) check.observe(event);
  check.finish(() => false);
  assert.deepEqual([...check.counts.keys()], []);
  assert.equal(check.redelivered, 1);
});

const ANOMALIES: readonly (readonly [Rule, string, readonly HistoryEvent[]])[] = [
  [
    "lost",
    "the last message is never delivered",
    [...pushed(at(0), at(1)), popped("L1", [at(0)]), ...acks("L1", [at(0)], 1)],
  ],
  ["lost", "a lane is never delivered", [...pushed(at(0))]],
  [
    "lost",
    "a message of the middle is never delivered",
    [...pushed(at(0), at(1), at(2)), popped("L1", [at(0), at(2, 1)]), ...acks("L1", [at(0), at(2, 1)], 1)],
  ],
  [
    "phantom",
    "a message comes that nobody pushed",
    [...pushed(at(0)), popped("L1", [at(0), at(1)]), ...acks("L1", [at(0), at(1)], 1)],
  ],
  [
    "phantom",
    "another message stands at the same offset",
    [
      ...pushed(at(0), at(1)),
      popped("L1", [at(0)]),
      ...acks("L1", [at(0)], 1, "retry"),
      popped("L2", [at(1, 0)], 2),
    ],
  ],
  [
    "duplicate entry",
    "a message stands twice in the log",
    [...pushed(at(0)), popped("L1", [at(0, 0), at(0, 1)]), ...acks("L1", [at(0, 0), at(0, 1)], 1)],
  ],
  [
    "log order",
    "a message stands behind one that was pushed later",
    [...pushed(at(0), at(1)), popped("L1", [at(1, 0), at(0, 1)]), ...acks("L1", [at(1, 0), at(0, 1)], 1)],
  ],
  [
    "skip",
    "an offset is passed over",
    [...pushed(at(0), at(1)), popped("L1", [at(0), at(1, 2)]), ...acks("L1", [at(0), at(1, 2)], 1)],
  ],
  [
    "redelivered after ack",
    "a finished message comes again",
    [...pushed(at(0)), popped("L1", [at(0)]), ...acks("L1", [at(0)], 1), popped("L2", [at(0)], 2)],
  ],
  [
    "redelivered after ack",
    "a message comes again that was finished long ago",
    [
      ...pushed(at(0), at(1)),
      popped("L1", [at(0)]),
      ...acks("L1", [at(0)], 1),
      popped("L2", [at(1)], 600_000),
      ...acks("L2", [at(1)], 600_001),
      popped("L3", [at(0)], 600_002),
    ],
  ],
  ["finished without ack", "nobody acked it", [...pushed(at(0)), popped("L1", [at(0)])]],
  [
    "overlap",
    "two hold the lane",
    [
      ...pushed(at(0), at(1)),
      popped("L1", [at(0)], 1),
      popped("L2", [at(1)], 2),
      ...acks("L1", [at(0)], 3),
      ...acks("L2", [at(1)], 3),
    ],
  ],
  [
    "fencing",
    "an ack counts after the lease was replaced",
    [
      ...pushed(at(0)),
      popped("L1", [at(0)], 0),
      popped("L2", [at(0)], 11_000),
      ...acks("L1", [at(0)], 11_001),
    ],
  ],
  [
    "liveness",
    "a request takes too long",
    [{ type: "request", atMs: 40_000, operation: "push", status: 201, tookMs: 40_000, waitMs: 0 }],
  ],
];

for (const [rule, what, events] of ANOMALIES)
  test(`it reports "${rule}": ${what}`, () => {
    assert.ok(rulesBroken(events).includes(rule), `${rulesBroken(events)}`);
  });

test("a dead letter needs no ack", () => {
  assert.deepEqual(rulesBroken([...pushed(at(0)), popped("L1", [at(0)])], [0]), []);
});

test("its memory does not grow with the load", () => {
  const check = new OnlineCheck(READERS, { requestMsMax: 30_000 });
  let most = 0;
  for (let number = 0; number < 20_000; number++) {
    const events = [
      ...pushed(at(number)),
      popped(`L${number}`, [at(number)], number * 100),
      ...acks(`L${number}`, [at(number)], number * 100 + 1),
    ];
    for (const event of events) check.observe(event);
    most = Math.max(most, check.remembered);
  }
  check.finish(() => false);
  assert.deepEqual([...check.counts.keys()], []);
  assert.ok(most < 5_000, `${most} entries were remembered`);
});
