/** The checker finds nothing in a history that keeps every promise, and each planted anomaly by its name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "./check.ts";
import type { Cursor, DeadLetter, FinalState } from "./final-state.ts";
import type { AckStatus, Delivery, HistoryEvent, Mark, PushOutcome } from "./history.ts";
import type { Limits, Rule } from "./rules.ts";

const OFFSETS = ["a", "b", "c", "d"];
/** A message of the example: a stands at 0, b at 1, and so on. */
const at = (value: string, partition = "p", queue = "q"): Delivery => ({
  queue,
  partition,
  value,
  offset: Math.max(0, OFFSETS.indexOf(value)),
});
const sentTo = (broker: string, items: Delivery[], keyed = true): HistoryEvent => ({
  type: "push-sent",
  atMs: 0,
  broker,
  keyed,
  items,
});
const sent = (...items: Delivery[]): HistoryEvent => sentTo("b1", items);
const answered = (outcome: PushOutcome, items: Delivery[], broker = "b1", atMs = 0): HistoryEvent => ({
  type: "push-answered",
  atMs,
  broker,
  items,
  outcome,
});
const stored = (...items: Delivery[]): HistoryEvent => answered("stored", items);
const refused = (...items: Delivery[]): HistoryEvent => answered("refused", items);
const popped = (lease: string, messages: Delivery[], atMs = 0): HistoryEvent => ({
  type: "popped",
  atMs,
  sentAtMs: atMs,
  group: "g",
  lease,
  leaseMs: 10_000,
  messages,
});
const ackSent = (lease: string, messages: Delivery[], status: AckStatus = "completed"): HistoryEvent => ({
  type: "ack-sent",
  atMs: 0,
  group: "g",
  lease,
  status,
  messages,
});
const acked = (lease: string, messages: Delivery[], status: AckStatus = "completed"): HistoryEvent => ({
  type: "acked",
  atMs: 0,
  group: "g",
  lease,
  status,
  messages,
});
const mark = (what: Mark["what"], atMs: number): HistoryEvent => ({ type: "mark", atMs, what, name: what });

/** a, b and c are pushed one after the other, delivered in two leases, and acked. */
const GOOD: readonly HistoryEvent[] = [
  sent(at("a")),
  stored(at("a")),
  sent(at("b"), at("c")),
  stored(at("b"), at("c")),
  popped("L1", [at("a"), at("b")]),
  ackSent("L1", [at("a"), at("b")]),
  acked("L1", [at("a"), at("b")]),
  popped("L2", [at("c")]),
  ackSent("L2", [at("c")]),
  acked("L2", [at("c")]),
];

const LOG: FinalState = {
  readers: [{ queue: "q", group: "g" }],
  log: ["a", "b", "c"].map((value) => at(value)),
  deadLetters: [],
};
const letter = (value: string, failures = ["no", "no", "no", "no"], error = "no"): DeadLetter => ({
  ...at(value),
  group: "g",
  error,
  failures,
});

const ranOut = (value: string): DeadLetter => letter(value, ["lease expired"], "lease expired");

const rules = (history: readonly HistoryEvent[], state: FinalState = LOG, limits: Limits = {}): Rule[] =>
  check(history, state, limits).violations.map((violation) => violation.rule);

test("a history that keeps every promise has no violation", () => {
  assert.deepEqual(rules(GOOD, LOG), []);
});

test("what was in doubt may be there or not, may be pushed again, and may be delivered", () => {
  const again = [sent(at("d")), sent(at("d")), stored(at("d"))];
  const log = [...LOG.log, { ...at("d"), offset: 3 }];
  assert.deepEqual(rules([...GOOD, sent(at("d"))], LOG), []);
  assert.deepEqual(rules([...GOOD, ...again, popped("L3", [at("d")])], { ...LOG, log }), []);
});

test("a message whose ack had no answer may come again", () => {
  const history = GOOD.filter((event) => event.type !== "acked" || event.lease !== "L2");
  assert.deepEqual(rules([...history, popped("L3", [at("c")], 20_000)], LOG), []);
});

test("a dead letter is not lost", () => {
  const history = GOOD.filter((event) => !("lease" in event && event.lease === "L2"));
  assert.deepEqual(rules(history), ["lost"]);
  assert.deepEqual(rules(history, { ...LOG, deadLetters: [ranOut("c")] }), []);
});

