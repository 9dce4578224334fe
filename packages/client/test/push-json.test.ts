/** Items of a push as JSON, whatever stood before them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pushJson } from "../src/push-json.ts";

test("an item is what JSON.stringify makes of it, whoever its neighbour was", () => {
  const queues = ["q", 'a "queue" \\ \n', "ü€😀", "\ud800"];
  const partitions = ["Default", '"', "ü"];
  const payloads = [null, 0, "", 'te"xt', [1], { a: { b: "\u2028" } }, new Date(0), () => "no JSON"];
  const traces = [{}, { traceId: 'a"b' }, { traceparent: "00-1-2-01" }, { traceId: "t", traceparent: "p" }];
  for (const payload of payloads)
    for (const trace of traces)
      for (const queue of queues)
        for (const partition of partitions) {
          const item = { queue, partition, transactionId: `id "${queue}"`, payload, ...trace };
          assert.deepEqual(JSON.parse(pushJson(item)), JSON.parse(JSON.stringify(item)));
        }
});
