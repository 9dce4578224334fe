/** Payloads that are hard to keep, and how to compare what came back, byte for byte (P10). */
import assert from "node:assert/strict";

export const nested = (levels: number, open: string, close: string, middle = ""): string =>
  open.repeat(levels) + middle + close.repeat(levels);

/** JSON texts that a parser and a serialiser, or jsonb, would change or refuse. */
export const PAYLOADS: readonly (readonly [string, string])[] = [
  ["an integer beyond doubles", "12345678901234567890"],
  ["a number beyond every double", "1e400"],
  ["minus zero", "-0"],
  ["exponents in every spelling", "[1E2,1e2,1e+2,1E-02,0e0,-0.0e-0]"],
  ["trailing zeros", "[1.0,1.10,100000000000000000000.000]"],
  ["forty digits after the point", `0.${"1234567890".repeat(4)}`],
  ["literals", "[true,false,null]"],
  ["an empty string", '""'],
  ["an empty object", "{}"],
  ["an empty array", "[]"],
  ["a key twice", '{"a":1,"a":2}'],
  ["the order of keys", '{"z":1,"a":2,"10":3,"9":4,"__proto__":5,"constructor":6}'],
  ["an empty key", '{"":1}'],
  ["U+0000 as an escape", '"a\\u0000b"'],
  ["U+0000 in a key", '{"\\u0000":1}'],
  ["half of a surrogate pair", '["\\ud800","\\udc00","\\ud800x","\\udfff\\ud800"]'],
  ["a surrogate pair as escapes", '"\\ud83d\\ude00"'],
  ["the same as a character", '"😀"'],
  ["escapes that need not be", '"\\/\\u0041\\u00e4\\t\\b\\f\\n\\r\\"\\\\"'],
  ["upper and lower case in escapes", '"\\u00E4\\u00e4\\uABCD\\uabcd"'],
  ["control characters that JSON allows", '"\u007f\u0085\u2028\u2029\ufeff"'],
  ["all of Unicode's corners", '"äöü ß 中文 עברית العربية 👨‍👩‍👧‍👦 \uffff \u{10ffff}"'],
  ["normal forms apart", '["\u00e9","e\u0301"]'],
  ["whitespace inside", '{ "a" : [ 1 ,\t2 ,\r\n3 ] }'],
  ["what looks like the stored form", '{"x":1,"data":2,"createdAt":"no","transactionId":"t","leaseId":""}'],
  ["what looks like the end of a message", '"\\",\\"data\\":1,\\"createdAt\\":\\"x"'],
  ["512 arrays", nested(512, "[", "]")],
  ["512 objects", nested(512, '{"a":', "}", "1").replace('{"a":1}', "{}")],
  ["a string of a megabyte", `"${"0123456789abcdef".repeat(65_536)}"`],
  ["a megabyte of escapes", `"${"\\u0000".repeat(170_000)}"`],
  ["a megabyte of emoji", `"${"😀".repeat(262_144)}"`],
  ["a hundred thousand numbers", `[${Array.from({ length: 100_000 }, (_, index) => index).join(",")}]`],
];

/** The text between a message's `"data":` and the field behind it. */
export function dataText(answer: string, next: string): string {
  const start = answer.indexOf('"data":') + '"data":'.length;
  return answer.slice(start, answer.lastIndexOf(next));
}

/** Compares without printing megabytes. */
export function assertSame(actual: string, expected: string, what: string): void {
  if (actual === expected) return;
  let at = 0;
  while (actual[at] === expected[at]) at++;
  const near = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 20), at + 20));
  assert.fail(
    `${what}: ${actual.length} characters instead of ${expected.length}; at ${at} ${near(actual)} instead of ${near(expected)}`,
  );
}
