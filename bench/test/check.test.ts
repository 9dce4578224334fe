/** A check that never fails proves nothing: each kind of anomaly is planted once, and must be found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ledger, mergeVerdicts, type Reader, type ReceivedMessage, type Verdict } from "../check.ts";

const PARTITIONS = 3;

/** Twelve confirmed messages of one producer, four in each partition: message n is in partition n mod 3. */
function sentLedger(): Ledger {
  const ledger = new Ledger({ partitions: PARTITIONS, producers: 2 });
  for (let number = 0; number < 12; number += 1) {
    assert.equal(ledger.send(number % PARTITIONS), number);
    ledger.confirm(number);
  }
  return ledger;
}

const message = (number: number, partition = number % PARTITIONS, producer = 0): ReceivedMessage => ({
  partition: `p${partition}`,
  data: { s: number, c: producer, t: 0 },
});

const ALL = Array.from({ length: 12 }, (_, number) => number);

/** One answer after the other, none overlapping: pop k is sent at 2k and answered at 2k + 1. */
function receiveInTurn(reader: Reader, answers: readonly (readonly ReceivedMessage[])[]): void {
  for (const [turn, messages] of answers.entries()) reader.receive(messages, 2 * turn, 2 * turn + 1);
}

function verdictOn(answers: readonly (readonly ReceivedMessage[])[]): Verdict {
  const ledger = sentLedger();
  receiveInTurn(ledger.reader(), answers);
  return ledger.verdict();
}

test("a ledger holds what bare HTTP takes in one run of a fast machine", () => {
  const ledger = new Ledger({ partitions: 1, producers: 1 });
  const count = 20_000_000;
  for (let number = 0; number < count; number += 1) ledger.send(0);
  ledger.confirm(count - 1);
  assert.equal(ledger.partitionOf(count - 1), 0);
  assert.equal(ledger.confirmedCount, 1);
});

test("every message once and in order is correct, whatever the order of the partitions", () => {
  const byPartition = [2, 0, 1].map((partition) =>
    ALL.filter((number) => number % PARTITIONS === partition).map((number) => message(number)),
  );
  for (const answers of [[ALL.map((number) => message(number))], byPartition]) {
    const verdict = verdictOn(answers);
    assert.equal(verdict.correct, true);
    assert.equal(verdict.received, 12);
    assert.deepEqual(verdict.examples, []);
  }
});

test("a lost message is missing", () => {
  const verdict = verdictOn([ALL.filter((number) => number !== 7).map((number) => message(number))]);
  assert.equal(verdict.correct, false);
  assert.equal(verdict.missing, 1);
  assert.deepEqual(verdict.examples, ["message 7 of partition p1 is missing"]);
});

test("a lost message and a duplicate do not cancel out, though the count is right", () => {
  const numbers = ALL.map((number) => (number === 7 ? 4 : number));
  const verdict = verdictOn([numbers.map((number) => message(number))]);
  assert.equal(verdict.received, 12);
  assert.equal(verdict.correct, false);
  assert.equal(verdict.missing, 1);
  assert.equal(verdict.duplicated, 1);
});

test("a message that comes again is duplicated, in the same answer and in a later one", () => {
  const once = ALL.map((number) => message(number));
  for (const answers of [[[...once, message(11)]], [once, [message(0)]]]) {
    const verdict = verdictOn(answers);
    assert.equal(verdict.correct, false);
    assert.equal(verdict.duplicated, 1);
    assert.equal(verdict.missing, 0);
  }
});

test("two messages of one partition in the wrong order are reordered, within an answer and across two", () => {
  const swapped = ALL.map((number) => (number === 3 ? 6 : number === 6 ? 3 : number));
  const within = [swapped.map((number) => message(number))];
  const across = [swapped.slice(0, 5), swapped.slice(5)].map((half) => half.map((number) => message(number)));
  for (const answers of [within, across]) {
    const verdict = verdictOn(answers);
    assert.equal(verdict.correct, false);
    assert.equal(verdict.reordered, 1);
    assert.equal(verdict.missing + verdict.duplicated, 0);
  }
});

