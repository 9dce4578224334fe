/** Traces: what messages carry, and what the broker tells a collector about pushes, pops and acks. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../support/broker.ts";
import { type CollectedSpan, type Collector, startCollector } from "../support/collector.ts";
import type { HttpClient, PoppedMessage } from "../support/http.ts";
import { newQueue, numbered, type System, startSystem, until } from "../support/system.ts";

type Traced = PoppedMessage & { readonly traceparent?: string };

const SERVER = 2;
const CLIENT = 3;
const PRODUCER = 4;
const CONSUMER = 5;

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const OWN = "00-1111111111111111aaaaaaaaaaaaaaaa-2222222222222222-01";
const withParent = { headers: { traceparent: PARENT } };

/** Spans leave at once, so that a test need not wait for them. */
const exporting = (url: string): Record<string, string> => ({
  NUM_WORKERS: "1",
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: "20",
});

let collector: Collector;
let system: System;
let client: HttpClient;
/** A broker without a collector on the same database. */
let plain: HttpClient;

before(async () => {
  collector = await startCollector();
  system = await startSystem({
    ...exporting(collector.url),
    OTEL_SERVICE_NAME: "orders-broker",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b",
  });
  client = system.client;
  plain = (await system.another({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })).client;
});
after(async () => {
  await system?.stop();
  await collector?.stop();
});

const isOf = (span: CollectedSpan, operation: string): boolean =>
  span.attributes["messaging.operation.name"] === operation;

/** The span of an operation on a queue, once it is there. */
const spanOf = (operation: string, queue: string): Promise<CollectedSpan> =>
  until(`a span: ${operation} ${queue}`, async () =>
    collector.spans.find(
      (span) => isOf(span, operation) && span.attributes["messaging.destination.name"] === queue,
    ),
  );

const spanWithId = (requestId: string): Promise<CollectedSpan> =>
  until(`the span of ${requestId}`, async () =>
    collector.spans.find((span) => span.attributes["queen.request.id"] === requestId),
  );

const placeOf = (span: CollectedSpan): string => `00-${span.traceId}-${span.spanId}`;

const push = (to: HttpClient, items: readonly object[], headers: Record<string, string> = {}) =>
  to.request("POST", "/api/v1/push", { items }, { headers });

const carriedBy = (messages: readonly PoppedMessage[]): (string | undefined)[] =>
  (messages as readonly Traced[]).map((message) => message.traceparent);

// ------------------------------------------------------------------------------------------------- messages

test("without a collector a message carries what its push brought: the item's own, or the request's", async () => {
  const queue = newQueue();
  await push(plain, [{ queue, transactionId: "t0", payload: 0 }]);
  await push(
    plain,
    [
      { queue, transactionId: "t1", payload: 1 },
      { queue, transactionId: "t2", traceparent: OWN },
    ],
    {
      traceparent: PARENT,
    },
  );
  await push(plain, [{ queue, transactionId: "t3", traceparent: "00-none" }], { traceparent: `${PARENT}-x` });
  const { messages, text } = await plain.pop(queue, { batch: 10, autoAck: true });
  assert.deepEqual(carriedBy(messages), [undefined, PARENT, OWN, undefined]);
  assert.equal(text.match(/"traceparent"/g)?.length, 2, "where there is none, there is no field");
});