test("lost: answered and not in the log", () => {
  const history = GOOD.filter((event) => !("lease" in event && event.lease === "L2"));
  assert.deepEqual(rules(history, { ...LOG, log: LOG.log.slice(0, 2) }), ["lost"]);
});

test("lost: in the log and never delivered to a group", () => {
  const BOTH = { ...LOG, readers: [...LOG.readers, { queue: "q", group: "other" }] };
  const forOther = GOOD.map((event) => ("group" in event ? { ...event, group: "other" } : event));
  assert.deepEqual(rules([...GOOD, ...forOther.slice(4, 7)], BOTH), ["lost"]);
});

test("phantom: delivered and never pushed", () => {
  assert.deepEqual(rules([...GOOD, popped("L3", [{ ...at("x"), offset: 3 }])]), ["phantom"]);
});

test("phantom: stored and never pushed, or refused every time", () => {
  const log = [...LOG.log, { ...at("x"), offset: 3 }];
  const dead = [{ ...ranOut("x"), offset: 3 }];
  assert.deepEqual(rules(GOOD, { ...LOG, log, deadLetters: dead }), ["phantom"]);
  assert.deepEqual(rules([...GOOD, sent(at("x")), refused(at("x"))], { ...LOG, log, deadLetters: dead }), [
    "phantom",
  ]);
  assert.deepEqual(
    rules([...GOOD, sent(at("x")), sent(at("x")), refused(at("x"))], { ...LOG, log, deadLetters: dead }),
    [],
  );
});

test("duplicate entry: the same transactionId twice in a partition", () => {
  const twice = { ...LOG, log: [...LOG.log, { ...at("a"), offset: 3 }] };
  const both = [...GOOD, popped("L3", [{ ...at("a"), offset: 3 }])];
  assert.deepEqual(rules(both, twice), ["duplicate entry"]);
  const keys = LOG.log.map((entry) => ({ ...entry, transactionId: entry.value === "c" ? "b" : entry.value }));
  assert.deepEqual(rules(GOOD, { ...LOG, log: keys }), ["duplicate entry"]);
});

test("duplicate entry: without a transactionId only what was in doubt may be there twice", () => {
  const log = [...LOG.log, at("d"), { ...at("d"), offset: 4 }];
  const delivered = popped("L3", log.slice(3));
  const once = [sentTo("b1", [at("d")], false), stored(at("d"))];
  assert.deepEqual(rules([...GOOD, ...once, delivered], { ...LOG, log }), ["duplicate entry"]);
  const again = [sentTo("b1", [at("d")], false), answered("unknown", [at("d")]), ...once];
  assert.deepEqual(rules([...GOOD, ...again, delivered], { ...LOG, log }), []);
});

test("the same transactionId in two partitions is two messages", () => {
  const history = [
    ...GOOD,
    sent(at("a", "other")),
    stored(at("a", "other")),
    popped("L3", [at("a", "other")]),
  ];
  assert.deepEqual(rules(history, { ...LOG, log: [...LOG.log, { ...at("a", "other"), offset: 0 }] }), []);
});

test("gap: offsets are not dense", () => {
  const log = LOG.log.map((entry) => (entry.value === "c" ? { ...entry, offset: 3 } : entry));
  const history = [...GOOD.slice(0, 7), popped("L2", [{ ...at("c"), offset: 3 }])];
  assert.deepEqual(rules(history, { ...LOG, log }), ["gap"]);
  const twice = LOG.log.map((entry) => ({ ...entry, offset: Math.min(entry.offset, 1) }));
  assert.ok(rules(GOOD, { ...LOG, log: twice }).includes("gap"));
});

test("log order: a push that was answered before another was sent stands behind it", () => {
  const [first, second, third] = [at("b"), at("a"), at("c")].map((entry, offset) => ({ ...entry, offset }));
  const state = { ...LOG, log: [first!, second!, third!] };
  const delivered = popped("L1", [...state.log]);
  assert.deepEqual(rules([...GOOD.slice(0, 4), delivered], state), ["log order"]);
  const together = [sent(at("b"), at("c")), sent(at("a")), stored(at("a")), stored(at("b"), at("c"))];
  assert.deepEqual(rules([...together, delivered], state), []);
});

