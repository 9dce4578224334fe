/**
 * An answer of PostgreSQL is lost after the commit: the request is answered all the same, and what it asked for was done
 * once. The lane may be new to the broker, or known; what it stored there without hearing of it makes the difference.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BrokerProcess, startBrokerProcess } from "../support/broker.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { HttpClient, type PoppedMessage } from "../support/http.ts";
import { NOT_POOLED } from "../support/pooled.ts";
import { type PostgresProxy, startProxy } from "../support/proxy.ts";
import { countMessages, dataOf, newQueue, numbered, readCursors } from "../support/system.ts";

let database: TestDatabase;
let proxy: PostgresProxy;
let broker: BrokerProcess;
let client: HttpClient;

before(async () => {
  database = await createDatabase();
  proxy = await startProxy(database.url);
  broker = await startBrokerProcess({ databaseUrl: proxy.urlOf(database.url), env: { NUM_WORKERS: "1" } });
  client = new HttpClient(broker.url);
});
after(async () => {
  client?.close();
  await broker?.kill("SIGKILL");
  await proxy?.close();
  await database?.drop();
});

const PARTITIONS = ["a", "b", "c"];

/** A queue whose partitions this broker does not know yet, or has pushed one message to each. */
async function queueOf(lanes: "new" | "known"): Promise<string> {
  const queue = newQueue(lanes);
  const before = PARTITIONS.map((partition) => ({ queue, partition, transactionId: "before", payload: -1 }));
  if (lanes === "known") await client.push(before);
  return queue;
}

async function losing<T>(statement: string, work: () => Promise<T>): Promise<T> {
  const { lost } = proxy;
  proxy.loseAnswers(statement, 1);
  const result = await work();
  assert.equal(proxy.lost, lost + 1, `an answer of ${statement} was lost`);
  return result;
}

const payloadsIn = async (queue: string): Promise<unknown[]> => {
  const { messages } = await client.pop(queue, { batch: 100, partitions: 10 });
  return dataOf(messages)
    .filter((payload) => payload !== -1)
    .sort();
};

const items = (queue: string) =>
  PARTITIONS.map((partition, payload) => ({ queue, partition, transactionId: `t${payload}`, payload }));

const ackOf = ({ transactionId, partitionId, leaseId }: PoppedMessage, status: string) => ({
  type: "ack",
  transactionId,
  partitionId,
  leaseId,
  status,
});

for (const lanes of ["new", "known"] as const) {
  test(`of a push to ${lanes} lanes`, NOT_POOLED, async () => {
    const queue = await queueOf(lanes);
    const results = await losing("queen_append", () => client.push(items(queue)));
    assert.deepEqual(
      results.map((result) => result.status),
      ["queued", "queued", "queued"],
    );
    assert.deepEqual(await payloadsIn(queue), [0, 1, 2]);
  });

  // Dead letters are not plain: such a transaction is a call of its own.
  for (const [kind, statement, status] of [
    ["plain", "queen_transact_many", "completed"],
    ["not plain", "queen_transact", "dlq"],
  ] as const) {
    test(`of a transaction that is ${kind}, with pushes to ${lanes} lanes`, NOT_POOLED, async () => {
      const source = newQueue("source");
      await client.push(numbered(source, 3));
      const { messages } = await client.pop(source, { batch: 3 });
      const sink = await queueOf(lanes);
      const answer = await losing(statement, () =>
        client.transaction([
          ...messages.map((message) => ackOf(message, status)),
          { type: "push", items: items(sink) },
        ]),
      );
      assert.deepEqual([answer.status, answer.json.success], [200, true], answer.text);
      const acks = (answer.json.results as { type: string; dlq: boolean }[]).filter(
        ({ type }) => type === "ack",
      );
      assert.deepEqual(
        acks.map(({ dlq }) => dlq),
        messages.map(() => status === "dlq"),
      );
      assert.deepEqual(await payloadsIn(sink), [0, 1, 2]);
      const [cursor] = await readCursors(database, source);
      assert.deepEqual([cursor!.committed, cursor!.leased], [3, false]);
      assert.equal(await countMessages(database, source), 3);
    });
  }
}

test(
  "of a transaction that gives its message back: it is told that its lease is over, and what it pushed is there once",
  NOT_POOLED,
  async () => {
    const source = newQueue("source");
    await client.push(numbered(source, 1));
    const { messages } = await client.pop(source);
    const sink = await queueOf("known");
    const operations = [ackOf(messages[0]!, "failed"), { type: "push", items: items(sink) }];
    const answer = await losing("queen_transact", () => client.transaction(operations));
    assert.deepEqual(
      [answer.status, answer.json.error],
      [409, "ACK operation failed: Invalid or expired lease"],
    );
    assert.deepEqual(await payloadsIn(sink), [0, 1, 2]);
    const again = await client.pop(source, { wait: true, timeout: 20_000 });
    assert.deepEqual(dataOf(again.messages), [0]);
  },
);