test("a message carries it everywhere it goes: dead letters, lists, requeue, transactions, SQL", async () => {
  const queue = newQueue();
  const target = newQueue();
  await plain.configure(queue, { retryLimit: 0 });
  await push(plain, [{ queue, transactionId: 'a","data":', payload: { traceparent: "x" } }], {
    traceparent: PARENT,
  });
  const [message] = (await plain.pop(queue)).messages;
  await plain.ackMessages([message!], "failed", "no");
  const { messages: letters } = (await plain.request("GET", `/api/v1/dlq?queue=${queue}`)).json;
  assert.deepEqual([letters[0].traceparent, letters[0].data], [PARENT, { traceparent: "x" }]);
  const path = `/api/v1/messages/${message!.partitionId}/${encodeURIComponent(message!.transactionId)}`;
  const one = (await plain.request("GET", path)).json;
  assert.deepEqual([one.traceparent, one.payload], [PARENT, { traceparent: "x" }]);
  const listed = (await plain.request("GET", `/api/v1/messages?queue=${queue}`)).json.messages;
  assert.deepEqual([listed[0].traceparent, listed[0].transactionId], [PARENT, 'a","data":']);

  await plain.request("POST", "/api/v1/dlq/requeue", { queue });
  const [again] = (await plain.pop(queue)).messages as Traced[];
  assert.deepEqual([again!.traceparent, again!.transactionId], [PARENT, 'a","data":']);
  const moved = await plain.request(
    "POST",
    "/api/v1/transaction",
    {
      operations: [
        {
          type: "ack",
          transactionId: again!.transactionId,
          partitionId: again!.partitionId,
          leaseId: again!.leaseId,
        },
        {
          type: "push",
          items: [
            { queue: target, payload: 1 },
            { queue: target, traceparent: OWN, payload: 2 },
          ],
        },
      ],
    },
    withParent,
  );
  assert.equal(moved.json.success, true, moved.text);
  assert.deepEqual(carriedBy((await plain.pop(target, { batch: 5 })).messages), [PARENT, OWN]);
  const rows = await system.database.query(
    `select m.transaction_id, m.payload::text as payload from queen.messages m
       join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id
      where q.name = $1`,
    [target],
  );
  assert.deepEqual(
    rows.map((row) => row.payload),
    ["1", "2"],
  );
});

// ---------------------------------------------------------------------------------------------------- spans

test("push, pop and ack are spans, and those of pop and ack link to the push", async () => {
  const queue = newQueue();
  const items = numbered(queue, 3, "p");
  await client.request(
    "POST",
    "/api/v1/push",
    { items },
    { headers: { traceparent: PARENT, "x-request-id": "r-1" } },
  );
  const { messages } = await client.pop(queue, { batch: 10, consumerGroup: "g" });
  await client.ackMessages(messages);

  const pushed = await spanOf("push", queue);
  assert.deepEqual([pushed.name, pushed.kind, pushed.isError], [`push ${queue}`, PRODUCER, false]);
  assert.deepEqual(
    [pushed.traceId, pushed.parentSpanId],
    [TRACE, PARENT.slice(36, 52)],
    "a child of its client",
  );
  assert.deepEqual(pushed.links, []);
  assert.deepEqual(pushed.attributes, {
    "messaging.system": "queen",
    "messaging.operation.name": "push",
    "messaging.operation.type": "send",
    "messaging.destination.name": queue,
    "messaging.destination.partition.id": "p",
    "messaging.batch.message_count": 3,
    "queen.request.id": "r-1",
  });
  assert.deepEqual(
    carriedBy(messages),
    [0, 1, 2].map(() => `${placeOf(pushed)}-01`),
    "messages carry the push itself, in the client's trace",
  );

  const popped = await spanOf("pop", queue);
  assert.deepEqual([popped.name, popped.kind, popped.parentSpanId], [`pop ${queue}`, CONSUMER, undefined]);
  assert.notEqual(popped.traceId, TRACE);
  assert.deepEqual(popped.links, [placeOf(pushed)], "one link for three messages of one push");
  assert.equal(popped.attributes["messaging.operation.type"], "receive");
  assert.equal(popped.attributes["messaging.consumer.group.name"], "g");
  assert.equal(popped.attributes["messaging.batch.message_count"], 3);

  const acked = await spanOf("ack", queue);
  assert.deepEqual([acked.name, acked.kind], [`ack ${queue}`, SERVER]);
  assert.deepEqual(acked.links, [placeOf(pushed)]);
  assert.equal(acked.attributes["messaging.operation.type"], "settle");
  assert.equal(acked.attributes["messaging.consumer.group.name"], "g");
  assert.equal(acked.attributes["messaging.batch.message_count"], 3);

  const { resource } = pushed;
  assert.deepEqual(
    [resource["service.name"], resource["deployment.environment.name"]],
    ["orders-broker", "test"],
  );
  assert.equal(collector.headers.at(-1)!["x-tenant"], "a b");
});

