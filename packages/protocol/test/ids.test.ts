import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  deadLetterId,
  LEASE_TOKEN_LIMIT,
  leaseId,
  messageId,
  messageIdPrefix,
  offsetSuffix,
  POP_PARTITIONS_MAX,
  parseDeadLetterId,
  parseLeaseId,
  parseMessageId,
  parsePartitionId,
  partitionId,
  queueId,
  traceRecordId,
} from "../src/index.ts";

const number48 = fc.oneof(
  fc.maxSafeNat().map((n) => n % 2 ** 48),
  fc.constantFrom(0, 1, 2 ** 32, 2 ** 48 - 1),
);
const token = fc.oneof(
  fc.maxSafeNat().map((n) => n % LEASE_TOKEN_LIMIT),
  fc.constantFrom(0, 1, LEASE_TOKEN_LIMIT - 1),
);
const UUID_V8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

test("ids have the forms that the page on the wire shows", () => {
  assert.equal(messageId(0x123456789abc, 0xdef), "12345678-9abc-8001-8000-000000000def");
  assert.equal(partitionId(0x123456789abc), "12345678-9abc-8002-8000-000000000000");
  assert.equal(queueId(7), "00000000-0007-8003-8000-000000000000");
  assert.equal(deadLetterId(7), "00000000-0007-8004-8000-000000000000");
  assert.equal(traceRecordId(7), "00000000-0007-8005-8000-000000000000");
  assert.equal(
    leaseId({ token: 0xabcdef1234567, partitions: [5, 6, 16, 19] }),
    "00000000-0005-8abc-8def-123456700000.1.a.3",
  );
});

test("every id is a UUID of version 8, and a message's has its partition's prefix", () => {
  fc.assert(
    fc.property(number48, number48, token, (partition, offset, token) => {
      const ids = [
        messageId(partition, offset),
        partitionId(partition),
        queueId(partition),
        deadLetterId(partition),
        leaseId({ token, partitions: [partition] }),
      ];
      for (const id of ids) assert.match(id, UUID_V8);
      assert.equal(messageIdPrefix(partition) + offsetSuffix(offset), messageId(partition, offset));
    }),
  );
});

test("what is made of numbers comes back as the same numbers, in either case of letters", () => {
  fc.assert(
    fc.property(number48, number48, (partition, offset) => {
      assert.equal(parsePartitionId(partitionId(partition)), partition);
      assert.equal(parsePartitionId(partitionId(partition).toUpperCase()), partition);
      assert.equal(parseDeadLetterId(deadLetterId(partition)), partition);
      assert.deepEqual(parseMessageId(messageId(partition, offset)), { partition, offset });
    }),
  );
});

test("different numbers have different ids, whatever they name", () => {
  fc.assert(
    fc.property(number48, number48, number48, (a, b, offset) => {
      fc.pre(a !== b);
      const ids = [a, b].flatMap((n) => [messageId(n, offset), partitionId(n), queueId(n), deadLetterId(n)]);
      assert.equal(new Set(ids).size, ids.length);
    }),
  );
});

test("a lease id gives back its token and its partitions in ascending order", () => {
  const partitions = fc.uniqueArray(number48, { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(token, partitions, (token, partitions) => {
      const parsed = parseLeaseId(leaseId({ token, partitions }));
      assert.deepEqual(parsed, { token, partitions: partitions.toSorted((a, b) => a - b) });
    }),
  );
});

test("a lease over as many partitions as a pop may take has an id that is read again", () => {
  const partitions = Array.from({ length: POP_PARTITIONS_MAX }, (_, n) => n * 1_000 + 1);
  assert.deepEqual(parseLeaseId(leaseId({ token: 1, partitions })), { token: 1, partitions });
});

test("no parser takes an id of another kind for its own", () => {
  const ids = {
    message: messageId(3, 4),
    partition: partitionId(3),
    queue: queueId(3),
    letter: deadLetterId(3),
  };
  const readers = { message: parseMessageId, partition: parsePartitionId, letter: parseDeadLetterId };
  for (const [kind, read] of Object.entries(readers)) {
    for (const [other, id] of Object.entries(ids)) {
      assert.equal(read(id) !== undefined, kind === other, `${other} read as ${kind}`);
    }
  }
});

test("any other text is no id, and nothing throws", () => {
  const texts = [
    "",
    "3",
    "not an id",
    "550e8400-e29b-41d4-a716-446655440000",
    `${partitionId(1)} `,
    ` ${partitionId(1)}`,
    `${partitionId(1)}\n`,
    partitionId(1).slice(1),
    partitionId(1).replaceAll("-", ""),
  ];
  for (const text of texts) {
    assert.equal(parsePartitionId(text), undefined, JSON.stringify(text));
    assert.equal(parseMessageId(text), undefined, JSON.stringify(text));
    assert.equal(parseDeadLetterId(text), undefined, JSON.stringify(text));
  }
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.uuid()), (text) => {
      for (const read of [parsePartitionId, parseMessageId, parseDeadLetterId, parseLeaseId]) read(text);
    }),
  );
});

test("a lease id that no broker made names nothing", () => {
  const good = leaseId({ token: 1, partitions: [1, 2] });
  for (const text of [
    "",
    "550e8400-e29b-41d4-a716-446655440000",
    `${good}.`,
    `${good}..1`,
    `${good}.-1`,
    `${good}.1 `,
    good.replace("00000.", "00001."),
    // Numbers that no partition can have: they would not even fit into the call.
    `${good}.zzzzzzzzzz`,
    good + ".1".repeat(POP_PARTITIONS_MAX),
  ]) {
    assert.equal(parseLeaseId(text), undefined, text);
  }
});