test("log order: what a broker has on its disk comes before later pushes to that broker", () => {
  const state = {
    ...LOG,
    log: [
      { ...at("b"), offset: 0 },
      { ...at("a"), offset: 1 },
    ],
  };
  const through = (broker: string): HistoryEvent[] => [
    sentTo("b1", [at("a")]),
    answered("buffered", [at("a")]),
    sentTo(broker, [at("b")]),
    answered("stored", [at("b")], broker),
    popped("L1", [...state.log]),
  ];
  assert.deepEqual(rules(through("b1"), state), ["log order"]);
  assert.deepEqual(rules(through("b2"), state), []);
});

test("lost: buffered and never stored", () => {
  const history = [...GOOD, sent(at("d")), answered("buffered", [at("d")])];
  assert.deepEqual(rules(history), ["lost"]);
});

test("what retention took after it was delivered is not lost", () => {
  const trimmed = { ...LOG, log: LOG.log.slice(2), starts: { "q/p": 2 } };
  assert.deepEqual(rules(GOOD, trimmed), []);
  const unseen = [...GOOD, sent(at("x")), stored(at("x"))];
  assert.deepEqual(rules(unseen, trimmed), ["lost"]);
});

test("phantom: delivered at a place where the log has another message", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("a"), { ...at("c"), offset: 1 }, at("c")])];
  assert.deepEqual(rules(history), ["phantom"]);
});

test("delivery order: first deliveries leave the log's order", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("b"), at("a"), at("c")])];
  assert.deepEqual(rules(history), ["skip", "delivery order"]);
});

test("skip: a message is delivered before one that stands before it", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("c")])];
  assert.deepEqual(rules(history), ["skip", "lost"]);
  assert.deepEqual(rules(history, { ...LOG, deadLetters: [ranOut("b")] }), []);
  const late = { ...LOG, readers: [{ queue: "q", group: "g", from: "first delivery" as const }] };
  assert.deepEqual(rules([...GOOD.slice(0, 4), popped("L1", [at("b"), at("c")])], late), []);
});

test("a second delivery of an earlier message is no matter of order", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("b")])];
  history.push(popped("L2", [at("a"), at("b"), at("c")], 20_000));
  assert.deepEqual(rules(history, LOG), []);
});

test("redelivered after ack", () => {
  assert.deepEqual(rules([...GOOD, popped("L3", [at("c")], 20_000)]), ["redelivered after ack"]);
});

test("an answer that was on its way for longer than its lease says nothing about who holds the lane", () => {
  const late: HistoryEvent = {
    type: "popped",
    atMs: 25_000,
    sentAtMs: 0,
    group: "g",
    lease: "L0",
    leaseMs: 10_000,
    messages: [at("a"), at("b")],
  };
  const others = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("b"), at("c")], 20_000)];
  const acks = [ackSent("L1", [at("a"), at("b")]), acked("L1", [at("a"), at("b")])];
  assert.deepEqual(rules([...others, late, ...acks]), []);
  assert.deepEqual(rules([...others, ...acks, late]), []);
  const again = { ...late, sentAtMs: 24_000 };
  assert.deepEqual(rules([...others, ...acks, again]), [
    "redelivered after ack",
    "redelivered after ack",
    "overlap",
  ]);
});

test("finished without ack: the cursor is past a message that nobody finished", () => {
  const cursor = { queue: "q", partition: "p", group: "g", nextOffset: 3, acked: [], leased: false };
  const all = popped("L1", [at("a"), at("b"), at("c")]);
  const partly = [...GOOD.slice(0, 4), all, ackSent("L1", [at("b")]), acked("L1", [at("b")])];
  const at3: FinalState = { ...LOG, cursors: [{ ...cursor, committed: 3 }] };
  assert.deepEqual(rules(GOOD, at3), []);
  assert.deepEqual(rules(partly, at3), ["finished without ack", "finished without ack"]);
  const ranges: FinalState = { ...LOG, cursors: [{ ...cursor, committed: 0, acked: [[1, 3]] }] };
  assert.deepEqual(rules(partly, ranges), ["finished without ack"]);
  const given = [...GOOD.slice(0, 4), all, ackSent("L1", [at("b")], "retry")];
  assert.equal(rules(given, at3).length, 3, "giving back finishes nothing");
  assert.deepEqual(rules(partly, { ...at3, deadLetters: [ranOut("a"), ranOut("c")] }), []);
});

