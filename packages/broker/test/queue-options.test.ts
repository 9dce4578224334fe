import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import {
  parseQueueOptions as parse,
  QUEUE_OPTIONS,
  showQueueOptions,
} from "../src/operations/queue-options.ts";

const parseQueueOptions = (options: unknown) => parse(options, true);

const refuses = (options: unknown, message: RegExp): void => {
  assert.throws(
    () => parseQueueOptions(options),
    (error) =>
      error instanceof BrokerError && error.code === "VALIDATION_FAILED" && message.test(error.message),
  );
};

// The contract's fifteen, which clients compare in the answer, and our own.
const NAMES = [
  ...["leaseTime", "retryLimit", "retryDelay", "maxSize", "ttl", "deadLetterQueue", "dlqAfterMaxRetries"],
  ...["priority", "delayedProcessing", "windowBuffer", "retentionSeconds", "completedRetentionSeconds"],
  ...["retentionEnabled", "encryptionEnabled", "maxWaitTimeSeconds"],
  ...["dedupWindowSeconds", "dedupMessagesMin", "dedupMessagesMax"],
];

test("the options are those of the contract, and ours", () => {
  assert.deepEqual(Object.keys(QUEUE_OPTIONS).sort(), NAMES.toSorted());
});

test("no options are no columns", () => {
  for (const options of [undefined, null, {}]) {
    assert.deepEqual(parseQueueOptions(options), { columns: {}, unknown: [] });
  }
});

test("an option goes to its column; null stands for not named", () => {
  assert.deepEqual(parseQueueOptions({ leaseTime: 5, retentionEnabled: true, ttl: null }), {
    columns: { lease_time: 5, retention_enabled: true },
    unknown: [],
  });
});

test("a whole number may come as a text of digits", () => {
  assert.deepEqual(parseQueueOptions({ leaseTime: "60" }).columns, { lease_time: 60 });
  refuses({ leaseTime: " 60" }, /^options\.leaseTime must be a whole number from 0 to \d+\.$/);
});

test("options that do not exist are named and ignored, also those that every object has", () => {
  assert.deepEqual(parseQueueOptions({ color: "red", constructor: 1, toString: 1, priority: 3 }), {
    columns: { priority: 3 },
    unknown: ["color", "constructor", "toString"],
  });
});

test("options that are no object are refused", () => {
  for (const options of [[], "x", 1, true]) refuses(options, /^options must be an object\.$/);
});

for (const [name, option] of Object.entries(QUEUE_OPTIONS)) {
  test(`${name} takes what its column holds, and nothing else`, () => {
    if (option.kind === "boolean") {
      for (const value of [0, 1, "true", {}, []])
        refuses({ [name]: value }, new RegExp(`^options\\.${name} `));
      assert.equal(parseQueueOptions({ [name]: false }).columns[option.column], false);
      return;
    }
    const max = option.max ?? 2 ** 31 - 1;
    assert.ok(max <= 2 ** 31 - 1, "it fits into an int4");
    for (const value of [0, max]) {
      assert.equal(parseQueueOptions({ [name]: value }).columns[option.column], value);
    }
    for (const value of [-1, 1.5, max + 1, 1e300, Number.NaN, true, "", "x", {}, []]) {
      refuses(
        { [name]: value },
        new RegExp(`^options\\.${name} must be a whole number from 0 to ${max}\\.$`),
      );
    }
  });
}

test("encryption is refused where there is no key, and can always be switched off", () => {
  assert.deepEqual(parse({ encryptionEnabled: true }, true).columns, { encryption_enabled: true });
  assert.deepEqual(parse({ encryptionEnabled: false }, false).columns, { encryption_enabled: false });
  assert.throws(() => parse({ encryptionEnabled: true }, false), /QUEEN_ENCRYPTION_KEY/);
});

test("all options are shown with the types that clients compare", () => {
  const row = Object.fromEntries(
    Object.values(QUEUE_OPTIONS).map(({ column, kind }) => [column, kind === "boolean" ? null : 7]),
  );
  const shown = showQueueOptions({ ...row, retention_enabled: true });
  assert.deepEqual(Object.keys(shown).sort(), NAMES.toSorted());
  assert.equal(shown.leaseTime, 7);
  assert.equal(shown.retentionEnabled, true);
  assert.equal(shown.deadLetterQueue, false, "not said is shown as false, as clients know it");
});
