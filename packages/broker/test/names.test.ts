import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError, NAME_LENGTH_MAX } from "@queen/protocol";
import fc from "fast-check";
import { checkName, type NameOptions } from "../src/operations/names.ts";

function problem(text: unknown, field = "queue", options?: NameOptions): string {
  try {
    checkName(text, field, options);
  } catch (error) {
    assert.ok(error instanceof BrokerError);
    assert.equal(error.code, "VALIDATION_FAILED");
    return error.message;
  }
  assert.fail(`${JSON.stringify(text)} was accepted`);
}

test("ordinary names come back as they are", () => {
  for (const name of [
    "q",
    "Default",
    "orders.incoming",
    " ",
    "a/b?c=d",
    "日本語",
    "😀",
    "\u0080\u009f",
    "\uffff",
  ]) {
    assert.equal(checkName(name, "queue"), name);
  }
});

test("anything but a string is refused", () => {
  for (const value of [undefined, null, 0, true, {}, [], ["q"]]) {
    assert.equal(problem(value), "queue: Queue must be a string");
  }
});

test("the message names the field, and its last part is the subject", () => {
  assert.equal(problem(1, "items[3].partition"), "items[3].partition: Partition must be a string");
  assert.equal(problem(1, "consumerGroup"), "consumerGroup: ConsumerGroup must be a string");
});

test("the empty name is refused unless it is allowed", () => {
  assert.equal(problem(""), "queue: Queue must not be empty");
  assert.equal(checkName("", "queue", { allowEmpty: true }), "");
});

test("length is counted in code points", () => {
  assert.equal(checkName("x".repeat(NAME_LENGTH_MAX), "queue").length, NAME_LENGTH_MAX);
  assert.equal(checkName("😀".repeat(NAME_LENGTH_MAX), "queue").length, 2 * NAME_LENGTH_MAX);
  const tooLong = `queue: Queue must have at most ${NAME_LENGTH_MAX} characters`;
  assert.equal(problem("x".repeat(NAME_LENGTH_MAX + 1)), tooLong);
  assert.equal(problem("😀".repeat(NAME_LENGTH_MAX + 1)), tooLong);
  assert.equal(problem(`${"😀".repeat(NAME_LENGTH_MAX)}x`), tooLong);
  assert.equal(problem("abc", "queue", { lengthMax: 2 }), "queue: Queue must have at most 2 characters");
});

test("control characters are refused", () => {
  for (let code = 0; code < 0x20; code++) {
    assert.equal(
      problem(`a${String.fromCharCode(code)}`),
      "queue: Queue must not contain control characters",
    );
  }
  assert.equal(problem("\u007f"), "queue: Queue must not contain control characters");
});

test("unpaired surrogates are refused", () => {
  for (const name of ["\ud800", "a\udfff", "\udc00\ud800", "😀\ud83d"]) {
    assert.equal(problem(name), "queue: Queue must not contain unpaired surrogates");
  }
});

test("a name that is accepted survives UTF-8", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: NAME_LENGTH_MAX }), (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters under test.
      if (/[\u0000-\u001f\u007f]/.test(text)) problem(text);
      else assert.equal(Buffer.from(checkName(text, "queue")).toString(), text);
    }),
  );
});
