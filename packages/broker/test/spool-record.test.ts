import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeRecord, RECORD_HEADER_BYTES, type SpoolRecord, scanRecords } from "../src/spooling/record.ts";

const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
const record = (sequence: number): fc.Arbitrary<SpoolRecord> =>
  fc.record({
    sequence: fc.constant(sequence),
    queue: name,
    partition: name,
    spooledAtMs: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    doubt: fc.option(fc.record({ partition: fc.nat(), from: fc.nat() }, { noNullPrototype: true }), {
      nil: undefined,
    }),
    content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  });
const records = fc
  .integer({ min: 1, max: 8 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => record(index + 1))));

const plain = (each: SpoolRecord): object => ({ ...each, content: each.content.toString("latin1") });

test("what was written is read back, record by record", () => {
  fc.assert(
    fc.property(records, (written) => {
      const scanned = scanRecords(Buffer.concat(written.map(encodeRecord)));
      assert.deepEqual(
        scanned.records.map(({ record }) => plain(record)),
        written.map(plain),
      );
      assert.deepEqual(scanned.damage, []);
    }),
  );
});

test("a file cut at any byte gives every whole record and nothing else", () => {
  fc.assert(
    fc.property(records, (written) => {
      const encoded = written.map(encodeRecord);
      const bytes = Buffer.concat(encoded);
      const last = bytes.length - encoded.at(-1)!.length;
      for (let length = last; length < bytes.length; length++) {
        const scanned = scanRecords(bytes.subarray(0, length));
        assert.deepEqual(
          scanned.records.map(({ record }) => plain(record)),
          written.slice(0, -1).map(plain),
        );
        assert.deepEqual(scanned.damage, length === last ? [] : [{ start: last, end: length }]);
      }
    }),
    { numRuns: 30 },
  );
});

test("a flipped bit costs the one record that it is in, wherever it is", () => {
  fc.assert(
    fc.property(records, fc.nat(), (written, at) => {
      const encoded = written.map(encodeRecord);
      const bytes = Buffer.concat(encoded);
      const bit = at % (bytes.length * 8);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      let end = 0;
      const hit = encoded.findIndex((each) => {
        end += each.length;
        return bit >> 3 < end;
      });
      const scanned = scanRecords(bytes);
      assert.deepEqual(
        scanned.records.map(({ record }) => plain(record)),
        written.filter((_, index) => index !== hit).map(plain),
      );
      assert.deepEqual(scanned.damage, [{ start: end - encoded[hit]!.length, end }]);
    }),
    { numRuns: 2_000 },
  );
});

test("a record inside a payload is found only if bytes that no text has are in it", () => {
  const hidden: SpoolRecord = {
    sequence: 7,
    queue: "stolen",
    partition: "p",
    spooledAtMs: 0,
    doubt: undefined,
    content: Buffer.from("x"),
  };
  // As a client could send it: text in UTF-8, in which no byte is FF.
  const asText = Buffer.from(encodeRecord(hidden).toString("latin1"), "utf8");
  const bytes = encodeRecord({ ...hidden, queue: "own", content: asText });
  bytes[RECORD_HEADER_BYTES]! ^= 1;
  assert.deepEqual(scanRecords(bytes).records, []);
});
