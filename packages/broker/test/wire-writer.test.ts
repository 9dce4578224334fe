import assert from "node:assert/strict";
import { test } from "node:test";
import { type ParameterType, WireWriter } from "../src/postgres/wire-writer.ts";

function encoded(type: ParameterType, value: unknown): string {
  const writer = new WireWriter();
  writer.parameter(type, value);
  return writer.message.toString("hex");
}

/** Hexadecimal text, with spaces for the reader. */
const hex = (text: string): string => text.replaceAll(" ", "");

test("a scalar is its length and its bytes, big end first", () => {
  assert.equal(encoded("int2", -2), hex("00000002 fffe"));
  assert.equal(encoded("int4", -2), hex("00000004 fffffffe"));
  assert.equal(encoded("int8", 1), hex("00000008 0000000000000001"));
  assert.equal(encoded("float8", 1.5), hex("00000008 3ff8000000000000"));
  assert.equal(encoded("bool", true), hex("00000001 01"));
  assert.equal(encoded("text", "aé€😀"), hex("0000000a 61 c3a9 e282ac f09f9880"));
  assert.equal(encoded("bytea", "\u0000\u00ff"), hex("00000002 00ff"));
  assert.equal(encoded("bytea", Buffer.from([1, 2, 3])), hex("00000003 010203"));
});

test("an int8 holds every safe integer", () => {
  for (const value of [
    0,
    -1,
    2 ** 31,
    -(2 ** 31),
    2 ** 32,
    -(2 ** 32),
    -(2 ** 32) - 1,
    2 ** 53 - 1,
    1 - 2 ** 53,
  ]) {
    const writer = new WireWriter();
    writer.parameter("int8", value);
    assert.equal(writer.message.readBigInt64BE(4), BigInt(value));
  }
});

test("null has the length -1", () => {
  assert.equal(encoded("int8", null), "ffffffff");
  assert.equal(encoded("text[]", null), "ffffffff");
});

test("an array is its dimensions and its elements; null elements raise the flag", () => {
  assert.equal(
    encoded("int4[]", [1, null]),
    hex("00000020 00000001 00000001 00000017 00000002 00000001  00000004 00000001  ffffffff"),
  );
  assert.equal(
    encoded("bytea[]", ["\u00e9", Buffer.from([7])]),
    hex("0000001e 00000001 00000000 00000011 00000002 00000001  00000001 e9  00000001 07"),
  );
});

test("an empty array has no dimension", () => {
  assert.equal(encoded("int8[]", []), hex("0000000c 00000000 00000000 00000014"));
});

test("a typed array is an array", () => {
  assert.equal(encoded("int4[]", Int32Array.of(1, -1)), encoded("int4[]", [1, -1]));
});

test("a value that is not of its type is refused", () => {
  assert.throws(() => encoded("int4", 2 ** 31), RangeError);
  assert.throws(() => encoded("int2", -(2 ** 15) - 1), RangeError);
  assert.throws(() => encoded("int8", 2 ** 53), RangeError);
  assert.throws(() => encoded("int8[]", [1.5]), RangeError);
  assert.throws(() => encoded("int4", "1"), TypeError);
  assert.throws(() => encoded("int4", undefined), TypeError);
  assert.throws(() => encoded("bool[]", [true, undefined]), TypeError);
  assert.throws(() => encoded("text[]", "a"), TypeError);
  assert.throws(() => encoded("bytea", 1), TypeError);
  assert.throws(() => encoded("uuid" as ParameterType, "a"), TypeError);
});

test("the buffer grows for a large value and keeps what was written before", () => {
  const writer = new WireWriter();
  writer.parameter("text", "first");
  writer.parameter("bytea[]", ["x".repeat(100_000), "y".repeat(3_000_000)]);
  writer.parameter("text", "last");
  const { message } = writer;
  assert.equal(message.toString("latin1", 4, 9), "first");
  assert.equal(message.toString("latin1", message.length - 4), "last");
  assert.equal(message.length, 9 + 24 + 4 + 100_000 + 4 + 3_000_000 + 8);
});

test("memory that a socket still reads is not written again", () => {
  const writer = new WireWriter();
  writer.parameter("int4", 1);
  const inFlight = writer.message;
  writer.reset(true);
  writer.parameter("int4", 2);
  assert.equal(inFlight.toString("hex"), encoded("int4", 1));

  const handedOver = writer.message;
  writer.reset(false);
  writer.parameter("int4", 3);
  assert.equal(handedOver.buffer, writer.message.buffer, "the same memory serves call after call");
});

test("messages carry their type and a length that counts itself", () => {
  const writer = new WireWriter();
  writer.parse("n", "select 1", ["int4", "text[]"]);
  writer.bind("n", ["int4", "text[]"], [5, []]);
  writer.execute();
  writer.sync();
  writer.closeStatement("n");
  writer.simpleQuery("q");
  writer.terminate();
  const lengths: [string, number][] = [];
  let at = 0;
  while (at < writer.message.length) {
    const length = writer.message.readInt32BE(at + 1);
    lengths.push([String.fromCharCode(writer.message[at]!), length]);
    at += 1 + length;
  }
  assert.equal(at, writer.message.length);
  assert.deepEqual(lengths, [
    ["P", 4 + 2 + 9 + 2 + 8],
    ["B", 4 + 1 + 2 + 4 + 2 + 8 + 16 + 4],
    ["E", 9],
    ["S", 4],
    ["C", 7],
    ["Q", 6],
    ["X", 4],
  ]);
});

test("bind takes as many values as the statement has parameters", () => {
  const writer = new WireWriter();
  assert.throws(() => writer.bind("n", ["int4"], []), /n takes 1 parameters, got 0/);
});