test("answers to pops that overlapped may arrive in either order, unless a lease excludes the overlap", () => {
  const later = ALL.slice(6).map((number) => message(number));
  const earlier = ALL.slice(0, 6).map((number) => message(number));

  const autoAcked = sentLedger();
  const reader = autoAcked.reader();
  reader.receive(later, 1, 10);
  reader.receive(earlier, 2, 11);
  assert.equal(autoAcked.verdict().correct, true);

  const leased = sentLedger();
  const leasedReader = leased.reader();
  leasedReader.receive(later, Infinity, 10);
  leasedReader.receive(earlier, Infinity, 11);
  assert.equal(leased.verdict().reordered, 6);
});

test("messages of two producers in one partition have no order between them", () => {
  const ledger = new Ledger({ partitions: 1, producers: 2 });
  for (let number = 0; number < 4; number += 1) ledger.confirm(ledger.send(0));
  const producerOf = (number: number): number => number % 2;
  const reader = ledger.reader();
  reader.receive(
    [1, 3, 0, 2].map((number) => message(number, 0, producerOf(number))),
    Infinity,
    1,
  );
  assert.equal(ledger.verdict().correct, true);
});

test("a message in another partition than its own is misplaced, one that was never sent is unknown", () => {
  const misplaced = verdictOn([ALL.map((number) => message(number, number === 5 ? 0 : undefined))]);
  assert.equal(misplaced.correct, false);
  assert.equal(misplaced.misplaced, 1);

  const unknown = verdictOn([[...ALL, 99].map((number) => message(number))]);
  assert.equal(unknown.correct, false);
  assert.equal(unknown.unknown, 1);
});

test("a push without an answer may have stored its message or not, but not twice", () => {
  const ledger = sentLedger();
  const doubtful = ledger.send(0);
  assert.equal(doubtful, 12);
  const absent = ledger.reader();
  receiveInTurn(absent, [ALL.map((number) => message(number))]);
  assert.equal(ledger.verdict().correct, true);

  const present = ledger.reader();
  receiveInTurn(present, [[...ALL, doubtful].map((number) => message(number))]);
  assert.equal(ledger.verdict().correct, true);
  assert.equal(ledger.verdict().unconfirmedReceived, 1);

  present.receive([message(doubtful)], 100, 101);
  assert.equal(ledger.verdict().duplicated, 1);
});

test("each consumer group must receive everything", () => {
  const ledger = sentLedger();
  receiveInTurn(ledger.reader(), [ALL.map((number) => message(number))]);
  receiveInTurn(ledger.reader(), [ALL.slice(0, 11).map((number) => message(number))]);
  const verdict = ledger.verdict();
  assert.equal(verdict.correct, false);
  assert.equal(verdict.missing, 1);
});

test("a refused acknowledgement makes a run wrong, and one wrong ledger makes the merged verdict wrong", () => {
  const refused = sentLedger();
  receiveInTurn(refused.reader(), [ALL.map((number) => message(number))]);
  const before = refused.verdict();
  refused.acksRefused += 1;
  assert.equal(before.correct, true);
  assert.equal(refused.verdict().correct, false);
  assert.equal(mergeVerdicts([before, refused.verdict()]).correct, false);
  assert.equal(mergeVerdicts([before, before]).received, 24);
});

test("a ledger grows with the run", () => {
  const ledger = new Ledger({ partitions: 1, producers: 1 });
  const reader = ledger.reader();
  const messages: ReceivedMessage[] = [];
  for (let count = 0; count < 200_000; count += 1) {
    const number = ledger.send(0);
    ledger.confirm(number);
    messages.push(message(number, 0));
  }
  assert.equal(reader.complete, false);
  reader.receive(messages, Infinity, 1);
  assert.equal(reader.complete, true);
  assert.equal(ledger.verdict().correct, true);
});
