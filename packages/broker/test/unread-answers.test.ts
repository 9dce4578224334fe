import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outgoing, UnreadAnswers } from "../src/http/unread-answers.ts";

const KB = 1024;

function answers(bytesMax: number) {
  const clock = { ms: 0 };
  const unread = new UnreadAnswers({ bytesMax, now: () => clock.ms });
  const cut: string[] = [];
  const add = (name: string, bytes: number): Outgoing => {
    const response = {
      writableFinished: false,
      setTimeout: () => response,
      destroy: () => cut.push(name),
    };
    unread.add(response, bytes);
    return response;
  };
  return { unread, clock, cut, add };
}

test("what is read counts no longer, and small answers never do", () => {
  const { unread, add } = answers(100 * KB);
  const one = add("one", 60 * KB);
  add("small", 8 * KB);
  assert.equal(unread.bytes, 60 * KB);
  unread.remove(one);
  unread.remove(one);
  assert.equal(unread.bytes, 0);
});

test("where there is too much, the oldest that had time to be read are cut", () => {
  const { unread, clock, cut, add } = answers(100 * KB);
  add("old", 60 * KB);
  clock.ms = 600;
  add("new", 40 * KB);
  assert.deepEqual(cut, []);
  add("newer", 30 * KB);
  assert.deepEqual(cut, ["old"]);
  assert.equal(unread.bytes, 70 * KB);
});

test("who had no time yet is cut only where there is eight times too much, and the newest never", () => {
  const { cut, add } = answers(100 * KB);
  for (const name of ["one", "two", "three", "four"]) add(name, 200 * KB);
  assert.deepEqual(cut, []);
  add("five", 200 * KB);
  assert.deepEqual(cut, ["one"]);
  add("huge", 900 * KB);
  assert.deepEqual(cut, ["one", "two", "three", "four", "five"]);
});

test("who reads slowly is not cut, and one behind it that does not read is", () => {
  const { unread, clock, cut, add } = answers(100 * KB);
  const slow = add("slow", 60 * KB);
  add("dead", 60 * KB);
  clock.ms = 600;
  unread.progressed(slow);
  add("new", 10 * KB);
  add("newer", 20 * KB);
  assert.deepEqual(cut, ["dead"]);
});