test("an item's own traceparent is kept, and the push, the pop and the ack link to it", async () => {
  const queue = newQueue();
  await push(client, [
    { queue, transactionId: "own", traceparent: OWN },
    { queue, transactionId: "of the push" },
  ]);
  const pushed = await spanOf("push", queue);
  assert.equal(pushed.parentSpanId, undefined);
  assert.deepEqual(pushed.links, [OWN.slice(0, 52)]);
  const { messages } = await client.pop(queue, { batch: 10 });
  assert.deepEqual(carriedBy(messages), [OWN, `${placeOf(pushed)}-01`]);
  const both = [OWN.slice(0, 52), placeOf(pushed)];
  assert.deepEqual((await spanOf("pop", queue)).links, both);
  await client.ackMessages(messages.slice(0, 1));
  assert.deepEqual((await spanOf("ack", queue)).links, both.slice(0, 1), "only of what it acked");
});

test("the ack of a range links to what each of its messages carries, and counts them", async () => {
  const queue = newQueue();
  const own = [OWN, OWN.replace(/^(00-.{31})./, "$1b"), OWN.replace(/^(00-.{31})./, "$1c")];
  for (const traceparent of own) await push(client, [{ queue, traceparent }]);
  const { messages } = await client.pop(queue, { batch: 10 });
  const { id: firstId, leaseId } = messages[1]!;
  const acknowledgments = [{ firstId, lastId: messages[2]!.id, leaseId }];
  await client.request("POST", "/api/v1/ack/batch", { acknowledgments });
  const acked = await spanOf("ack", queue);
  assert.deepEqual(
    acked.links,
    own.slice(1).map((traceparent) => traceparent.slice(0, 52)),
  );
  assert.equal(acked.attributes["messaging.batch.message_count"], 2);
});

test("another broker's ack links to the push as well", async () => {
  const { client: other } = await system.another();
  const queue = newQueue();
  await push(client, [{ queue, traceparent: OWN }]);
  await other.ackMessages((await client.pop(queue)).messages);
  assert.deepEqual((await spanOf("ack", queue)).links, [OWN.slice(0, 52)]);
});

test("a transaction is a span that links to what it acks and is carried by what it pushes", async () => {
  const source = newQueue();
  const target = newQueue();
  await push(client, [{ queue: source, traceparent: OWN }]);
  const [message] = (await client.pop(source)).messages;
  const { transactionId, partitionId, leaseId } = message!;
  const operations = [
    { type: "ack", transactionId, partitionId, leaseId },
    { type: "push", items: [{ queue: target, payload: 1 }] },
  ];
  const headers = { traceparent: PARENT, "x-request-id": "transaction-1" };
  await client.request("POST", "/api/v1/transaction", { operations }, { headers });
  const span = await spanWithId("transaction-1");
  assert.deepEqual([span.name, span.kind, span.traceId], ["transaction", SERVER, TRACE]);
  assert.deepEqual(span.links, [OWN.slice(0, 52)]);
  assert.equal(span.attributes["messaging.batch.message_count"], 2);
  assert.deepEqual(carriedBy((await client.pop(target)).messages), [`${placeOf(span)}-01`]);
});

test("the call to the database is a child of its request's span, and links to those merged with it", async () => {
  const queue = newQueue();
  await push(client, [{ queue, payload: 0 }]);
  const pushed = await spanOf("push", queue);
  const call = await until("the call", async () =>
    collector.spans.find((span) => span.parentSpanId === pushed.spanId),
  );
  assert.deepEqual([call.name, call.kind, call.traceId], ["append", CLIENT, pushed.traceId]);
  assert.equal(call.attributes["db.system.name"], "postgresql");

  // While somebody holds the partition, requests gather behind it and then share a call.
  const other = await system.database.client();
  await other.query("begin");
  await other.query(
    "select 1 from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 for update of p",
    [queue],
  );
  const ids = Array.from({ length: 5 }, (_, index) => `merged-${index}`);
  const answers = ids.map((id) => push(client, [{ queue, payload: id }], { "x-request-id": id }));
  const metrics = async () => (await client.request("GET", "/metrics")).json;
  await until("they wait", async () => (await metrics()).requests.active > ids.length);
  const { batches } = (await metrics()).sidecar.operations.push;
  await until("all of them were tried", async () => {
    const now = (await metrics()).sidecar.operations.push.batches;
    return now >= batches + 3; // one may have begun before the last of them came
  });
  await other.query("rollback");
  await Promise.all(answers);
  const places = (await Promise.all(ids.map(spanWithId))).map(placeOf);
  await until("a call with all of them", async () =>
    collector.spans.find((span) => {
      const of = [`00-${span.traceId}-${span.parentSpanId}`, ...span.links];
      return span.name === "append" && places.every((place) => of.includes(place));
    }),
  );
});

