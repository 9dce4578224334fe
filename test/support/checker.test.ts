/** The checker finds nothing in a history that keeps every promise, and each planted anomaly by its name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { check, type FinalState, type HistoryEvent, type Place, type Rule } from "./checker.ts";

const at = (value: string, partition = "p"): Place => ({ partition, value });
const sent = (...items: Place[]): HistoryEvent => ({ type: "push-sent", atMs: 0, items });
const stored = (...items: Place[]): HistoryEvent => ({
  type: "push-answered",
  atMs: 0,
  items,
  outcome: "stored",
});
const refused = (...items: Place[]): HistoryEvent => ({
  type: "push-answered",
  atMs: 0,
  items,
  outcome: "refused",
});
const popped = (lease: string, messages: Place[], atMs = 0): HistoryEvent => ({
  type: "popped",
  atMs,
  sentAtMs: atMs,
  group: "g",
  lease,
  leaseMs: 10_000,
  messages,
});
type Status = "completed" | "failed" | "dlq" | "retry";
const ackSent = (lease: string, messages: Place[], status: Status = "completed"): HistoryEvent => ({
  type: "ack-sent",
  atMs: 0,
  group: "g",
  lease,
  status,
  messages,
});
const acked = (lease: string, messages: Place[], status: Status = "completed"): HistoryEvent => ({
  type: "acked",
  atMs: 0,
  group: "g",
  lease,
  status,
  messages,
});

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
  groups: ["g"],
  log: ["a", "b", "c"].map((value, offset) => ({ ...at(value), offset })),
  deadLetters: [],
};

const rules = (history: readonly HistoryEvent[], state: FinalState = LOG): Rule[] =>
  check(history, state).map((violation) => violation.rule);

test("a history that keeps every promise has no violation", () => {
  assert.deepEqual(check(GOOD, LOG), []);
});

test("what was in doubt may be there or not, may be pushed again, and may be delivered", () => {
  const again = [sent(at("d")), sent(at("d")), stored(at("d"))];
  const log = [...LOG.log, { ...at("d"), offset: 3 }];
  assert.deepEqual(check([...GOOD, sent(at("d"))], LOG), []);
  assert.deepEqual(check([...GOOD, ...again, popped("L3", [at("d")])], { ...LOG, log }), []);
});

test("a message whose ack had no answer may come again", () => {
  const history = GOOD.filter((event) => event.type !== "acked" || event.lease !== "L2");
  assert.deepEqual(check([...history, popped("L3", [at("c")], 20_000)], LOG), []);
});

test("a dead letter is not lost", () => {
  const history = GOOD.filter((event) => !("lease" in event && event.lease === "L2"));
  assert.deepEqual(rules(history), ["lost"]);
  assert.deepEqual(rules(history, { ...LOG, deadLetters: [{ ...at("c"), group: "g" }] }), []);
});

test("lost: answered and not in the log", () => {
  const history = GOOD.filter((event) => !("lease" in event && event.lease === "L2"));
  assert.deepEqual(rules(history, { ...LOG, log: LOG.log.slice(0, 2) }), ["lost"]);
});

test("lost: in the log and never delivered to a group", () => {
  const forOther = GOOD.map((event) => ("group" in event ? { ...event, group: "other" } : event));
  assert.deepEqual(rules([...GOOD, ...forOther.slice(4, 7)], { ...LOG, groups: ["g", "other"] }), ["lost"]);
});

test("phantom: delivered and never pushed", () => {
  assert.deepEqual(rules([...GOOD, popped("L3", [at("x")])]), ["phantom"]);
});

test("phantom: stored and never pushed, or refused every time", () => {
  const log = [...LOG.log, { ...at("x"), offset: 3 }];
  const dead = [{ ...at("x"), group: "g" }];
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
  assert.deepEqual(rules(GOOD, { ...LOG, log: [...LOG.log, { ...at("a"), offset: 3 }] }), [
    "duplicate entry",
  ]);
});

test("the same transactionId in two partitions is two messages", () => {
  const history = [...GOOD, sent(at("a", "q")), stored(at("a", "q")), popped("L3", [at("a", "q")])];
  assert.deepEqual(check(history, { ...LOG, log: [...LOG.log, { ...at("a", "q"), offset: 0 }] }), []);
});

test("gap: offsets are not dense", () => {
  const log = LOG.log.map((entry) => (entry.value === "c" ? { ...entry, offset: 3 } : entry));
  assert.deepEqual(rules(GOOD, { ...LOG, log }), ["gap"]);
});

test("log order: a push that was answered before another was sent stands behind it", () => {
  const order = ["b", "a", "c"];
  const log = order.map((value, offset) => ({ ...at(value), offset }));
  assert.deepEqual(rules(GOOD, { ...LOG, log }), ["log order", "delivery order"]);
  const together = [sent(at("b"), at("c")), sent(at("a")), stored(at("a")), stored(at("b"), at("c"))];
  const delivered = popped("L1", [at("b"), at("a"), at("c")]);
  assert.deepEqual(rules([...together, delivered], { ...LOG, log }), []);
});

test("delivery order: first deliveries leave the log's order", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("b"), at("a"), at("c")])];
  assert.deepEqual(rules(history), ["delivery order"]);
});

test("a second delivery of an earlier message is no matter of order", () => {
  const history = [...GOOD.slice(0, 4), popped("L1", [at("a"), at("b")])];
  history.push(popped("L2", [at("a"), at("b"), at("c")], 20_000));
  assert.deepEqual(check(history, LOG), []);
});

test("redelivered after ack", () => {
  assert.deepEqual(rules([...GOOD, popped("L3", [at("c")], 20_000)]), ["redelivered after ack"]);
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
    const given = partly.map((event) => ("status" in event ? { ...event, status } : event));
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
