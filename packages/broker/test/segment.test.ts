import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  fragmentEnd,
  hasTransactionId,
  makeSegments,
  SEGMENT_BYTES_MAX,
  SEGMENT_MESSAGES_MAX,
  type Storable,
  traceIdJson,
  traceparentOf,
  transactionIdJson,
} from "../src/operations/segment.ts";

const fragment = (transactionId: string, traceId: string | null, data: unknown): string =>
  Buffer.from(
    `"transactionId":${JSON.stringify(transactionId)},"traceId":${JSON.stringify(traceId)},"producerSub":null,` +
      `"data":${JSON.stringify(data)}`,
  ).toString("latin1");

const storable = (text: string, n = 0): Storable => ({ fragment: text, keyHigh: 0x80000000 + n, keyLow: n });

test("a fragment's transactionId and traceId are found as they stand there", () => {
  const text = fragment('a","traceId":"x', "00000000-0000-0000-0000-000000000001", { traceId: 1 });
  assert.equal(transactionIdJson(text), '"a\\",\\"traceId\\":\\"x"');
  assert.equal(traceIdJson(text), '"00000000-0000-0000-0000-000000000001"');
  assert.equal(traceIdJson(fragment("t", null, ",")), "null");
});

test("a fragment's traceparent is found in its header only", () => {
  const carried = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const field = `,"traceparent":"${carried}"`;
  const id = `a${field},"data":`;
  assert.equal(traceparentOf(fragment(id, null, { traceparent: carried })), undefined);
  const text = fragment(id, null, { traceparent: "x" }).replace(',"data":{', `${field},"data":{`);
  assert.equal(traceparentOf(text), carried);
  assert.equal(traceparentOf(""), undefined);
});

test("any transactionId is found again, and no other for it", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.string({ unit: "grapheme" }),
      fc.json(),
      (id, other, json) => {
        const text = fragment(id, null, JSON.parse(json));
        const own = Buffer.from(JSON.stringify(id)).toString("latin1");
        assert.equal(transactionIdJson(text), own);
        assert.equal(hasTransactionId(`before${text}`, 6, own), true);
        if (other !== id) {
          assert.equal(
            hasTransactionId(text, 0, Buffer.from(JSON.stringify(other)).toString("latin1")),
            false,
          );
        }
      },
    ),
  );
});

test("an end is a big-endian number, and before the first message it is 0", () => {
  const ends = Buffer.from([0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff]).toString("latin1");
  assert.deepEqual([fragmentEnd(ends, -1), fragmentEnd(ends, 0), fragmentEnd(ends, 1)], [0, 5, 0xffffffff]);
});

test("segments keep all messages in their order, within the caps", () => {
  const sizes = fc.array(
    fc.oneof(fc.nat({ max: 200 }), fc.constantFrom(30_000, SEGMENT_BYTES_MAX, 100_000)),
    {
      maxLength: 400,
    },
  );
  fc.assert(
    fc.property(sizes, (sizes) => {
      const messages = sizes.map((size, n) => storable(String(n % 10).repeat(size), n));
      const segments = makeSegments(messages);
      const restored: string[] = [];
      const keys: [number, number][] = [];
      for (const segment of segments) {
        assert.equal(segment.relative, restored.length);
        assert.ok(segment.count >= 1 && segment.count <= SEGMENT_MESSAGES_MAX);
        assert.ok(segment.count === 1 || segment.body.length <= SEGMENT_BYTES_MAX);
        assert.equal(segment.keys.length, segment.count * 8);
        const ends = segment.ends.toString("latin1");
        for (let index = 0; index < segment.count; index++) {
          restored.push(segment.body.slice(fragmentEnd(ends, index - 1), fragmentEnd(ends, index)));
          keys.push([segment.keys.readUInt32BE(index * 8), segment.keys.readUInt32BE(index * 8 + 4)]);
        }
        assert.equal(fragmentEnd(ends, segment.count - 1), segment.body.length);
      }
      assert.deepEqual(
        restored,
        messages.map((message) => message.fragment),
      );
      assert.deepEqual(
        keys,
        messages.map((message) => [message.keyHigh, message.keyLow]),
      );
    }),
    { numRuns: 30 },
  );
});

test("no messages are no segments", () => {
  assert.deepEqual(makeSegments([]), []);
});
