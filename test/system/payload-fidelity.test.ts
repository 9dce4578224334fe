/** Payloads come back byte for byte (P10): by pop, by dead letter, by transaction, and in SQL. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newQueue, type System, startSystem } from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const nested = (levels: number, open: string, close: string, middle = ""): string =>
  open.repeat(levels) + middle + close.repeat(levels);

/** JSON texts that a parser and a serialiser, or jsonb, would change or refuse. */
const PAYLOADS: readonly (readonly [string, string])[] = [
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

const itemOf = (queue: string, index: number, payload: string): string =>
  `{"queue":"${queue}","partition":"p","transactionId":"t${index}","payload":${payload}}`;

/** The text between a message's `"data":` and the field behind it. */
function dataText(answer: string, next: string): string {
  const start = answer.indexOf('"data":') + '"data":'.length;
  return answer.slice(start, answer.lastIndexOf(next));
}

/** Compares without printing megabytes. */
function assertSame(actual: string, expected: string, what: string): void {
  if (actual === expected) return;
  let at = 0;
  while (actual[at] === expected[at]) at++;
  const near = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 20), at + 20));
  assert.fail(
    `${what}: ${actual.length} characters instead of ${expected.length}; at ${at} ${near(actual)} instead of ${near(expected)}`,
  );
}

async function pushAll(queue: string): Promise<void> {
  const items = PAYLOADS.map(([, payload], index) => itemOf(queue, index, payload));
  const answer = await system.client.request("POST", "/api/v1/push", `{"items":[${items.join(",")}]}`);
  assert.equal(answer.status, 201, answer.text.slice(0, 1_000));
}

async function popAll(queue: string): Promise<void> {
  for (const [what, payload] of PAYLOADS) {
    const answer = await system.client.pop(queue, { autoAck: true });
    assertSame(dataText(answer.text, ',"createdAt":"'), payload, what);
  }
}

test("pop gives every payload back byte for byte", async () => {
  const queue = newQueue();
  await pushAll(queue);
  await popAll(queue);
});

test("one pop of all of them gives the same", async () => {
  const queue = newQueue();
  await pushAll(queue);
  const { text } = await system.client.pop(queue, { batch: 100 });
  let at = 0;
  for (const [what, payload] of PAYLOADS) {
    at = text.indexOf('"producerSub":null,"data":', at) + '"producerSub":null,"data":'.length;
    assertSame(text.slice(at, at + payload.length), payload, what);
    at += payload.length;
    assert.equal(text.slice(at, at + 14), ',"createdAt":"', what);
  }
});

test("a broker that never saw the payloads gives the same", async () => {
  const queue = newQueue();
  await pushAll(queue);
  const { client } = await system.another();
  for (const [what, payload] of PAYLOADS) {
    const answer = await client.pop(queue, { autoAck: true });
    assertSame(dataText(answer.text, ',"createdAt":"'), payload, what);
  }
});

test("a transaction's pushes give the same", async () => {
  const queue = newQueue();
  const items = PAYLOADS.map(([, payload], index) => itemOf(queue, index, payload));
  const half = items.length >> 1;
  const flat = items[0]!.replace("{", '{"type":"push",');
  const answer = await system.client.request(
    "POST",
    "/api/v1/transaction",
    `{"operations":[${flat},{"type":"push","items":[${items.slice(1, half)}]},{"items":[${items.slice(half)}],"type":"push"}]}`,
  );
  assert.equal(answer.status, 200, answer.text.slice(0, 1_000));
  await popAll(queue);
});

test("dead letters hold the same", async () => {
  const queue = newQueue();
  await pushAll(queue);
  const { messages } = await system.client.pop(queue, { batch: 100 });
  await system.client.ackMessages(messages, "dlq", "kept");
  for (const [index, [what, payload]] of PAYLOADS.entries()) {
    const offset = PAYLOADS.length - 1 - index; // newest first
    const answer = await system.client.request("GET", `/api/v1/dlq?queue=${queue}&limit=1&offset=${offset}`);
    assertSame(dataText(answer.text, ',"partitionId":"'), payload, what);
  }
});

test("queen.messages shows the same", async () => {
  const queue = newQueue();
  await pushAll(queue);
  const rows = await system.database.query(
    `select m.payload::text, m.transaction_id from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by m.message_offset`,
    [queue],
  );
  assert.equal(rows.length, PAYLOADS.length);
  for (const [index, [what, payload]] of PAYLOADS.entries()) {
    assertSame(rows[index]!.payload, payload, what);
    assert.equal(rows[index]!.transaction_id, `t${index}`);
  }
});

test("a transactionId with escapes means the same as one without, and is found by either", async () => {
  const queue = newQueue();
  const push = (transactionId: string) =>
    system.client.request(
      "POST",
      "/api/v1/push",
      `{"items":[{"queue":"${queue}","transactionId":"${transactionId}","payload":1}]}`,
    );
  const spellings = ['ä/\\"😀', '\\u00e4\\/\\\\\\"\\ud83d\\ude00', "\\u00E4\\u002f\\u005c\\u0022😀"];
  const results = [];
  for (const spelling of [spellings[0]!.replace(/[\\"]/g, "\\$&"), ...spellings.slice(1)]) {
    results.push((await push(spelling)).json[0]);
  }
  assert.deepEqual(
    results.map((result) => [result.status, result.transaction_id]),
    [
      ["queued", spellings[0]],
      ["duplicate", spellings[0]],
      ["duplicate", spellings[0]],
    ],
  );
  const { messages } = await system.client.pop(queue);
  assert.equal(messages[0]!.transactionId, spellings[0]);
  assert.equal((await system.client.ackMessages(messages))[0]!.success, true);
});

test("what cannot be kept is refused before anything is stored", async () => {
  const queue = newQueue();
  const bodies: [string, Buffer | string][] = [
    ["513 levels", itemOf(queue, 0, nested(513, "[", "]"))],
    ["a raw control character", itemOf(queue, 0, '"\u0000"')],
    ["a raw newline", itemOf(queue, 0, '"\n"')],
    ["bytes that are no UTF-8", Buffer.from(itemOf(queue, 0, '"\xff"'), "latin1")],
    ["an encoded surrogate", Buffer.from(itemOf(queue, 0, '"\xed\xa0\x80"'), "latin1")],
    ["an overlong NUL", Buffer.from(itemOf(queue, 0, '"\xc0\x80"'), "latin1")],
    ["a number with a leading zero", itemOf(queue, 0, "01")],
    ["an escape that does not exist", itemOf(queue, 0, '"\\x"')],
    ["NaN", itemOf(queue, 0, "NaN")],
  ];
  for (const [what, item] of bodies) {
    for (const [path, open, close] of [
      ["push", '{"items":[', "]}"],
      ["transaction", '{"operations":[{"type":"push","items":[', "]}]}"],
    ] as const) {
      const body = Buffer.concat([Buffer.from(open), Buffer.from(item), Buffer.from(close)]);
      const answer = await system.client.request("POST", `/api/v1/${path}`, body);
      assert.deepEqual([answer.status, answer.json?.code], [400, "INVALID_JSON"], `${what}: ${answer.text}`);
    }
  }
  assert.equal(
    (await system.database.query("select 1 from queen.queues where name = $1", [queue])).length,
    0,
  );
});
