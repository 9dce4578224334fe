import assert from "node:assert/strict";
import { test } from "node:test";
import { RowReader } from "../src/postgres/row-reader.ts";

/** A reader on a row of these fields, which lies in the middle of a larger buffer. */
function rowOf(...fields: (Buffer | null)[]): RowReader {
  const parts: Buffer[] = [Buffer.from("before"), Buffer.alloc(2)];
  parts[1]!.writeInt16BE(fields.length);
  for (const field of fields) {
    const length = Buffer.alloc(4);
    length.writeInt32BE(field === null ? -1 : field.length);
    parts.push(length, field ?? Buffer.alloc(0));
  }
  const body = Buffer.concat(parts);
  const reader = new RowReader();
  reader.moveTo(Buffer.concat([body, Buffer.from("after")]), 6, body.length);
  return reader;
}

const bytes = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

test("reads each type", () => {
  const row = rowOf(
    bytes("01"),
    bytes("fffe"),
    bytes("fffffffe"),
    bytes("ffffffff fffffffe"),
    bytes("3ff8000000000000"),
    Buffer.from("aé😀"),
    bytes("00ff"),
  );
  assert.equal(row.length, 7);
  assert.equal(row.bool(0), true);
  assert.equal(row.int2(1), -2);
  assert.equal(row.int4(2), -2);
  assert.equal(row.int8(3), -2);
  assert.equal(row.float8(4), 1.5);
  assert.equal(row.text(5), "aé😀");
  assert.equal(row.latin1(6), "\u0000\u00ff");
  assert.deepEqual(row.bytes(6), bytes("00ff"));
});

test("an int8 is read exactly or not at all", () => {
  const int8 = (value: bigint): number => {
    const field = Buffer.alloc(8);
    field.writeBigInt64BE(value);
    return rowOf(field).int8(0);
  };
  for (const value of [0n, -1n, 2n ** 32n, -(2n ** 32n) - 1n, 2n ** 53n - 1n, 1n - 2n ** 53n])
    assert.equal(int8(value), Number(value));
  for (const value of [2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)])
    assert.throws(() => int8(value), new RegExp(`int8 ${value}`));
});

test("null is read only by the methods that say so", () => {
  const row = rowOf(null, bytes("00000001"));
  assert.equal(row.isNull(0), true);
  assert.equal(row.isNull(1), false);
  for (const type of ["bool", "int2", "int4", "int8", "float8", "text", "latin1", "bytes"] as const) {
    assert.throws(() => row[type](0), /field 0 is null/);
    assert.equal(row[`${type}OrNull`](0), null);
  }
  assert.equal(row.int4OrNull(1), 1);
});

test("a field of another size is not a number of this type", () => {
  const row = rowOf(bytes("00000001"), Buffer.alloc(0));
  assert.throws(() => row.int8(0), /field 0 has 4 bytes and cannot be read as int8/);
  assert.throws(() => row.bool(1), TypeError);
  assert.equal(row.text(1), "");
});

test("there is no field past the last", () => {
  const row = rowOf(bytes("01"));
  assert.throws(() => row.isNull(1), /the row has 1 fields, there is no field 1/);
  assert.throws(() => row.bool(-1), RangeError);
});

test("a copy of bytes outlives the row", () => {
  const source = Buffer.from([0, 1, 0, 0, 0, 1, 42]);
  const row = new RowReader();
  row.moveTo(source, 0, source.length);
  const copy = row.bytes(0);
  source.fill(0);
  assert.deepEqual(copy, Buffer.from([42]));
});

test("a row may have more fields than any before it", () => {
  const row = rowOf(...Array.from({ length: 200 }, (_, index) => Buffer.from([0, index])));
  assert.equal(row.int2(199), 199);
});

test("a row that does not end with its message is refused", () => {
  const source = Buffer.from([0, 1, 0, 0, 0, 1, 42, 43]);
  assert.throws(() => new RowReader().moveTo(source, 0, source.length), /ends at byte 7, its message at 8/);
});