test("an operation that fails is a span that says so", async () => {
  await client.request("POST", "/api/v1/push", { items: [{}] }, { headers: { "x-request-id": "bad-1" } });
  const span = await spanWithId("bad-1");
  assert.deepEqual([span.isError, span.attributes["error.type"]], [true, "VALIDATION_FAILED"]);
});

test("a client that does not sample is not recorded, and its traceparent is carried as it came", async () => {
  const queue = newQueue();
  const unsampled = `${PARENT.slice(0, -2)}00`;
  await push(client, [{ queue }], { traceparent: unsampled, "x-request-id": "unsampled" });
  assert.deepEqual(carriedBy((await client.pop(queue)).messages), [unsampled]);
  await spanOf("pop", queue); // which was later
  assert.ok(!collector.spans.some((span) => span.attributes["queen.request.id"] === "unsampled"));
});

test("OTEL_TRACES_SAMPLER is followed", async () => {
  const { client } = await system.another({ OTEL_TRACES_SAMPLER: "always_off" });
  const queue = newQueue();
  await push(client, [{ queue }], { traceparent: PARENT });
  assert.deepEqual(carriedBy((await client.pop(queue)).messages), [PARENT]);
});

// ---------------------------------------------------------------------------------------- collectors in trouble

const failures = (output: string): number => output.split('"event":"traces.failed"').length - 1;

/** More operations than the queue of spans holds. */
async function load(client: HttpClient): Promise<void> {
  const queue = newQueue();
  for (let round = 0; round < 40; round++) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        push(client, [{ queue, partition: `p${index}`, payload: round }]),
      ),
    );
    for (const answer of answers) assert.equal(answer.status, 201);
  }
  let popped = 0;
  await until("everything is popped", async () => {
    popped += (await client.pop(queue, { batch: 10_000, partitions: 50, autoAck: true })).messages.length;
    return popped >= 2_000;
  });
  assert.equal(popped, 2_000);
}

test("a collector that is away costs spans and a warning once in a while, and comes back", async () => {
  const port = await freePort();
  const { broker, client } = await system.another({
    ...exporting(`http://127.0.0.1:${port}`),
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
  });
  await load(client);
  await until("a warning", async () => failures(broker.output()) > 0);
  const startedMs = performance.now();
  const atFirst = failures(broker.output());
  await load(client);
  const elapsedMs = performance.now() - startedMs;
  const more = failures(broker.output()) - atFirst;
  assert.ok(more <= 1 + elapsedMs / 5_000, `${more} warnings in ${elapsedMs} ms`);
  assert.match(broker.output(), new RegExp(`Spans are lost: 127\\.0\\.0\\.1:${port} did not take them`));

  const late = await startCollector(port);
  try {
    const queue = newQueue();
    await until("a span arrives", async () => {
      await push(client, [{ queue }]);
      return late.spans.some((span) => isOf(span, "push"));
    });
    assert.equal(await broker.stop(), 0);
  } finally {
    await late.stop();
  }
});

test("a collector that hangs holds up neither requests nor the end of the broker", async () => {
  const hanging = await startCollector();
  hanging.hang();
  const { broker, client } = await system.another({
    ...exporting(hanging.url),
    QUEEN_SHUTDOWN_TIMEOUT_MS: "2000",
  });
  try {
    await load(client);
    await until("an export is under way", async () => hanging.headers.length > 0);
    await load(client);
    assert.equal(await broker.stop(), 0);
    // A worker that does not end by itself is ended, and then says nothing.
    assert.match(
      broker.output(),
      /The last spans are lost: 127\.0\.0\.1:\d+ did not take them within \d+ ms/,
    );
  } finally {
    await hanging.stop();
  }
});

test("what was not sent yet is sent when the broker ends", async () => {
  const own = await startCollector();
  const { broker, client } = await system.another({
    ...exporting(own.url),
    OTEL_BSP_SCHEDULE_DELAY: "600000",
  });
  try {
    for (let n = 0; n < 10; n++) await push(client, [{ queue: newQueue() }]);
    assert.equal(own.spans.length, 0);
    assert.equal(await broker.stop(), 0);
    assert.equal(own.spans.filter((span) => isOf(span, "push")).length, 10);
  } finally {
    await own.stop();
  }
});
