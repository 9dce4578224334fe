import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hash, transactionKey } from "../src/operations/transaction-key.ts";

/** What PostgreSQL 15 answers to `SELECT hashtextextended(text, 0)` in a UTF-8 database. */
const KNOWN_KEYS: readonly (readonly [text: string, key: bigint])[] = [
  ["", -6939563903564495251n],
  ["a", 3591986179850072241n],
  ["ab", 2833316173711343549n],
  ["abc", -6747756470228489321n],
  ["abcd", -1038429303365892052n],
  ["abcde", 3076356108696143428n],
  ["abcdef", 290958262752763840n],
  ["abcdefg", -6158032784613548338n],
  ["abcdefgh", -8882191227074733005n],
  ["abcdefghi", -3278210106038014113n],
  ["abcdefghij", -3183301415634409076n],
  ["abcdefghijk", 3112909444737856467n],
  ["abcdefghijkl", -7556637188122330412n],
  ["abcdefghijklm", 8871624171452417744n],
  ["abcdefghijklmnopqrstuvw", -1198571854151947912n],
  ["abcdefghijklmnopqrstuvwx", -1933194731779935345n],
  ["abcdefghijklmnopqrstuvwxy", 5649064133428767341n],
  [" ", 6600704740418937010n],
  ["0", 2234665679637250028n],
  ["\t", 2799580625252984088n],
  ["\u007f", -1745297040707756745n],
  ["order-1", 4600028448891172555n],
  ["order-2", 892624139600510252n],
  ["Default", 3082955409674244968n],
  ["hello world", 6947366892317592103n],
  ["01890f3e-7b1c-7a2b-8c3d-4e5f60718293", 1173030980176642534n],
  ["00000000-0000-0000-0000-000000000000", 2029898344541813240n],
  ["ffffffff-ffff-ffff-ffff-ffffffffffff", -5734317339678275243n],
  ["FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", -2134103238380449297n],
  ["é", -763932721387459829n],
  ["ß", -2240060419770908844n],
  ["ñandú", 1628057234600216096n],
  ["Ω≈ç√∫", -2222876447911256763n],
  ["日本語", 2870829529307104068n],
  ["日本語の長い識別子です", -2776758224662546077n],
  ["Привет, мир", -7352093891368576788n],
  ["مرحبا", 7365464842506815735n],
  ["😀", -9149796522330800166n],
  ["a😀b", 375558264511112694n],
  ["👩‍👩‍👧‍👦", -1741539813767467067n],
  ["\u{10ffff}", 5552707043474078714n],
  ["\uffff", -7687083247444279272n],
  ['"quoted" \\ back', 5436445051167286835n],
  ["e\u0301", 906497045993010187n],
  ["x".repeat(255), 4505969566448161191n],
  ["é".repeat(255), -3468564062325882273n],
  ["😀".repeat(64), -335074933611805661n],
  ["0123456789ab".repeat(25), -7381283069327513027n],
];

function keyAsBigint(text: string): bigint {
  const { high, low } = transactionKey(text);
  return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low));
}

test("the key is PostgreSQL's hashtextextended(text, 0)", () => {
  for (const [text, key] of KNOWN_KEYS) assert.equal(keyAsBigint(text), key, JSON.stringify(text));
});

test("hash over the bytes of a text is the key of the text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      const out = new Uint32Array(2);
      const bytes = Buffer.from(`<${text}>`, "utf8");
      hash(bytes, 1, bytes.length - 1, out);
      assert.deepEqual({ high: out[0], low: out[1] }, transactionKey(text));
    }),
  );
});

test("texts that differ have keys that differ", () => {
  const keys = new Set<bigint>();
  for (let number = 0; number < 20_000; number++) keys.add(keyAsBigint(`order-${number}`));
  assert.equal(keys.size, 20_000);
});
