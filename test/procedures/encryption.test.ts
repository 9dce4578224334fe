/** Encryption at rest: from the moment in which it is switched on, nothing stores plain text in the queue. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  APPEND,
  append,
  newLane,
  nextOffset,
  numbered,
  openLane,
  processId,
  push,
  readCursor,
  type TestLane,
  takeOne,
  transact,
  waitsForLock,
} from "../support/procedures.ts";
import { appendParameters, type Message } from "../support/segments.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;
let otherPid: number;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
  otherPid = await processId(other);
});
after(() => database?.drop());

const switchTo = (on: boolean, { queue }: TestLane, by = client) =>
  by.query("update queen.queues set encryption_enabled = $2 where name = $1", [queue, on]);

const STORED = '{"encrypted":"AAAA","iv":"AAAA","authTag":"AAAA"}';
const sealed = (transactionId: string): Message => ({ transactionId, keyId: "01234567", data: STORED });

/** Appends a message that nobody encrypted; returns the status. */
async function appendPlain(by: pg.Client, { partition }: { partition: number }): Promise<number> {
  const known = await nextOffset(client, partition);
  const [row] = await append(by, [{ partition, known, messages: numbered(1, known) }]);
  return row!.status;
}

test("plain text for an encrypted queue is refused, and the rest of the call is stored", async () => {
  const [encrypted, plain] = [await newLane(client, 1), await newLane(client)];
  await switchTo(true, encrypted);
  const rows = await append(client, [
    { partition: encrypted.partition, known: 1, messages: numbered(2, 1) },
    { partition: plain.partition, known: 0, messages: numbered(2) },
  ]);
  assert.deepEqual(rows.map((row) => [row.lane, row.status, row.at_offset]).sort(), [
    [0, APPEND.plain, null],
    [1, APPEND.appended, 0],
  ]);
  assert.equal(await nextOffset(client, encrypted.partition), 1);
  assert.equal(await appendPlain(client, encrypted), APPEND.plain, "alone, too");

  const [row] = await append(client, [
    { partition: encrypted.partition, known: 1, messages: [sealed("s")], sealed: true },
  ]);
  assert.deepEqual([row!.status, row!.at_offset], [APPEND.appended, 1]);
  await switchTo(false, encrypted);
  assert.equal(await appendPlain(client, encrypted), APPEND.appended);
});

test("a broker of an older version, which does not say what it sends, sends plain text", async () => {
  const [encrypted, plain] = [await newLane(client), await newLane(client)];
  await switchTo(true, encrypted);
  for (const [lane, status] of [
    [encrypted, APPEND.plain],
    [plain, APPEND.appended],
  ] as const) {
    const { rows } = await client.query(
      "select * from queen.append($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      await appendParameters(client, [{ partition: lane.partition, known: 0, messages: numbered(1) }]),
    );
    assert.equal(rows[0].status, status);
  }
});

test("switching it on waits for an append that is under way", async () => {
  const lane = await newLane(client);
  await client.query("begin");
  assert.equal(await appendPlain(client, lane), APPEND.appended);
  const switched = switchTo(true, lane, other);
  await waitsForLock(database, otherPid);
  await client.query("commit");
  await switched;
  assert.equal(await appendPlain(client, lane), APPEND.plain);
});

test("an append beside the switch is busy and waits for nobody, and is refused after it", async () => {
  const lane = await newLane(client);
  await client.query("begin");
  await switchTo(true, lane);
  assert.equal(await appendPlain(other, lane), APPEND.busy);
  await client.query("commit");
  assert.equal(await appendPlain(other, lane), APPEND.plain);
});

test("a lane that is being made beside the switch is encrypted, whoever is first", async () => {
  const lane = await newLane(client);
  await client.query("begin");
  const made = await openLane(client, lane.queue, "made first");
  const switched = switchTo(true, lane, other);
  await waitsForLock(database, otherPid);
  await client.query("commit");
  await switched;
  assert.equal(await appendPlain(client, made), APPEND.plain);

  const next = await newLane(client);
  await client.query("begin");
  await switchTo(true, next);
  const opened = openLane(other, next.queue, "made second");
  await waitsForLock(database, otherPid);
  await client.query("commit");
  assert.equal(await appendPlain(client, await opened), APPEND.plain);
});

test("a transaction whose snapshot is older than the switch makes no plain lane, and switches nothing", async () => {
  const lane = await newLane(client);
  await other.query("begin isolation level repeatable read");
  await other.query("select 1 from queen.queues");
  await switchTo(true, lane);
  const items = JSON.stringify([{ queue: lane.queue, partition: "new", payload: 1 }]);
  await assert.rejects(other.query("select queen.push_messages_v2($1)", [items]), { code: "40001" });
  await other.query("rollback");
  await other.query("begin isolation level repeatable read");
  await assert.rejects(switchTo(false, lane, other), { code: "0A000" });
  await other.query("rollback");
});

