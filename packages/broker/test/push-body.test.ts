import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BrokerError,
  DEFAULT_PARTITION,
  type ErrorCode,
  PAYLOAD_DEPTH_MAX,
  PUSH_ITEMS_MAX,
} from "@queen/protocol";
import fc from "fast-check";
import { bodyText, JsonScanner } from "../src/operations/json-scanner.ts";
import { type PushItem, PushItemReader, parsePushBody } from "../src/operations/push-body.ts";
import { transactionKey } from "../src/operations/transaction-key.ts";

const NEW_ID = "11111111-1111-4111-8111-111111111111";

const parse = (json: string, producerSub: string | null = null): PushItem[] =>
  parsePushBody(bodyText(Buffer.from(json)), () => NEW_ID, producerSub);
const parseItem = (item: string): PushItem => parse(`{"items":[${item}]}`)[0]!;
const keyOf = (transactionId: string): { keyHigh: number; keyLow: number } => {
  const { high, low } = transactionKey(transactionId);
  return { keyHigh: high, keyLow: low };
};
const utf8 = (text: string): string => Buffer.from(text, "latin1").toString("utf8");

function refusal(json: string, code: ErrorCode = "VALIDATION_FAILED"): string {
  try {
    parse(json);
  } catch (error) {
    assert.ok(error instanceof BrokerError, String(error));
    assert.equal(error.code, code, error.message);
    return error.message;
  }
  assert.fail(`accepted ${json}`);
}
const itemRefusal = (item: string): string => refusal(`{"items":[${item}]}`);

const fragmentOf = (id: string, data: string, traceId = "null", producerSub = "null"): string =>
  `"transactionId":${id},"traceId":${traceId},"producerSub":${producerSub},"data":${data}`;

