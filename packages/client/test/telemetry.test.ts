/** Spans, for those who have OpenTelemetry: a message carries its push's span to its handler's. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { startTestQueen, type TestQueen } from "@queen/testing";

let system: TestQueen;
const spans = new InMemorySpanExporter();
before(async () => {
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
  system = await startTestQueen();
});
after(() => system?.stop());

test("the handler of a message continues the trace of its push, and a failure is noted", async () => {
  const queen = system.client();
  const queue = queen.queue<number>("traced");
  await queue.push([{ data: 1 }, { data: 2 }]);
  await queue
    .batch(2)
    .each()
    .limit(2)
    .consume(({ data }) => {
      if (data === 2) throw new Error("no");
    })
    .onError(() => "dlq");
  const [push, first, second] = spans.getFinishedSpans();
  assert.deepEqual(
    [push?.name, first?.name, second?.name],
    ["push traced", "process traced", "process traced"],
  );
  assert.equal(push?.attributes["messaging.batch.message_count"], 2);
  for (const span of [first, second]) {
    assert.equal(span?.spanContext().traceId, push?.spanContext().traceId);
    assert.equal(span?.parentSpanContext?.spanId, push?.spanContext().spanId);
    assert.equal(span?.links[0]?.context.spanId, push?.spanContext().spanId);
  }
  assert.equal(first?.events.length, 0);
  assert.equal(second?.events[0]?.name, "exception");
});
