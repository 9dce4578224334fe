import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BrokerError, PAYLOAD_DEPTH_MAX } from "@queen/protocol";
import fc from "fast-check";
import {
  bodyText,
  decodeString,
  encodeString,
  JsonScanner,
  SEEN_DELETE,
  SEEN_ESCAPE,
  SEEN_NON_ASCII,
} from "../src/operations/json-scanner.ts";

const deepArray = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const deepObject = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

const VALID: readonly string[] = [
  // Scalars
  "null",
  "true",
  "false",
  '""',
  '"a"',
  "0",
  "-0",
  "7",
  "-7",
  "10",
  "1234567890",
  // Numbers that a double cannot hold, or writes in another way
  "12345678901234567890",
  "-98765432109876543210",
  "0.1",
  "-0.0",
  "0.00000000000000000000000000000000000000000000000001",
  "1.000000000000000000000000000000001",
  "100.00",
  "1e400",
  "-1E400",
  "1e-400",
  "0e0",
  "0E+1",
  "0e-1",
  "-0e1",
  "1E5",
  "1e+5",
  "1e05",
  "1.5e00300",
  `1${"0".repeat(400)}`,
  // Strings
  '" "',
  '"\\""',
  '"\\\\"',
  '"\\/"',
  '"/"',
  '"\\b\\f\\n\\r\\t"',
  '"\\u0000"',
  '"\\u001f"',
  '"\\u00e9\\u00E9"',
  '"\\ud83d\\ude00"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\uD800x"',
  '"\\uDBFF\\uDFFE"',
  '"\\uFFFF\\uFEFF"',
  '"\\\\u0000"',
  '"\\\\\\""',
  '"\u007f"',
  '"\u0080\u009f"',
  '"\u2028\u2029"',
  '"\ufeff"',
  '"é日本語😀"',
  '"\u{10ffff}"',
  '"{[,:]}"',
  '"null"',
  '"/* no comment */"',
  '"\' single"',
  // Arrays
  "[]",
  "[ ]",
  "[\n\t\r ]",
  "[null]",
  "[1]",
  "[1,2,3]",
  "[ 1 , 2 ]",
  "[[],[[]],{}]",
  "[1,[2,[3,[4]]]]",
  '["",0,null,true,false,{},[]]',
  "[-1,-0,0.5]",
  // Objects
  "{}",
  "{ }",
  '{"":0}',
  '{"":""}',
  '{"a":1,"a":2}',
  '{"a":1,"a":1,"b":{"a":{}}}',
  '{"b":1,"a":2,"2":3,"1":4}',
  '{"__proto__":1,"constructor":{"prototype":null}}',
  '{"\\u0061":1,"a":2}',
  '{"\\ud800":1}',
  '{"é":"日本"}',
  '{ "a" : 1 , "b" : [ ] }',
  '{\r\n\t"a"\r\n\t:\r\n\t1\r\n\t}',
  '{"a":{"b":{"c":{"d":[]}}}}',
  '[{"a":[{"b":[{}]}]}]',
  '{"toJSON":"x"}',
  // Depth
  deepArray(PAYLOAD_DEPTH_MAX),
  deepObject(PAYLOAD_DEPTH_MAX),
  `[${"[],".repeat(2000)}[]]`,
];

