/** What acks become when they are sent: ranges where messages stand side by side, and nothing is lost or added. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { messageId, partitionId } from "@queen/protocol";
import fc from "fast-check";
import type { Ack } from "../src/data-plane.ts";
import { sentAcks } from "../src/sent-acks.ts";

interface Place {
  readonly partition: number;
  readonly offset: number;
  readonly leaseId?: string;
  readonly status?: Ack["status"];
}

const ackOf = ({ partition, offset, leaseId = "lease", status = "completed" }: Place): Ack => ({
  message: {
    id: messageId(partition, offset),
    transactionId: `${partition}/${offset}`,
    partitionId: partitionId(partition),
    leaseId,
  },
  status,
  error: status === "failed" ? "why" : undefined,
});

const lane = (from: number, to: number, more: Partial<Place> = {}): Ack[] =>
  Array.from({ length: to - from }, (_, index) => ackOf({ partition: 7, offset: from + index, ...more }));

const range = (first: number, last: number, partition = 7) => ({
  firstId: messageId(partition, first),
  lastId: messageId(partition, last),
  leaseId: "lease",
  status: "completed",
});

test("a whole delivery is one range", () => {
  assert.deepEqual(sentAcks(lane(4_094, 4_099)), [{ acks: 5, json: range(4_094, 4_098) }]);
});

test("a gap, another lane, another lease, another status or another order ends a range", () => {
  const one = (offset: number, more: Partial<Place> = {}) =>
    sentAcks([ackOf({ partition: 7, offset, ...more })])[0];
  const pair = (first: number) => ({ acks: 2, json: range(first, first + 1) });
  for (const [name, next] of [
    ["a gap", { offset: 3 }],
    ["another lane", { partition: 8, offset: 2 }],
    ["another lease", { offset: 2, leaseId: "other" }],
    ["another status", { offset: 2, status: "failed" as const }],
    ["the same again", { offset: 1 }],
    ["another order", { offset: 0 }],
  ] as const)
    assert.deepEqual(
      sentAcks([...lane(0, 2), ackOf({ partition: 7, ...next })]),
      [pair(0), one(next.offset, next)],
      name,
    );
});

test("a single message, a failure, and what has no lease are sent by themselves", () => {
  const json = { transactionId: "7/0", partitionId: partitionId(7) };
  assert.deepEqual(sentAcks(lane(0, 1)), [
    { acks: 1, json: { ...json, status: "completed", leaseId: "lease" } },
  ]);
  assert.deepEqual(
    sentAcks(lane(0, 2, { leaseId: "" })).map(({ json }) => json),
    [
      { ...json, status: "completed" },
      { ...json, transactionId: "7/1", status: "completed" },
    ],
  );
  assert.deepEqual(sentAcks(lane(0, 2, { status: "failed" })).length, 2);
  assert.deepEqual(sentAcks(lane(0, 1, { status: "failed" }))[0]!.json, {
    ...json,
    status: "failed",
    leaseId: "lease",
    error: "why",
  });
});

test("ids that do not say where a message is are sent one by one", () => {
  const foreign = lane(0, 3).map((ack, index) => ({
    ...ack,
    message: { ...ack.message, id: `0192f3a4-5b6c-7d8e-9f00-00000000000${index}` },
  }));
  assert.deepEqual(
    sentAcks(foreign).map(({ acks }) => acks),
    [1, 1, 1],
  );
});

test("whatever is acked, in any order, is covered exactly, in that order", () => {
  const place = fc.record({
    partition: fc.constantFrom(1, 2),
    offset: fc.nat({ max: 6 }),
    leaseId: fc.constantFrom("lease", "other", ""),
    status: fc.constantFrom<Ack["status"]>("completed", "completed", "completed", "failed"),
  });
  fc.assert(
    fc.property(fc.array(place, { maxLength: 30 }), (places) => {
      const acks = places.map(ackOf);
      const covered = sentAcks(acks).flatMap(({ acks, json }) => {
        const { firstId, transactionId } = json as { firstId?: string; transactionId?: string };
        if (firstId === undefined) return [transactionId];
        const partition = Number.parseInt(firstId.slice(0, 8) + firstId.slice(9, 13), 16);
        const first = Number.parseInt(firstId.slice(24), 16);
        return Array.from({ length: acks }, (_, index) => `${partition}/${first + index}`);
      });
      assert.deepEqual(
        covered,
        acks.map(({ message }) => message.transactionId),
      );
    }),
  );
});
