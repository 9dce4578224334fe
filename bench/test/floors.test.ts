/** What floors and histories are computed from. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loop, parseFdatasync } from "../floors/fsync-rate.ts";
import { portions, repeated } from "../history.ts";
import { MessageWriter } from "../messages.ts";

test("the rate of pg_test_fsync is that of one write with fdatasync", () => {
  const output = `1 second per test
Compare file sync methods using one 8kB write:
        open_datasync                      4019.373 ops/sec     249 usecs/op
        fdatasync                          5156.674 ops/sec     194 usecs/op
        fsync                              1156.374 ops/sec     865 usecs/op

Compare file sync methods using two 8kB writes:
        fdatasync                          3156.374 ops/sec     317 usecs/op
`;
  assert.equal(parseFdatasync(output), 5157);
  assert.throws(() => parseFdatasync("nothing"), /told no rate/);
});

test("our own loop writes and syncs", () => {
  const folder = mkdtempSync(join(tmpdir(), "queen-bench-fsync-"));
  try {
    assert.ok(loop(`${folder}/file`, 0.05) > 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a history has as many segments as it should, lane by lane", () => {
  for (const [total, lanes] of [
    [1, 1_000],
    [999, 1_000],
    [2_500, 1_000],
    [500_000, 1_000],
    [7, 3],
    [5, 20_000],
  ] as const) {
    const made = portions(total, lanes).reduce((sum, { count, segments }) => sum + count * segments, 0);
    assert.equal(made, total, `${total} in ${lanes}`);
  }
});

test("a repeated segment has the first message of its model, with its key and its ends", () => {
  const ends = Buffer.alloc(8);
  ends.writeInt32BE(3, 0);
  ends.writeInt32BE(5, 4);
  const model = { keys: Buffer.from("12345678abcdefgh"), ends, body: Buffer.from("onetw"), count: 2 };
  const segment = repeated(model, 3);
  assert.equal(segment.body.toString(), "oneoneone");
  assert.equal(segment.keys.toString(), "123456781234567812345678");
  assert.deepEqual(
    [0, 4, 8].map((at) => segment.ends.readInt32BE(at)),
    [3, 6, 9],
  );
  assert.equal(segment.count, 3);
});

test("payloads have the bytes they should, and can be read back", () => {
  const payloadOf = (writer: MessageWriter, number: number): string =>
    JSON.stringify((JSON.parse(writer.item("q", 0, 5, number, 123.4567)) as { payload: unknown }).payload);
  for (const bytes of [10, 100, 10_000, 1_000_000]) {
    for (const padding of ["plain", "random"] as const) {
      const writer = new MessageWriter(padding, bytes);
      const payload = payloadOf(writer, 42);
      assert.equal(payload.length, bytes);
      const message = {
        id: "",
        transactionId: "",
        partitionId: "",
        leaseId: "",
        partition: "p0",
        data: JSON.parse(payload),
      };
      assert.equal(writer.read([message])[0]!.data.s, 42);
    }
  }
  assert.equal(JSON.stringify(new MessageWriter("plain").data(5, 42, 123.4)).length, 100);
});