const INVALID: readonly string[] = [
  // Nothing, or more than one value
  "",
  " ",
  "\n",
  "1 2",
  "null null",
  "{}{}",
  "[][]",
  "[]]",
  "{}}",
  "[],",
  '""""',
  "1,",
  ",",
  ":",
  "]",
  "}",
  // Literals
  "nul",
  "nulll",
  "Null",
  "NULL",
  "tru",
  "truee",
  "True",
  "fals",
  "falsey",
  "undefined",
  "NaN",
  "Infinity",
  "-Infinity",
  "nan",
  "t",
  "f",
  "n",
  "'a'",
  "a",
  // Numbers
  "-",
  "+",
  "+1",
  "--1",
  "-+1",
  "- 1",
  "01",
  "-01",
  "00",
  "1.",
  ".1",
  "-.1",
  "1.e1",
  "1e",
  "1E",
  "1e+",
  "1e-",
  "1ee1",
  "1e1.5",
  "1.2.3",
  "1e1e1",
  "0x1",
  "0b1",
  "0e",
  "1_000",
  "1,000",
  "1a",
  "-a",
  "0.1x",
  "1n",
  "\uff11",
  // Strings
  '"',
  '"a',
  'a"',
  '"\\"',
  '"\\',
  '"\\x41"',
  '"\\a"',
  '"\\\'"',
  '"\\0"',
  '"\\U0041"',
  '"\\u"',
  '"\\u1"',
  '"\\u12"',
  '"\\u123"',
  '"\\u123',
  '"\\u12G4"',
  '"\\u 123"',
  '"\\u+123"',
  '"\\u{41}"',
  '"\\ud83d\\u"',
  '"\\\u0000"',
  '"\\é"',
  '"\n"',
  '"\t"',
  '"\r"',
  '"\u0000"',
  '"\u0001"',
  '"\u001f"',
  '"a\nb"',
  '"\\\n"',
  // Arrays
  "[",
  "[[",
  "[1",
  "[1,",
  "[1,]",
  "[,1]",
  "[,]",
  "[1,,2]",
  "[1 2]",
  "[1:2]",
  "[1}",
  "[}",
  "[1,}",
  "[[]",
  "[[1]",
  "[1;2]",
  "[a]",
  '["a]',
  '["a" "b"]',
  "[1]x",
  "(1)",
  "[...[]]",
  // Objects
  "{",
  "{]",
  "{,}",
  "{a:1}",
  "{'a':1}",
  "{1:1}",
  "{null:1}",
  '{"a"',
  '{"a"}',
  '{"a":',
  '{"a":}',
  '{"a":]',
  '{"a":1',
  '{"a":1,',
  '{"a":1,}',
  '{"a":1]',
  '{,"a":1}',
  '{"a":1,,"b":2}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{"a",1}',
  '{"a"::1}',
  '{"a":1:2}',
  '{"a":1,"b"}',
  '{"a":1,2}',
  '{"a":1,[]}',
  "{[]:1}",
  '{"a":{}',
  '{"a":"b}',
  '{"a\n":1}',
  '{"a\\":1}',
  '{"a":1}#',
  // Whitespace and comments
  "\u000b1",
  "\u000c1",
  "1\u0000",
  "\u00001",
  "[1\u0000]",
  "[\u00001]",
  "\u00a01",
  "[1,\u00a02]",
  "\u20281",
  "[\u2003]",
  "// c\n1",
  "1 // c",
  "/* c */1",
  "[1/**/]",
  "# c\n1",
  "<a/>",
  // Depth
  deepArray(PAYLOAD_DEPTH_MAX + 1),
  deepObject(PAYLOAD_DEPTH_MAX + 1),
  "[".repeat(200_000),
  '{"a":'.repeat(200_000),
  deepArray(200_000),
];

/** The slice of the one value in a body, as the bytes that were sent. */
function scan(json: string): string {
  const scanner = new JsonScanner(bodyText(Buffer.from(json)));
  const start = scanner.skipWhitespace(0);
  const end = scanner.skipValue(start);
  scanner.expectEnd(end);
  return Buffer.from(scanner.text.slice(start, end), "latin1").toString("utf8");
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof BrokerError, String(error));
    assert.equal(error.code, "INVALID_JSON");
    return error.message;
  }
  assert.fail("accepted");
}

function accepts(action: () => unknown): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}

const shorten = (json: string): string => (json.length > 60 ? `${json.slice(0, 60)}…` : json);

describe("values", () => {
  for (const json of VALID) {
    test(`accepts and slices ${shorten(JSON.stringify(json))}`, () => {
      assert.doesNotThrow(() => JSON.parse(json));
      assert.equal(scan(json), json);
      assert.equal(scan(` \t\r\n${json}\n `), json);
      if (json.length > 4000) return;
      const scanner = new JsonScanner(bodyText(Buffer.from(`["x", ${json} ,2]`)));
      const end = scanner.skipValue(6);
      assert.equal(Buffer.from(scanner.text.slice(6, end), "latin1").toString(), json);
    });
  }

  for (const json of INVALID) {
    test(`refuses ${shorten(JSON.stringify(json))}`, () => {
      refusal(() => scan(json));
    });
  }

  test("the scanner and JSON.parse agree on the tables", () => {
    for (const json of INVALID) {
      const isDeep =
        json.startsWith(deepArray(PAYLOAD_DEPTH_MAX + 1).slice(0, 20)) || json.startsWith('{"a":{"a":');
      if (!isDeep) assert.throws(() => JSON.parse(json), SyntaxError, JSON.stringify(json));
    }
  });

  test("messages name the byte, what was expected and what is there", () => {
    const message = (json: string): string => refusal(() => scan(json));
    assert.equal(message("[1,]"), 'Invalid JSON at byte 3: expected a value, found "]"');
    assert.equal(message('{"a" 1}'), 'Invalid JSON at byte 5: expected ":", found "1"');
    assert.equal(message('{"a":1'), 'Invalid JSON at byte 6: expected "," or "}", found the end of the body');
    assert.equal(message("[1 2]"), 'Invalid JSON at byte 3: expected "," or "]", found "2"');
    assert.equal(message('["é" x]'), 'Invalid JSON at byte 6: expected "," or "]", found "x"');
    assert.equal(
      message('"a\n"'),
      "Invalid JSON at byte 2: expected a character of a string or its closing quote, found byte 0x0a",
    );
    assert.equal(message('"\\u00g0"'), 'Invalid JSON at byte 5: expected a hexadecimal digit, found "g"');
    assert.equal(message("1."), "Invalid JSON at byte 2: expected a digit, found the end of the body");
    assert.equal(message("trie"), 'Invalid JSON at byte 2: expected true, found "i"');
    assert.equal(
      message("{} \u0000"),
      "Invalid JSON at byte 3: expected the end of the body, found byte 0x00",
    );
    assert.equal(
      message(deepArray(600)),
      `Invalid JSON at byte 513: expected at most ${PAYLOAD_DEPTH_MAX} levels`,
    );
  });

  test("depth is counted from the value that is skipped", () => {
    const scanner = new JsonScanner(`[[${deepArray(PAYLOAD_DEPTH_MAX)}]]`);
    assert.equal(scanner.skipValue(2), 2 + 2 * PAYLOAD_DEPTH_MAX);
    refusal(() => scanner.skipValue(0));
    assert.equal(scanner.skipValue(0, PAYLOAD_DEPTH_MAX + 2), scanner.text.length);
    assert.equal(new JsonScanner("1").skipValue(0, 0), 1);
    refusal(() => new JsonScanner("[]").skipValue(0, 0));
  });
});

