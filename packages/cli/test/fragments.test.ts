import assert from "node:assert/strict";
import { test } from "node:test";
import { fragmentsOf } from "../src/adopt/fragments.ts";
import type { SourceMessage } from "../src/adopt/source.ts";

const message = (atUs: number, payload = "1"): SourceMessage => ({
  atUs,
  id: "00000000-0000-7000-8000-000000000000",
  transactionId: `t${atUs}`,
  traceId: null,
  producerSub: null,
  isEncrypted: false,
  payload,
});

test("a segment has messages of one time only, and not too many of them", () => {
  const messages = [message(1), message(1), message(2), message(2), message(1)];
  assert.deepEqual(fragmentsOf(messages, []).segments, [1, 1, 2, 2, 3]);
  const many = fragmentsOf(
    Array.from({ length: 300 }, () => message(1)),
    [],
  ).segments;
  assert.deepEqual([many[127], many[128], many[299]], [1, 2, 3]);
  const large = [message(1, `"${"x".repeat(70_000)}"`), message(1), message(1)];
  assert.deepEqual(fragmentsOf(large, []).segments, [1, 2, 2]);
});

test("a fragment has the payload as PostgreSQL writes it", () => {
  const [bytes] = fragmentsOf([message(7, '{"a": 1.10}')], []).bytes;
  assert.equal(
    bytes!.toString(),
    '"transactionId":"t7","traceId":null,"producerSub":null,"data":{"a": 1.10}',
  );
});
