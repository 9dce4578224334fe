import assert from "node:assert/strict";
import { test } from "node:test";
import { messageId, messageIdPrefix, parseLeaseId, partitionId } from "@queen/protocol";
import { Keyring } from "../src/operations/encryption.ts";
import { popAnswer, type TakenLane } from "../src/operations/pop-answer.ts";
import { makeSegments, type Segment } from "../src/operations/segment.ts";

const keyring = new Keyring([], () => assert.fail("nothing is sealed here"));

/** A segment of messages m<first>, m<first + 1>, … */
function segmentOf(firstOffset: number, count: number): Segment {
  const messages = Array.from({ length: count }, (_, index) => ({
    fragment:
      `"transactionId":"m${firstOffset + index}","traceId":null,"producerSub":null,` +
      `"data":{"n":${firstOffset + index}}`,
    keyHigh: 0,
    keyLow: 0,
  }));
  const [made] = makeSegments(messages);
  return {
    firstOffset,
    count,
    createdAtUs: firstOffset * 1_000_000,
    ends: made!.ends.toString("latin1"),
    body: made!.body,
  };
}

const lane = (partition: number, fields: Partial<TakenLane>): TakenLane => ({
  queueJson: '"q"',
  partitionJson: JSON.stringify(`p${partition}`),
  partition,
  partitionId: partitionId(partition),
  messageIdPrefix: messageIdPrefix(partition),
  from: 0,
  to: 0,
  acked: [],
  segments: [],
  ...fields,
});

const read = (lanes: readonly TakenLane[], token: number | undefined = 7) => {
  const { body, messages } = popAnswer(lanes, '"g"', token, keyring);
  const answer = JSON.parse(body);
  assert.equal(answer.messages.length, messages);
  return answer;
};

test("the answer has the contract's fields, for itself and for every message", () => {
  const answer = read([lane(3, { from: 4, to: 5, segments: [segmentOf(4, 1)] })]);
  const { leaseId } = answer;
  assert.deepEqual(parseLeaseId(leaseId), { token: 7, partitions: [3] });
  assert.deepEqual(answer, {
    success: true,
    queue: "q",
    partition: "p3",
    partitionId: partitionId(3),
    leaseId,
    consumerGroup: "g",
    partitionsClaimed: 1,
    messages: [
      {
        id: messageId(3, 4),
        transactionId: "m4",
        traceId: null,
        producerSub: null,
        data: { n: 4 },
        createdAt: "2000-01-01T00:00:04.000000Z",
        partitionId: partitionId(3),
        partition: "p3",
        leaseId,
        consumerGroup: "g",
      },
    ],
  });
});

const ids = (answer: { messages: { transactionId: string }[] }): string[] =>
  answer.messages.map((message) => message.transactionId);

test("only the range is cut out, also where it begins and ends inside segments", () => {
  const segments = [segmentOf(0, 3), segmentOf(3, 3), segmentOf(6, 3)];
  assert.deepEqual(ids(read([lane(1, { from: 1, to: 8, segments })])), [
    "m1",
    "m2",
    "m3",
    "m4",
    "m5",
    "m6",
    "m7",
  ]);
  assert.deepEqual(ids(read([lane(1, { from: 4, to: 5, segments })])), ["m4"]);
});

test("what the group has finished is left out", () => {
  const segments = [segmentOf(0, 6)];
  assert.deepEqual(ids(read([lane(1, { from: 0, to: 6, acked: [1, 3, 4, 5], segments })])), [
    "m0",
    "m3",
    "m5",
  ]);
});

test("several lanes stand one after the other under one lease that names them all", () => {
  const answer = read([
    lane(9, { from: 0, to: 2, segments: [segmentOf(0, 2)] }),
    lane(2, { from: 5, to: 6, segments: [segmentOf(5, 1)] }),
  ]);
  assert.deepEqual(ids(answer), ["m0", "m1", "m5"]);
  assert.deepEqual(
    answer.messages.map((message: { partition: string }) => message.partition),
    ["p9", "p9", "p2"],
  );
  assert.equal(answer.partition, "p9");
  assert.equal(answer.partitionsClaimed, 2);
  assert.deepEqual(parseLeaseId(answer.leaseId), { token: 7, partitions: [2, 9] });
});

test("without a token there is no lease", () => {
  const { body } = popAnswer(
    [lane(1, { from: 0, to: 1, segments: [segmentOf(0, 1)] })],
    '"g"',
    undefined,
    keyring,
  );
  const answer = JSON.parse(body);
  assert.equal(answer.leaseId, "");
  assert.equal(answer.messages[0].leaseId, "");
});

test("bytes of a payload pass as they are", () => {
  const payload = Buffer.from('{"é":"\\ud800 😀","n":12345678901234567890}').toString("latin1");
  const body = `"transactionId":"t","traceId":null,"producerSub":null,"data":${payload}`;
  const ends = Buffer.alloc(4);
  ends.writeUInt32BE(body.length);
  const segment = { firstOffset: 0, count: 1, createdAtUs: 0, ends: ends.toString("latin1"), body };
  const answer = popAnswer([lane(1, { from: 0, to: 1, segments: [segment] })], '"g"', 1, keyring);
  assert.ok(answer.body.includes(`"data":${payload},"createdAt"`));
});