test("a queue that is made encrypted has encrypted lanes, Default and others", async () => {
  const queue = "made encrypted";
  const { rows } = await client.query(
    `select partition_id from queen.configure_queue($1, null, null, '{"encryption_enabled": true}', false)`,
    [queue],
  );
  assert.equal(await appendPlain(client, { partition: rows[0].partition_id }), APPEND.plain);
  assert.equal(await appendPlain(client, await openLane(client, queue, "later")), APPEND.plain);
});

test("a change of other options waits for no lane", async () => {
  const lane = await newLane(client);
  await client.query("begin");
  await appendPlain(client, lane);
  await other.query("set lock_timeout = '2s'");
  await other.query("update queen.queues set lease_time = 5, encryption_enabled = false where name = $1", [
    lane.queue,
  ]);
  await other.query("reset lock_timeout");
  await client.query("commit");
});

test("a transaction that brings plain text is refused whole, and told which lane", async () => {
  const [encrypted, plain] = [await newLane(client), await newLane(client)];
  await switchTo(true, encrypted);
  const pushes = [plain, encrypted].map(({ partition }) => ({ partition, known: 0, messages: numbered(1) }));
  await assert.rejects(transact(client, { pushes }), (error: pg.DatabaseError) => {
    assert.equal(error.code, "QN001");
    assert.deepEqual(
      JSON.parse(error.detail!).map((row: { lane: number; status: number }) => [row.lane, row.status]),
      [
        [0, APPEND.appended],
        [1, APPEND.plain],
      ],
    );
    return true;
  });
  assert.equal(await nextOffset(client, plain.partition), 0);
  await transact(client, { pushes: pushes.map((lane) => ({ ...lane, sealed: true })) });
  assert.equal(await nextOffset(client, encrypted.partition), 1);
});

test("what was stored before is moved as it is", async () => {
  const lane = await newLane(client, 2);
  await switchTo(true, lane);
  await client.query("select queen.bury_message($1, 0, 'workers', 'no')", [lane.partition]);
  const { rows } = await client.query(
    "select r.* from queen.dead_letters d, queen.requeue(array[d.id]) r where d.partition_id = $1",
    [lane.partition],
  );
  assert.deepEqual(
    rows.map((row) => row.at_offset),
    [2],
  );
});

test("SQL says which messages are encrypted, and gives what is stored", async () => {
  const lane = await newLane(client, 1);
  const messages = [sealed("s"), { transactionId: "looks so", data: STORED }];
  await push(client, lane.partition, messages);
  const { rows } = await client.query(
    `select transaction_id, is_encrypted, payload from queen.messages where partition_id = $1
      order by message_offset`,
    [lane.partition],
  );
  assert.deepEqual(rows, [
    { transaction_id: "m0", is_encrypted: false, payload: { n: 0 } },
    { transaction_id: "s", is_encrypted: true, payload: JSON.parse(STORED) },
    { transaction_id: "looks so", is_encrypted: false, payload: JSON.parse(STORED) },
  ]);
  const { rows: popped } = await client.query("select queen.pop_messages_v2($1) as answer", [
    { queue_name: lane.queue, consumer_group: "workers", batch_size: 3 },
  ]);
  assert.deepEqual(
    popped[0].answer.messages.map((message: Record<string, unknown>) => [
      message.transactionId,
      message.isEncrypted,
      message.keyId,
      message.data,
    ]),
    [
      ["m0", undefined, undefined, { n: 0 }],
      ["s", true, "01234567", JSON.parse(STORED)],
      ["looks so", undefined, undefined, JSON.parse(STORED)],
    ],
  );
});

test("what auto-ack finished can be taken back, and nothing else changes", async () => {
  const offset = fc.nat({ max: 11 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(offset, { maxLength: 6 }),
      fc.integer({ min: 1, max: 12 }),
      async (acked, budget) => {
        const lane = await newLane(client, 12);
        const done = acked.length === 0 ? "{}" : `{${acked.map((at) => `[${at},${at + 1})`).join()}}`;
        await client.query("select queen.finish($1, null, $2::int8multirange)", [lane.partition, done]);
        const before = await readCursor(client, lane);
        if (before.committed === 12) return;
        const first = await takeOne(client, { ...lane, autoAck: true, budget });
        const between = await readCursor(client, lane);
        await unfinish(lane, first);
        assert.deepEqual(await readCursor(client, lane), before);

        // And beside a consumer that went on behind it.
        const again = await takeOne(client, { ...lane, autoAck: true, budget });
        if (between.committed === 12) return;
        const second = await takeOne(client, { ...lane, autoAck: true });
        await unfinish(lane, again);
        assert.equal((await readCursor(client, lane)).committed, before.committed);
        const third = await takeOne(client, { ...lane, autoAck: true });
        assert.deepEqual(third.delivered, again.delivered, "exactly what was given back");
        assert.equal((await readCursor(client, lane)).committed, 12);
        assert.ok(second.delivered.every((id) => !third.delivered.includes(id)));
      },
    ),
    { numRuns: 40 },
  );
});

const unfinish = (lane: TestLane, taken: { from: number; to: number; acked: string | null }) =>
  client.query("select queen.unfinish($1, $2, $3, $4, $5::int8multirange)", [
    lane.partition,
    lane.group,
    taken.from,
    taken.to,
    taken.acked,
  ]);