describe("items", () => {
  test("a full item", () => {
    const traceId = "0A0B0C0D-0000-7000-8000-00000000ABCD";
    const item = parseItem(
      `{"queue":"orders","partition":"p1","transactionId":"t-1","traceId":"${traceId}","payload":{"a":[1, 2]}}`,
    );
    assert.deepEqual(item, {
      queue: "orders",
      partition: "p1",
      transactionId: "t-1",
      transactionIdJson: '"t-1"',
      traceIdJson: `"${traceId.toLowerCase()}"`,
      ...keyOf("t-1"),
      fragment: fragmentOf('"t-1"', '{"a":[1, 2]}', `"${traceId.toLowerCase()}"`),
    });
  });

  test("a minimal item", () => {
    assert.deepEqual(parseItem('{"queue":"orders"}'), {
      queue: "orders",
      partition: DEFAULT_PARTITION,
      transactionId: NEW_ID,
      transactionIdJson: `"${NEW_ID}"`,
      traceIdJson: "null",
      ...keyOf(NEW_ID),
      fragment: fragmentOf(`"${NEW_ID}"`, "null"),
    });
  });

  test("many items keep their order and their own names", () => {
    const names = [
      "a",
      "a",
      "b",
      "ab",
      "b",
      "a",
      "a-long-name-of-a-queue",
      "a-long-name-of-a-queue",
      "é",
      "é",
      "e",
    ];
    const body = { items: names.map((name, n) => ({ queue: name, partition: `p${name}`, payload: n })) };
    const items = parse(JSON.stringify(body, null, 1));
    assert.deepEqual(
      items.map((item) => item.queue),
      names,
    );
    assert.deepEqual(
      items.map((item) => item.partition),
      names.map((name) => `p${name}`),
    );
    assert.deepEqual(
      items.map((item) => item.fragment.split('"data":')[1]),
      names.map((_, n) => String(n)),
    );
  });

  test("no items are no error", () => {
    assert.deepEqual(parse('{"items":[]}'), []);
    assert.deepEqual(parse(' { "items" : [ ] } '), []);
  });

  test("each item without a transactionId gets one of its own", () => {
    let count = 0;
    const items = parsePushBody('{"items":[{"queue":"q"},{"queue":"q"}]}', () => `id-${count++}`, null);
    assert.deepEqual(
      items.map((item) => item.transactionId),
      ["id-0", "id-1"],
    );
  });

  test("the producer's subject is stamped, and cannot be sent", () => {
    const [item] = parse('{"items":[{"queue":"q","producerSub":"evil","payload":1}]}', 'ann "é"');
    assert.equal(utf8(item!.fragment), fragmentOf(`"${NEW_ID}"`, "1", "null", '"ann \\"é\\""'));
  });

  test("unknown fields are ignored at both levels", () => {
    const items = parse(
      '{"bufferMs":[{}],"items":[{"x":{"queue":1},"queue":"q","datum":1,"queues":2}],"itemz":7}',
    );
    assert.equal(items[0]!.queue, "q");
    assert.equal(items[0]!.fragment, fragmentOf(`"${NEW_ID}"`, "null"));
  });

  test("unknown fields must be JSON", () => {
    refusal('{"x":[1,],"items":[]}', "INVALID_JSON");
    refusal('{"items":[{"queue":"q","x":tru}]}', "INVALID_JSON");
    refusal('{"items":[],"x":01}', "INVALID_JSON");
  });

  test("of a repeated field the last counts", () => {
    const item = parseItem(
      '{"queue":1,"queue":"a","queue":"b","payload":1,"payload":2,"transactionId":"x","transactionId":null,"partition":null,"partition":"p"}',
    );
    assert.equal(item.queue, "b");
    assert.equal(item.partition, "p");
    assert.equal(item.fragment, fragmentOf(`"${NEW_ID}"`, "2"));
    assert.equal(itemRefusal('{"queue":"a","queue":1}'), "items[0].queue: Queue must be a string");
  });

  test("of repeated items the last counts", () => {
    assert.equal(parse('{"items":[{"queue":"a"},{"queue":"b"}],"items":[{"queue":"c"}]}').length, 1);
    assert.equal(parse('{"items":[{"queue":1}],"items":[{"queue":"c"}]}')[0]!.queue, "c");
    assert.equal(refusal('{"items":[{"queue":"a"}],"items":null}'), "items array is required");
    assert.equal(
      refusal('{"items":[{"queue":"a"}],"items":[{"queue":1}]}'),
      "items[0].queue: Queue must be a string",
    );
  });

  test("keys may be written with escapes", () => {
    const [item] = parse('{"\\u0069tems":[{"\\u0071ueue":"q","p\\u0061yload":5,"\\u0078":1}]}');
    assert.equal(item!.queue, "q");
    assert.equal(item!.fragment, fragmentOf(`"${NEW_ID}"`, "5"));
  });

  test("an item reads the same beside any other", () => {
    const space = fc.constantFrom("", "", " ", "\n\t");
    const quoted = (text: string): fc.Arbitrary<string> =>
      fc.constantFrom(
        JSON.stringify(text),
        JSON.stringify(text),
        `"\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}${text.slice(1)}"`,
      );
    const member = fc
      .constantFrom(
        ["queue", '"q"', '"queue 2"', '"é"'],
        ["partition", '"p"', '"p1"', '"a longer partition"', "null"],
        ["transactionId", '"t"', '"\\u0074"', '"ü"', '""', "null"],
        ["traceId", '"00000000-0000-7000-8000-00000000ABCD"', "null"],
        ["payload", "1", '{"queue":"x"}', "[]"],
        ["data", '"d"', "null"],
        ["datum", "7"],
      )
      .chain(([name, ...values]) =>
        fc.tuple(space, quoted(name!), space, space, fc.constantFrom(...values), space),
      )
      .map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`);
    const item = fc
      .array(member, { maxLength: 10 })
      .map((members) => `{${['"queue":"q"', ...members].join(",")}}`);
    fc.assert(
      fc.property(fc.array(item, { minLength: 2, maxLength: 5 }), (texts) => {
        const alone = texts.map((text) => {
          try {
            return parseItem(text);
          } catch (error) {
            return (error as Error).message;
          }
        });
        const bad = alone.findIndex((result) => typeof result === "string");
        if (bad < 0) assert.deepEqual(parse(`{"items":[${texts.join(",")}]}`), alone);
        else
          assert.equal(
            refusal(`{"items":[${texts.join(",")}]}`),
            (alone[bad] as string).replace("[0]", `[${bad}]`),
          );
      }),
    );
  });

  test("bad JSON takes precedence over a bad item", () => {
    refusal('{"items":[{"queue":1},{"queue":}]}', "INVALID_JSON");
    refusal('{"items":[{"queue":1}]', "INVALID_JSON");
    refusal('{"items":[{"queue":1}]} x', "INVALID_JSON");
    refusal('{"items":[5,]}', "INVALID_JSON");
  });
});

describe("payloads", () => {
  const payloads = [
    "null",
    "0",
    "-0",
    "1e400",
    "12345678901234567890",
    "1.10",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"é\\u00e9😀"',
    '{"b":1,"a":2,"b":3}',
    '{ "a" :\t[ 1 ,\n2 ] }',
    '{"queue":"x","payload":{"payload":1}}',
    "[".repeat(PAYLOAD_DEPTH_MAX) + "]".repeat(PAYLOAD_DEPTH_MAX),
  ];

  test("pass byte for byte, without the whitespace around them", () => {
    for (const payload of payloads) {
      const item = parseItem(`{"payload": \n${payload}\t ,"queue":"q"}`);
      assert.equal(utf8(item.fragment), fragmentOf(`"${NEW_ID}"`, payload));
    }
  });

  test("may be called data, and payload wins", () => {
    const data = (item: string): string => parseItem(item).fragment.split('"data":')[1]!;
    assert.equal(data('{"queue":"q","data":[1]}'), "[1]");
    assert.equal(data('{"queue":"q","payload":1,"data":2}'), "1");
    assert.equal(data('{"queue":"q","data":2,"payload":1}'), "1");
    assert.equal(data('{"queue":"q","data":2,"payload":null}'), "null");
  });

  test("have a limit of depth", () => {
    const depth = PAYLOAD_DEPTH_MAX + 1;
    refusal(`{"items":[{"queue":"q","payload":${"[".repeat(depth)}${"]".repeat(depth)}}]}`, "INVALID_JSON");
  });
});

describe("fields", () => {
  test("items must be an array", () => {
    const bodies = [
      "{}",
      "[]",
      "1",
      '"items"',
      "null",
      '{"items":null}',
      '{"items":{}}',
      '{"items":"x"}',
      '{"Items":[]}',
    ];
    for (const body of bodies) assert.equal(refusal(body), "items array is required");
    for (const body of [
      "",
      "{",
      "[",
      '{"items":[}',
      '{"items":[}]}',
      '{"items":[]]',
      "{]",
      '{"items":[{]]}',
    ]) {
      refusal(body, "INVALID_JSON");
    }
  });

  test("an item must be an object", () => {
    assert.equal(refusal('{"items":[{"queue":"q"},5]}'), "items[1]: Item must be an object");
    assert.equal(refusal('{"items":[null]}'), "items[0]: Item must be an object");
  });

  test("the number of items has a limit", () => {
    const body = (count: number): string => `{"items":[${Array(count).fill('{"queue":"q"}').join()}]}`;
    assert.equal(parse(body(PUSH_ITEMS_MAX)).length, PUSH_ITEMS_MAX);
    assert.equal(refusal(body(PUSH_ITEMS_MAX + 1)), `items: Items must be at most ${PUSH_ITEMS_MAX}`);
  });

  test("queue", () => {
    for (const value of ["1", "null", "true", "{}", '["q"]']) {
      assert.equal(itemRefusal(`{"queue":${value}}`), "items[0].queue: Queue must be a string");
    }
    assert.equal(refusal('{"items":[{"queue":"q"},{}]}'), "items[1].queue: Queue must be a string");
    assert.equal(parseItem('{"queue":""}').queue, "");
    assert.equal(parseItem(`{"queue":"${"x".repeat(255)}"}`).queue.length, 255);
    assert.equal(parseItem(`{"queue":"${"é".repeat(255)}"}`).queue, "é".repeat(255));
    assert.equal(parseItem('{"queue":"\\u0061\\/\\ud83d\\ude00"}').queue, "a/😀");
    assert.equal(
      itemRefusal(`{"queue":"${"x".repeat(256)}"}`),
      "items[0].queue: Queue must have at most 255 characters",
    );
    assert.equal(
      itemRefusal('{"queue":"a\\u0000"}'),
      "items[0].queue: Queue must not contain control characters",
    );
    assert.equal(
      itemRefusal('{"queue":"a\u007f"}'),
      "items[0].queue: Queue must not contain control characters",
    );
    assert.equal(
      itemRefusal('{"queue":"\\ud800"}'),
      "items[0].queue: Queue must not contain unpaired surrogates",
    );
  });

  test("partition", () => {
    for (const value of ["1", "null", "{}"]) {
      assert.equal(
        itemRefusal(`{"queue":"q","partition":${value}}`),
        "items[0].partition: Partition must be a string",
      );
    }
    assert.equal(
      itemRefusal('{"queue":"q","partition":""}'),
      "items[0].partition: Partition must not be empty",
    );
    assert.equal(
      itemRefusal(`{"queue":"q","partition":"${"x".repeat(256)}"}`),
      "items[0].partition: Partition must have at most 255 characters",
    );
    assert.equal(
      itemRefusal('{"queue":"q","partition":"\\n"}'),
      "items[0].partition: Partition must not contain control characters",
    );
  });

  test("an empty queue does not lend its name to an empty partition", () => {
    assert.equal(
      refusal('{"items":[{"queue":""},{"queue":"","partition":""}]}'),
      "items[1].partition: Partition must not be empty",
    );
  });

  test("transactionId", () => {
    const id = (value: string): PushItem => parseItem(`{"queue":"q","transactionId":${value}}`);
    assert.equal(id("null").transactionId, NEW_ID);
    assert.equal(id('""').transactionId, NEW_ID);
    assert.equal(id('"é"').transactionId, "é");
    assert.equal(utf8(id('"é"').fragment), fragmentOf('"é"', "null"));
    assert.equal(id('"\\u0061\\/\\"\\u00e9"').transactionId, 'a/"é');
    assert.equal(utf8(id('"\\u0061\\/\\"\\u00e9"').fragment), fragmentOf('"a/\\"é"', "null"));
    assert.equal(id(`"${"😀".repeat(255)}"`).transactionId, "😀".repeat(255));
    const message = (value: string): string => itemRefusal(`{"queue":"q","transactionId":${value}}`);
    for (const value of ["1", "false", "[]"]) {
      assert.equal(message(value), "items[0].transactionId: TransactionId must be a string");
    }
    assert.equal(
      message(`"${"x".repeat(256)}"`),
      "items[0].transactionId: TransactionId must have at most 255 characters",
    );
    assert.equal(
      message(`"${"😀".repeat(256)}"`),
      "items[0].transactionId: TransactionId must have at most 255 characters",
    );
    for (const value of ['"\\t"', '"\u007f"']) {
      assert.equal(
        message(value),
        "items[0].transactionId: TransactionId must not contain control characters",
      );
    }
    assert.equal(
      message('"\\udc00"'),
      "items[0].transactionId: TransactionId must not contain unpaired surrogates",
    );
  });

  test("traceId", () => {
    const trace = (value: string): string => parseItem(`{"queue":"q","traceId":${value}}`).fragment;
    const absent = fragmentOf(`"${NEW_ID}"`, "null");
    assert.equal(trace("null"), absent);
    assert.equal(trace('""'), absent);
    const uuid = "ABCDEF01-2345-6789-abcd-ef0123456789";
    assert.equal(trace(`"${uuid}"`), fragmentOf(`"${NEW_ID}"`, "null", `"${uuid.toLowerCase()}"`));
    assert.equal(trace(`"\\u0041${uuid.slice(1)}"`), trace(`"${uuid}"`));
    const message = (value: string): string => itemRefusal(`{"queue":"q","traceId":${value}}`);
    assert.equal(message("5"), "items[0].traceId: TraceId must be a string");
    for (const value of [
      "x",
      uuid.slice(1),
      `${uuid}0`,
      `{${uuid}}`,
      uuid.replaceAll("-", ""),
      `${uuid}\\n`,
    ]) {
      assert.equal(message(`"${value}"`), "items[0].traceId: TraceId must be a UUID");
    }
  });
});

describe("traceparent", () => {
  const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const request = "00-11111111111111111111111111111111-2222222222222222-00";
  const fragment = (item: string, given?: string): string =>
    parsePushBody(bodyText(Buffer.from(`{"items":[${item}]}`)), () => NEW_ID, null, given)[0]!.fragment;
  const carrying = (traceparent: string, traceId = "null"): string =>
    `"transactionId":"t","traceId":${traceId},"producerSub":null,"traceparent":"${traceparent}","data":1`;

  test("an item carries its own, or else its request's, before the payload", () => {
    const item = (fields: string): string => `{"queue":"q","transactionId":"t","payload":1${fields}}`;
    assert.equal(fragment(item("")), fragmentOf('"t"', "1"));
    assert.equal(fragment(item(""), request), carrying(request));
    assert.equal(fragment(item(`,"traceparent":"${own}"`)), carrying(own));
    assert.equal(fragment(item(`,"traceparent":"${own}"`), request), carrying(own));
    assert.equal(fragment(item(`,"trace\\u0070arent":"\\u0030${own.slice(1)}"`)), carrying(own));
    const traceId = `"${NEW_ID}"`;
    assert.equal(
      fragment(item(`,"traceId":${traceId},"traceparent":"${own}"`), request),
      carrying(own, traceId),
    );
    assert.equal(fragment(item(`,"traceId":${traceId}`), request), carrying(request, traceId));
  });

  test("what is none is ignored, whatever it is", () => {
    const bad = [
      "null",
      "5",
      "{}",
      '""',
      `"01${own.slice(2)}"`,
      `"ff${own.slice(2)}"`,
      `"${own}-00"`,
      `"${own.toUpperCase()}"`,
      `"${own.slice(0, -1)}"`,
      `"${own}\\n"`,
      `" ${own}"`,
      `"00-${"0".repeat(32)}-b7ad6b7169203331-01"`,
      `"00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01"`,
    ];
    for (const value of bad) {
      const item = `{"queue":"q","transactionId":"t","payload":1,"traceparent":${value}}`;
      assert.equal(fragment(item), fragmentOf('"t"', "1"), value);
      assert.equal(fragment(item, request), carrying(request), value);
    }
  });
});

test("a reader reads items anywhere in a body, under the path it is given", () => {
  const scanner = new JsonScanner('{"operations":[{"items":[{"queue":"a"}]},{"items":[{"queue":2}]}]}');
  const reader = new PushItemReader(scanner, () => NEW_ID, null);
  const first = scanner.text.indexOf("[{", 15);
  assert.equal(reader.readItems(first, "operations[0].items")[0]!.queue, "a");
  assert.equal(scanner.text.slice(reader.end, reader.end + 2), "},");
  const second = scanner.text.lastIndexOf("[{");
  assert.throws(() => reader.readItems(second, "operations[1].items"), {
    message: "operations[1].items[0].queue: Queue must be a string",
  });
});

test("for any items, the parser finds what JSON.parse finds", () => {
  const name = fc.string({
    unit: fc.constantFrom("a", "b", "-", "é", "😀", '"', "\\", "/"),
    minLength: 1,
    maxLength: 20,
  });
  const item = fc.record(
    {
      queue: name,
      partition: name,
      transactionId: fc.oneof(name, fc.constantFrom("", null)),
      traceId: fc.option(fc.uuid()),
      payload: fc.jsonValue(),
      data: fc.jsonValue(),
      extra: fc.jsonValue(),
    },
    { requiredKeys: ["queue"] },
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 8 }), fc.constantFrom(0, 1, "\t"), (items, space) => {
      const parsed = parse(JSON.stringify({ extra: items, items }, null, space));
      assert.equal(parsed.length, items.length);
      for (const [index, sent] of items.entries()) {
        const found = parsed[index]!;
        const transactionId = sent.transactionId || NEW_ID;
        assert.equal(found.queue, sent.queue);
        assert.equal(found.partition, sent.partition ?? DEFAULT_PARTITION);
        assert.equal(found.transactionId, transactionId);
        const payload = sent.payload !== undefined ? sent.payload : (sent.data ?? null);
        assert.deepEqual(JSON.parse(`{${utf8(found.fragment)}}`), {
          transactionId,
          traceId: sent.traceId ?? null,
          producerSub: null,
          data: JSON.parse(JSON.stringify(payload)),
        });
      }
    }),
  );
});

test("after random edits, a body is invalid JSON exactly when JSON.parse says so", () => {
  const body = '{"a":[1,{}],"items":[{"queue":"q","payload":{"x":[1,2]},"y":[]},{"queue":"r"}],"b":null}';
  const edit = fc.tuple(
    fc.nat({ max: body.length }),
    fc.nat({ max: 2 }),
    fc.constantFrom(
      "",
      "[",
      "]",
      "{",
      "}",
      ":",
      ",",
      '"',
      "\\",
      "1",
      " ",
      "[]",
      "{}",
      '"items":[]',
      "}}",
      "]]",
    ),
  );
  let invalidCount = 0;
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      let json = body;
      for (const [at, removed, added] of edits) json = json.slice(0, at) + added + json.slice(at + removed);
      let code: string | undefined;
      try {
        parse(json);
      } catch (error) {
        code = (error as BrokerError).code;
      }
      let isValid = true;
      try {
        JSON.parse(json);
      } catch {
        isValid = false;
        invalidCount++;
      }
      assert.equal(code !== "INVALID_JSON", isValid, json);
    }),
    { numRuns: 5000 },
  );
  assert.ok(invalidCount > 1000 && invalidCount < 4950, `${invalidCount} of 5000 are invalid`);
});