test("overlap: two leases on a lane at once", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("b")]), popped("L2", [at("c")], 1_000)];
  assert.deepEqual(rules(history), ["overlap"]);
  const expired = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("b")]), popped("L2", [at("c")], 20_000)];
  assert.deepEqual(rules(expired), []);
});

test("overlap: a lease is held until its last message is acked", () => {
  const partly = [
    ...GOOD.slice(0, 4),
    popped("L1", [at("a"), at("b")]),
    ackSent("L1", [at("a")]),
    acked("L1", [at("a")]),
    popped("L2", [at("b"), at("c")], 1_000),
  ];
  assert.deepEqual(rules(partly), ["overlap"]);
  for (const status of ["failed", "retry"] as const) {
    const given = partly.map((event) =>
      event.type === "ack-sent" || event.type === "acked" ? { ...event, status } : event,
    );
    assert.deepEqual(rules(given), [], `${status} ends the lease`);
  }
});

test("fencing: an ack by a lease that was replaced has an effect", () => {
  const history = [
    ...GOOD.slice(0, 4),
    popped("L1", [at("a"), at("b"), at("c")]),
    popped("L2", [at("a"), at("b"), at("c")], 20_000),
    ackSent("L1", [at("a")]),
    acked("L1", [at("a")]),
  ];
  assert.deepEqual(rules(history), ["fencing"]);
  const finished = [...history.slice(0, 6), ackSent("L2", [at("a")]), ...history.slice(6)];
  assert.deepEqual(rules(finished), [], "what the new holder has finished may be acked again");
});

test("exactly once: a pipe lost, doubled or invented a message", () => {
  const pipes = [{ source: "q", sink: "s" }];
  const moved = LOG.log.map((entry) => at(entry.value, "p", "s"));
  const history = [...GOOD, sent(...moved), stored(...moved)];
  const sink = (...entries: Delivery[]): FinalState => ({ ...LOG, pipes, log: [...LOG.log, ...entries] });
  assert.deepEqual(rules(history, sink(...moved)), []);
  assert.deepEqual(rules(GOOD, sink(...moved.slice(0, 2))).filter(isExactlyOnce), ["exactly once"]);
  const again = { ...moved[0]!, partition: "other" };
  const doubled = rules([...history, sent(again), stored(again)], sink(...moved, again));
  assert.deepEqual(doubled, ["exactly once"]);
  const invented = at("d", "p", "s");
  assert.deepEqual(rules([...history, sent(invented)], sink(...moved, invented)), ["exactly once"]);
});
const isExactlyOnce = (rule: Rule): boolean => rule === "exactly once";

test("dead letter: it comes after its failures, once, with its payload and its last error", () => {
  const limits = { retryLimits: { q: 3 } };
  const failing = ["L2", "L3", "L4", "L5"].flatMap((lease, index) => [
    popped(lease, [at("c")], index * 20_000),
    ackSent(lease, [at("c")], "failed"),
    acked(lease, [at("c")], "failed"),
  ]);
  const history = [...GOOD.slice(0, 7), ...failing];
  const state = (...deadLetters: DeadLetter[]): FinalState => ({ ...LOG, deadLetters });
  assert.deepEqual(rules(history, state(letter("c")), limits), []);
  assert.deepEqual(rules(history, state(), limits), ["dead letter"], "it is missing");
  const late = [...history, ...failing.slice(-2)];
  assert.deepEqual(rules(late, state(letter("c")), limits), ["dead letter"], "it comes too late");
  const stale = [...history, ackSent("L3", [at("c")], "failed"), acked("L3", [at("c")], "failed")];
  assert.deepEqual(rules(stale, state(letter("c")), limits), [], "an ack of an old lease counts nothing");
  const wrong: DeadLetter[] = [
    { ...letter("c"), value: "b" },
    letter("c", ["no", "no", "no"]),
    letter("c", ["no", "no", "no", "no", "no"]),
    letter("c", undefined, "other"),
  ];
  for (const each of wrong) assert.deepEqual(rules(history, state(each), limits), ["dead letter"]);
  assert.deepEqual(rules(history, state(letter("c"), letter("c")), limits), ["dead letter"]);
  const expired = ["lease expired", "no", "no", "no", "no"];
  assert.deepEqual(rules(history, state(letter("c", expired)), limits), []);
  const told = { ...acked("L5", [at("c")], "failed"), dead: [at("c")] };
  assert.deepEqual(rules([...GOOD.slice(0, 7), popped("L5", [at("c")]), told]), ["dead letter"]);
  const again = [...history.slice(0, -1), told, popped("L6", [at("c")], 100_000)];
  assert.deepEqual(rules(again, state(letter("c")), limits), ["redelivered after ack"]);
});