describe("walking", () => {
  test("an object's keys and values come out as slices", () => {
    const scanner = new JsonScanner(' { "a" : 1e400 , "\\u0062":[ ], "a":"x" } ');
    const members: [string, string][] = [];
    let key = scanner.openObject(scanner.skipWhitespace(0));
    while (!scanner.isClose(key)) {
      const keyEnd = scanner.skipString(key);
      const value = scanner.skipColon(keyEnd);
      const end = scanner.skipValue(value);
      members.push([scanner.stringAt(key, keyEnd), scanner.text.slice(value, end)]);
      key = scanner.nextMember(end);
    }
    scanner.expectEnd(key + 1);
    assert.deepEqual(members, [
      ["a", "1e400"],
      ["b", "[ ]"],
      ["a", '"x"'],
    ]);
  });

  test("an array's elements come out as slices", () => {
    const scanner = new JsonScanner('[ 1,"]" , {"a":[]} ]');
    const elements: string[] = [];
    let pos = scanner.openArray(0);
    while (!scanner.isClose(pos)) {
      const end = scanner.skipValue(pos);
      elements.push(scanner.text.slice(pos, end));
      pos = scanner.nextElement(end);
    }
    scanner.expectEnd(pos + 1);
    assert.deepEqual(elements, ["1", '"]"', '{"a":[]}']);
  });

  test("a walk refuses what skipValue refuses", () => {
    refusal(() => new JsonScanner("[}").openObject(0));
    refusal(() => new JsonScanner("{1:2}").openObject(0));
    refusal(() => new JsonScanner("{}").openArray(0));
    refusal(() => new JsonScanner("1,]").nextElement(1));
    refusal(() => new JsonScanner("1,}").nextElement(1));
    refusal(() => new JsonScanner("1}").nextElement(1));
    refusal(() => new JsonScanner("1,}").nextMember(1));
    refusal(() => new JsonScanner("1]").nextMember(1));
    refusal(() => new JsonScanner('"a";1').skipColon(3));
    refusal(() => new JsonScanner("a").skipString(0));
    refusal(() => new JsonScanner("[}").openArray(0));
    refusal(() => new JsonScanner("{]").openObject(0));
  });

  test("a skipped string says what it contains", () => {
    const seen = (json: string): number => {
      const scanner = new JsonScanner(bodyText(Buffer.from(json)));
      assert.equal(scanner.skipString(0), scanner.text.length);
      return scanner.seen;
    };
    assert.equal(seen('"plain ~"'), 0);
    assert.equal(seen('"\\n"'), SEEN_ESCAPE);
    assert.equal(seen('"é"'), SEEN_NON_ASCII);
    assert.equal(seen('"\u007f"'), SEEN_DELETE);
    assert.equal(seen('"é\\\\\u007f"'), SEEN_ESCAPE | SEEN_NON_ASCII | SEEN_DELETE);
  });
});

describe("body text", () => {
  test("holds each byte in one character", () => {
    assert.equal(bodyText(Buffer.from('"é😀"')), '"\u00c3\u00a9\u00f0\u009f\u0098\u0080"');
  });

  test("an empty body is refused by its own message", () => {
    assert.equal(
      refusal(() => bodyText(Buffer.alloc(0))),
      "Empty request body",
    );
  });

  test("bytes that are not UTF-8 are refused", () => {
    const bodies = [
      [0xff],
      [0x22, 0xc3, 0x22],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xe9],
    ];
    for (const bytes of bodies) refusal(() => bodyText(Buffer.from(bytes)));
  });

  test("a byte order mark is refused", () => {
    refusal(() => bodyText(Buffer.from("\ufeff{}")));
    refusal(() => bodyText(Buffer.from("\ufeff{}", "utf16le")));
  });
});

