import assert from "node:assert/strict";
import { test } from "node:test";
import { parseTraceBody } from "../src/operations/trace-body.ts";

const parse = (text: string) =>
  parseTraceBody(Buffer.from(text, "utf8").toString("latin1"), JSON.parse(text) as unknown);
const WHO = '"transactionId":"t","partitionId":"p"';

test("data is kept as it was sent", () => {
  for (const data of [
    "null",
    "0",
    '{"a":1,"a":2,"big":1e400,"z":"\\u0000 \\ud800 é€"}',
    '[ 1 , {"data":2} ]',
  ]) {
    assert.equal(parse(`{${WHO},"data":${data},"x":{"data":7}}`).data, data);
  }
  assert.equal(parse(`{"d\\u0061ta":1,${WHO},"data":2}`).data, "2", "of two, the last");
});

test("what is not said has a default, and names come in three forms", () => {
  const { data: _, ...rest } = parse(`{${WHO},"data":1}`);
  assert.deepEqual(rest, {
    transactionId: "t",
    partitionId: "p",
    consumerGroup: "__QUEUE_MODE__",
    eventType: "info",
    names: [],
  });
  const names = (value: string) => parse(`{${WHO},"data":1,"traceNames":${value}}`).names;
  assert.deepEqual(
    [names("null"), names('"a"'), names('["a","b"]'), names("[]")],
    [[], ["a"], ["a", "b"], []],
  );
  const said = parse(`{${WHO},"data":1,"consumerGroup":"g","eventType":"error"}`);
  assert.deepEqual([said.consumerGroup, said.eventType], ["g", "error"]);
});

test("a bad body is refused with a sentence", () => {
  for (const [text, sentence] of [
    ["{}", /^transactionId and partitionId are required$/],
    ['{"transactionId":"t","data":1}', /^transactionId and partitionId are required$/],
    [`{${WHO}}`, /^data is required$/],
    [`{${WHO},"data":"${"x".repeat(65_536)}"}`, /^data may have 65536 bytes, got 65538/],
    ["[1]", /required/],
    [`{${WHO},"data":1,"traceNames":5}`, /traceNames must be a string or an array/],
    [`{${WHO},"data":1,"traceNames":[""]}`, /traceNames\[0\].*not be empty/],
    [`{${WHO},"data":1,"traceNames":[${Array(101).fill('"n"')}]}`, /at most 100/],
    ['{"transactionId":5,"partitionId":"p","data":1}', /transactionId.*must be a string/],
    ['{"transactionId":"t","partitionId":5,"data":1}', /partitionId must be a string/],
  ] as const) {
    assert.throws(() => parse(text), { code: "VALIDATION_FAILED", message: sentence }, text);
  }
});