test("redelivery budget: what comes again without a consumer's doing is counted", () => {
  const twice = (...between: HistoryEvent[]): HistoryEvent[] => [
    ...GOOD.slice(0, 7),
    popped("L2", [at("c")]),
    ...between,
    popped("L3", [at("c")], 20_000),
  ];
  assert.deepEqual(rules(twice(), LOG, { redeliveriesMax: 0 }), ["redelivery budget"]);
  assert.deepEqual(rules(twice(), LOG, { redeliveriesMax: 1 }), []);
  assert.equal(check(twice(), LOG).redelivered, 1);
  const given = twice(ackSent("L2", [at("c")], "retry"));
  assert.deepEqual(rules(given, LOG, { redeliveriesMax: 0 }), []);
  const left: HistoryEvent = { type: "abandoned", atMs: 0, group: "g", lease: "L2", messages: [at("c")] };
  assert.deepEqual(rules(twice(left), LOG, { redeliveriesMax: 0 }), []);
});

test("liveness: requests end, and everything goes on after the faults", () => {
  const request = (tookMs: number, waitMs = 0): HistoryEvent => ({
    type: "request",
    atMs: 0,
    operation: "pop",
    status: 200,
    tookMs,
    waitMs,
  });
  const limits = { requestMsMax: 1_000, healMsMax: 1_000, drainMsMax: 1_000 };
  const after = (ms: number): HistoryEvent[] => [
    ...GOOD.slice(0, 2),
    mark("healed", 0),
    sent(at("b"), at("c")),
    answered("stored", [at("b"), at("c")], "b1", ms),
    popped("L1", [at("a"), at("b"), at("c")], ms),
    mark("pushes-ended", ms),
  ];
  assert.deepEqual(rules([...after(500), mark("drained", 1_000), request(5_000, 4_500)], LOG, limits), []);
  assert.deepEqual(rules([...after(500), mark("drained", 1_000), request(5_000)], LOG, limits), ["liveness"]);
  assert.deepEqual(rules([...after(1_500), mark("drained", 2_000)], LOG, limits), ["liveness", "liveness"]);
  assert.deepEqual(rules([...after(500), mark("drained", 2_000)], LOG, limits), ["liveness"]);
  assert.deepEqual(rules(after(500), LOG, limits), ["liveness"], "never drained");
  const dead = [...GOOD, mark("healed", 0), mark("pushes-ended", 0), mark("drained", 0)];
  assert.deepEqual(rules(dead, LOG, limits), ["liveness", "liveness"]);
});

test("state: a cursor behind the end, acks outside of the log, a lease, a spool or a transaction left", () => {
  const cursor: Cursor = {
    queue: "q",
    partition: "p",
    group: "g",
    nextOffset: 3,
    committed: 3,
    acked: [],
    leased: false,
  };
  const left = (change: Partial<Cursor>): Rule[] =>
    rules(GOOD, { ...LOG, cursors: [{ ...cursor, ...change }] });
  assert.deepEqual(left({}), []);
  assert.deepEqual(left({ committed: 1, acked: [[2, 3]] }), []);
  assert.deepEqual(left({ committed: 4 }), ["state"]);
  assert.deepEqual(left({ acked: [[2, 3]] }), ["state"]);
  assert.deepEqual(left({ committed: 0, acked: [[2, 4]] }), ["state"]);
  assert.deepEqual(left({ leased: true }), ["state"]);
  assert.deepEqual(rules(GOOD, { ...LOG, spooled: 1 }), ["state"]);
  assert.deepEqual(rules(GOOD, { ...LOG, preparedTransactions: 1 }), ["state"]);
});

test("the longest stall is the longest time without a stored push", () => {
  const history = [0, 100, 4_100, 4_200].flatMap((atMs) => [
    sent(at("a")),
    answered("stored", [at("a")], "b1", atMs),
  ]);
  assert.equal(check([...history, mark("pushes-ended", 9_000)], LOG).longestStallMs, 4_000);
});