describe("strings", () => {
  const anyUnits = fc
    .array(fc.nat({ max: 0xffff }), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units));
  const anyText = fc.oneof(fc.string(), fc.string({ unit: "binary" }), anyUnits);

  test("encode writes what JSON.stringify writes, and decode reads it back", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const raw = encodeString(text);
        assert.equal(Buffer.from(raw, "latin1").toString("utf8"), JSON.stringify(text));
        assert.equal(new JsonScanner(raw).skipString(0), raw.length);
        assert.equal(decodeString(raw.slice(1, -1)), text);
      }),
    );
  });

  test("decode reads escapes of every kind", () => {
    assert.equal(decodeString("plain"), "plain");
    assert.equal(decodeString('\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9'), '"\\/\b\f\n\r\tAé');
    assert.equal(decodeString("\\ud83d\\ude00"), "😀");
    assert.equal(decodeString("\\ud83d"), "\ud83d");
    assert.equal(decodeString(Buffer.from("é\\u0000日").toString("latin1")), "é\u0000日");
  });
});

describe("properties", () => {
  const whitespace = fc
    .array(fc.constantFrom(" ", "\t", "\n", "\r"), { maxLength: 3 })
    .map((parts) => parts.join(""));

  /** Puts whitespace between the tokens of a compact JSON text. */
  const spread = (json: string, gaps: readonly string[]): string => {
    let turn = 0;
    const gap = (): string => gaps[turn++ % gaps.length]!;
    return json.replace(/"(?:[^"\\]|\\.)*"|[[\]{},:]/g, (token) => gap() + token + gap());
  };

  test("what JSON.stringify makes is accepted and sliced, with any whitespace", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(whitespace, { minLength: 1, maxLength: 7 }), (value, gaps) => {
        const compact = JSON.stringify(value);
        assert.equal(scan(compact), compact);
        const spaced = spread(compact, gaps);
        assert.equal(scan(spaced), spaced.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ""));
        const pretty = JSON.stringify(value, null, 2);
        assert.equal(scan(`\n${pretty}\n`), pretty);
      }),
      { numRuns: 500 },
    );
  });

  const fragment = fc.constantFrom(
    ...'[]{}:,"\\-+.eE0123456789 \t\n\u0000/utfnalsr',
    "null",
    "\\u",
    "\\u00",
    '"a":',
    "[1,",
    "é",
    "\u2028",
    "1e5",
    "-0",
  );
  const edit = fc.record({
    kind: fc.constantFrom("insert", "remove", "replace", "swap", "cut"),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    text: fragment,
  });

  const mutate = (json: string, edits: readonly { kind: string; at: number; text: string }[]): string => {
    for (const { kind, at: ratio, text } of edits) {
      const at = Math.floor(ratio * json.length);
      if (kind === "insert") json = json.slice(0, at) + text + json.slice(at);
      else if (kind === "remove") json = json.slice(0, at) + json.slice(at + 1);
      else if (kind === "replace") json = json.slice(0, at) + text + json.slice(at + 1);
      else if (kind === "swap")
        json =
          json.slice(0, at) +
          json
            .slice(at, at + 2)
            .split("")
            .reverse()
            .join("") +
          json.slice(at + 2);
      else json = json.slice(0, at);
    }
    return Buffer.from(json).toString();
  };

  test("after random edits, the scanner accepts exactly what JSON.parse accepts", () => {
    let acceptedCount = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue().map((value) => JSON.stringify(value)),
          fc.constantFrom(...VALID.filter((json) => json.length < 100)),
        ),
        fc.array(edit, { maxLength: 3 }),
        (json, edits) => {
          const mutant = mutate(json, edits);
          // JSON.parse takes text, so it never meets the mark in the place where a body may not have it.
          if (mutant.startsWith("\ufeff")) return;
          const expected = accepts(() => JSON.parse(mutant));
          if (expected) acceptedCount++;
          assert.equal(
            accepts(() => scan(mutant)),
            expected,
            JSON.stringify(mutant),
          );
        },
      ),
      { numRuns: 5000 },
    );
    assert.ok(acceptedCount > 500, "enough of the texts are valid");
  });

  test("any text at all: the scanner accepts exactly what JSON.parse accepts", () => {
    const soup = fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(soup, (json) => {
        assert.equal(
          accepts(() => scan(json)),
          accepts(() => JSON.parse(json)),
          JSON.stringify(json),
        );
      }),
      { numRuns: 5000 },
    );
  });
});
