/** The spool's reader meets files that nobody wrote as they are: whatever stands in them, it reads on. */
import assert from "node:assert/strict";
import { isUtf8 } from "node:buffer";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { BrokerError } from "@queen/protocol";
import fc from "fast-check";
import { parsePushBody } from "../src/operations/push-body.ts";
import { checkFragment } from "../src/spooling/fragment.ts";
import { encodeRecord, RECORD_HEADER_BYTES, type SpoolRecord, scanRecords } from "../src/spooling/record.ts";
import { SpoolStore } from "../src/spooling/spool-store.ts";
import { createLog } from "../src/telemetry.ts";

const root = mkdtempSync(join(tmpdir(), "queen-fuzz-"));
after(() => rmSync(root, { recursive: true, force: true }));

const recordOf = (sequence: number, content: Uint8Array): SpoolRecord => ({
  sequence,
  queue: "q",
  partition: "p",
  spooledAtMs: 0,
  doubt: undefined,
  content: Buffer.from(content),
});

type Piece = { readonly bytes: Buffer; readonly content?: string; readonly cutOff?: Buffer };
const bytesOf = fc.uint8Array({ maxLength: 80 });

/** Records, and between them noise, records that are cut, and heads that promise more than there is. */
const piece: fc.Arbitrary<Piece> = fc.oneof(
  fc.tuple(fc.nat({ max: 99 }), bytesOf).map(([sequence, content]) => ({
    bytes: encodeRecord(recordOf(sequence, content)),
    content: Buffer.from(content).toString("latin1"),
  })),
  bytesOf.map((bytes) => ({ bytes: Buffer.from(bytes) })),
  fc.tuple(bytesOf, fc.double({ min: 0, max: 0.99, noNaN: true })).map(([content, share]) => {
    const bytes = encodeRecord(recordOf(1, content));
    const cutAt = Math.floor(share * bytes.length);
    return { bytes: bytes.subarray(0, cutAt), cutOff: bytes.subarray(cutAt) };
  }),
  fc.nat({ max: 0xffffffff }).map((length) => {
    const bytes = encodeRecord(recordOf(1, Buffer.from("x"))).subarray(0, RECORD_HEADER_BYTES);
    bytes.writeUInt32BE(length, 8);
    return { bytes };
  }),
);

/** What was cut off, be it one byte, may stand behind the cut by chance. */
function isMadeWhole({ cutOff }: Piece, next: readonly Piece[]): boolean {
  const behind = Buffer.concat(next.map(({ bytes }) => bytes));
  return cutOff !== undefined && behind.subarray(0, cutOff.length).equals(cutOff);
}

test("among any bytes every whole record is found, and nothing that was not written", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const bytes = Buffer.concat(pieces.map((each) => each.bytes));
      fc.pre(!pieces.some((each, index) => isMadeWhole(each, pieces.slice(index + 1))));
      const { records, damage } = scanRecords(bytes);
      assert.deepEqual(
        records.map(({ record }) => record.content.toString("latin1")),
        pieces.flatMap(({ content }) => (content === undefined ? [] : [content])),
      );
      const ranges = [...records, ...damage].sort((a, b) => a.start - b.start);
      let end = 0;
      for (const range of ranges) {
        assert.equal(range.start, end, "records and damage cover the file");
        end = range.end;
      }
      assert.equal(end, bytes.length);
    }),
    { numRuns: 3_000 },
  );
});

test("a spool opens on any files and gives the records that are whole", async () => {
  const log = createLog({ level: "error", json: true, write: () => {} });
  const anyFile = fc.oneof(
    fc.array(piece, { maxLength: 6 }).map((pieces) => Buffer.concat(pieces.map((each) => each.bytes))),
    bytesOf.map((bytes) => Buffer.from(bytes)),
  );
  const progress = fc.oneof(
    fc.constantFrom(
      "",
      "{",
      "null",
      "[]",
      '{"file":"1","offset":{}}',
      '{"file":-1,"offset":-5}',
      '{"file":1e300}',
    ),
    fc.json(),
  );
  let folders = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyFile, { maxLength: 3 }), progress, async (files, place) => {
      const folder = join(root, String(++folders));
      mkdirSync(folder);
      for (const [index, bytes] of files.entries())
        writeFileSync(join(folder, `spool-${String(index + 1).padStart(12, "0")}.log`), bytes);
      writeFileSync(join(folder, "progress.json"), place);
      const store = await SpoolStore.open({ folder, bytesMax: 1e9, log, clock: Date.now });
      await store.close();
    }),
    { numRuns: 150 },
  );
});

const ODD_PAYLOADS = [
  "null",
  "-0",
  "1e400",
  "12345678901234567890",
  `${"9".repeat(10_000)}`,
  '"\\u0000\\ud800\\/"',
  '"\u2028é日本🎉"',
  '{"a":1,"a":2,"__proto__":{}}',
  '{ "spaces" : [ 1 , 2 ] }',
  `${"[".repeat(512)}${"]".repeat(512)}`,
  '"\\",\\"data\\":{"',
];

const fragmentsOf = (payload: string): string => {
  const text = Buffer.from(`{"items":[{"queue":"q","transactionId":"t \\u0022 é","payload":${payload}}]}`);
  return parsePushBody(text.toString("latin1"), () => "made", "somebody", undefined)[0]!.fragment;
};

test("what a push made is a fragment, however odd its payload", () => {
  for (const payload of ODD_PAYLOADS) assert.equal(checkFragment(fragmentsOf(payload)), 't " é');
});

test("a fragment that was changed is refused, or is one that could have been pushed", () => {
  const byte = fc.nat({ max: 255 });
  fc.assert(
    fc.property(
      fc.constantFrom(...ODD_PAYLOADS.filter((each) => each.length < 200)),
      fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), byte, fc.nat({ max: 2 })), {
        minLength: 1,
        maxLength: 4,
      }),
      (payload, edits) => {
        let fragment = fragmentsOf(payload);
        for (const [share, code, kind] of edits) {
          const at = Math.floor(share * fragment.length);
          const put = kind === 0 ? "" : String.fromCharCode(code);
          fragment = fragment.slice(0, at) + put + fragment.slice(at + (kind === 2 ? 0 : 1));
        }
        try {
          checkFragment(fragment);
        } catch (error) {
          assert.ok(error instanceof BrokerError, String(error));
          return;
        }
        const bytes = Buffer.from(`{${fragment}}`, "latin1");
        assert.ok(isUtf8(bytes), "text that no client could read");
        assert.equal(typeof JSON.parse(bytes.toString("utf8")).transactionId, "string");
      },
    ),
    { numRuns: 5_000 },
  );
});

test("a fragment with a text of many megabytes is refused like any other", () => {
  const long = "x".repeat(32 * 1024 ** 2);
  for (const fragment of [
    `"transactionId":"${long}","traceId":null,"producerSub":null,"data":1`,
    `"transactionId":"t","traceId":"${long}`,
    `"transactionId":"t","traceId":null,"producerSub":null,"data":"${long}`,
    "[".repeat(1_000_000),
  ]) {
    assert.throws(() => checkFragment(fragment), BrokerError);
  }
});
