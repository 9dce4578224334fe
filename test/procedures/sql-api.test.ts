/** Push and pop of the SQL interface, called by a role that may do nothing else (P1 to P5, P7, P10). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { leaseId, messageId, parseLeaseId, parsePartitionId, partitionId } from "@queen/protocol";
import type pg from "pg";
import type { Row } from "../support/database.ts";
import { processId, readEverything, waitsForLock } from "../support/procedures.ts";
import { fragmentOf, keysOf } from "../support/segments.ts";
import {
  acksOf,
  call,
  idsOf,
  items,
  PUBLIC_FUNCTIONS,
  pop,
  type SqlSystem,
  startSqlSystem,
} from "../support/sql-api.ts";

let system: SqlSystem;
let owner: pg.Client;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  system = await startSqlSystem();
  owner = system.owner;
  [client, other] = [await system.application.connect(), await system.application.connect()];
});
after(() => system?.stop());

let queues = 0;
const newQueue = (): string => `queue-${++queues}`;

const push = (messages: object, as = client): Promise<Row[]> => call(as, "push_messages_v2", messages);

async function configure(queue: string, options: object): Promise<void> {
  await owner.query("select * from queen.configure_queue($1, null, null, $2, true)", [queue, options]);
}

async function partitionOf(queue: string, name = "Default"): Promise<number> {
  const { rows } = await owner.query(
    "select p.id from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1 and p.name = $2",
    [queue, name],
  );
  return rows[0].id;
}

async function segmentsOf(partition: number): Promise<Row[]> {
  const { rows } = await owner.query(
    "select * from queen.segments where partition_id = $1 order by first_offset",
    [partition],
  );
  return rows;
}

/** Expects a refusal with this SQLSTATE that changes nothing. */
async function refused(sqlstate: string, message: RegExp, run: () => Promise<unknown>): Promise<void> {
  const before = await readEverything(owner);
  await assert.rejects(run(), (error: pg.DatabaseError) => {
    assert.equal(error.code, sqlstate, error.message);
    assert.match(error.message, message);
    return true;
  });
  assert.deepEqual(await readEverything(owner), before);
}

describe("ids", () => {
  test("are the ones that brokers make and read", async () => {
    const numbers = [1, 35, 36, 4096, 123_456_789, 2 ** 40 + 7, 2 ** 47];
    for (const partition of numbers) {
      const { rows } = await owner.query(
        "select queen.partition_uuid($1)::text as id, queen.parse_partition_uuid($2) as partition",
        [partition, partitionId(partition).toUpperCase()],
      );
      assert.deepEqual(rows[0], { id: partitionId(partition), partition });
    }
    for (const partitions of [[7], [7, 8], [1, 36, 37, 5000, 2 ** 40], numbers]) {
      const lease = { token: 0x1_2345_6789_abcd, partitions };
      const { rows } = await owner.query("select queen.lease_id($1, $2) as id", [
        lease.token,
        [...partitions].reverse(),
      ]);
      assert.equal(rows[0].id, leaseId(lease));
      const parsed = await owner.query("select * from queen.parse_lease_id($1)", [rows[0].id]);
      assert.deepEqual(parsed.rows[0], lease);
    }
    for (const text of ["", "x", messageId(1, 2), `${partitionId(1)}.`, partitionId(1)]) {
      const { rows } = await owner.query(
        "select queen.parse_partition_uuid($1) as partition, (queen.parse_lease_id($1)).token as token",
        [text],
      );
      assert.equal(rows[0].partition ?? undefined, parsePartitionId(text));
      assert.equal(rows[0].token ?? undefined, parseLeaseId(text)?.token);
    }
  });

  test("tokens are new numbers that a lease id can hold", async () => {
    const { rows } = await owner.query(
      "select count(distinct t) as count, min(t) as least, max(t) as greatest from (select queen.sql_token() as t from generate_series(1, 1000)) t",
    );
    assert.equal(rows[0].count, 1000);
    assert.ok(rows[0].least >= 0 && rows[0].greatest < 2 ** 52 && rows[0].greatest > 2 ** 51);
  });
});

describe("push", () => {
  test("stores messages and says where they are", async () => {
    const queue = newQueue();
    const answer = await push([
      { queue, transactionId: "a", payload: { n: 1 }, traceId: "0193B0C4-0000-7000-8000-00000000000A" },
      { queue, partition: "second", transactionId: "a", payload: [1], producerSub: "me" },
      { queue, payload: null, producerSub: "", messageId: "ignored" },
      { queue },
    ]);
    const [first, second] = [await partitionOf(queue), await partitionOf(queue, "second")];
    const generated = answer.slice(2).map((row) => row.transaction_id);
    const row = (
      index: number,
      partition: number,
      offset: number,
      transactionId: string,
      trace: string | null,
    ) => ({
      index,
      status: "queued",
      transaction_id: transactionId,
      message_id: messageId(partition, offset),
      partition_id: partitionId(partition),
      trace_id: trace,
      queueName: queue,
    });
    assert.deepEqual(answer, [
      row(0, first, 0, "a", "0193b0c4-0000-7000-8000-00000000000a"),
      row(1, second, 0, "a", null),
      row(2, first, 1, generated[0], null),
      row(3, first, 2, generated[1], null),
    ]);
    assert.notEqual(generated[0], generated[1]);
    const { rows } = await owner.query(
      `select id::text, transaction_id, trace_id::text, payload::text, producer_sub from queen.messages
        where partition_id = any ($1) order by partition_id, message_offset`,
      [[first, second]],
    );
    assert.deepEqual(
      rows.map((each) => [each.id, each.transaction_id, each.trace_id, each.payload, each.producer_sub]),
      [
        [messageId(first, 0), "a", "0193b0c4-0000-7000-8000-00000000000a", '{"n": 1}', null],
        [messageId(first, 1), generated[0], null, "null", null],
        [messageId(first, 2), generated[1], null, "null", null],
        [messageId(second, 0), "a", null, "[1]", "me"],
      ],
    );
  });

  test("takes an array, an object with items, or one item; nothing is also a push", async () => {
    const queue = newQueue();
    assert.equal((await push({ items: items(queue, 0, 2) })).length, 2);
    assert.equal((await push(items(queue, 2, 3)[0]!)).length, 1);
    assert.deepEqual(await push([]), []);
    assert.equal((await call(client, "push_messages_v3", items(queue, 0, 1)))[0].status, "duplicate");
  });

  test("stores bytes as the broker does, whatever the strings contain", async () => {
    const queue = newQueue();
    const everyAsciiByte = Array.from({ length: 127 }, (_, index) => String.fromCharCode(index + 1)).join("");
    const messages = [
      'a "quoted" one',
      "back\\slash",
      "/slash <html> &",
      "ünïcödé",
      "\u2028\u2029\u0080\u009f\ufffe\uffff",
      "😀",
      `,"data":`,
    ].map((transactionId) => ({
      transactionId,
      producerSub: `${transactionId}${everyAsciiByte}`,
      data: '"x"',
    }));
    await push(
      messages.map(({ transactionId, producerSub }) => ({ queue, transactionId, producerSub, payload: "x" })),
    );
    const [segment] = await segmentsOf(await partitionOf(queue));
    const fragments = messages.map(fragmentOf);
    assert.equal(segment!.body.toString("utf8"), fragments.join(""));
    let end = 0;
    const ends = fragments.map((fragment) => {
      end += Buffer.byteLength(fragment);
      return end;
    });
    assert.deepEqual(
      ends.map((_, index) => segment!.ends.readUInt32BE(index * 4)),
      ends,
    );
    const keys = await keysOf(
      owner,
      messages.map((message) => message.transactionId),
    );
    assert.deepEqual(segment!.keys, Buffer.concat(keys));
    assert.deepEqual(
      idsOf(await pop(client, queue)),
      messages.map((message) => message.transactionId),
    );
  });

  test("segments have at most 128 messages and 64 KB", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 300));
    const counts = (await segmentsOf(await partitionOf(queue))).map((segment) => [
      segment.first_offset,
      segment.count,
    ]);
    assert.deepEqual(counts, [
      [0, 128],
      [128, 128],
      [256, 44],
    ]);
    const payload = "x".repeat(20_000);
    await push([1, 2, 3, 4, 5].map((n) => ({ queue, partition: "large", transactionId: `l${n}`, payload })));
    await push([{ queue, partition: "large", transactionId: "huge", payload: "x".repeat(200_000) }]);
    const large = await segmentsOf(await partitionOf(queue, "large"));
    assert.deepEqual(
      large.map((segment) => [segment.first_offset, segment.count]),
      [
        [0, 3],
        [3, 2],
        [5, 1],
      ],
    );
  });

  test("goes on where a broker's append ended, and the other way round", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 3));
    const partition = await partitionOf(queue);
    const { appendParameters } = await import("../support/segments.ts");
    const { rows } = await owner.query(
      "select * from queen.append($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      await appendParameters(owner, [{ partition, known: 3, messages: [{ transactionId: "broker" }] }]),
    );
    assert.deepEqual([rows[0].status, rows[0].at_offset], [0, 3]);
    const answer = await push([
      { queue, transactionId: "broker" },
      { queue, transactionId: "after" },
    ]);
    assert.deepEqual(
      answer.map((row) => [row.status, row.message_id]),
      [
        ["duplicate", messageId(partition, 3)],
        ["queued", messageId(partition, 4)],
      ],
    );
  });

  for (const many of [false, true]) {
    test(`a transactionId is stored once${many ? ", also among many" : ""}`, async () => {
      const queue = newQueue();
      const rest = many ? items(queue, 100, 150) : [];
      await push([...items(queue, 0, 5), ...items(queue, 200, 500)]);
      const partition = await partitionOf(queue);
      const answer = await push([
        { queue, transactionId: "t3", payload: "again" },
        { queue, transactionId: "new" },
        ...rest,
        { queue, transactionId: "new", payload: "again" },
        { queue, transactionId: "t3" },
        { queue, partition: "other", transactionId: "t3" },
      ]);
      const shown = (row: Row) => [row.status, row.message_id, "partition_id" in row];
      assert.deepEqual(answer.slice(0, 2).map(shown), [
        ["duplicate", messageId(partition, 3), false],
        ["queued", messageId(partition, 305), true],
      ]);
      assert.deepEqual(answer.slice(-3).map(shown), [
        ["duplicate", messageId(partition, 305), false],
        ["duplicate", messageId(partition, 3), false],
        ["queued", messageId(await partitionOf(queue, "other"), 0), true],
      ]);
      const { rows } = await owner.query("select next_offset from queen.partitions where id = $1", [
        partition,
      ]);
      assert.equal(rows[0].next_offset, 306 + rest.length);
    });
  }

  test("a key that matches another transactionId is no duplicate", async () => {
    const queue = newQueue();
    await push([{ queue, transactionId: "one" }]);
    const partition = await partitionOf(queue);
    const [key] = await keysOf(owner, ["two"]);
    await owner.query("update queen.segments set keys = $2 where partition_id = $1", [partition, key]);
    assert.equal((await push([{ queue, transactionId: "two" }]))[0]!.status, "queued");
  });

  test("the dedup window ends by age and count, as the queue says", async () => {
    const queue = newQueue();
    await configure(queue, { dedup_window_seconds: 60, dedup_messages_min: 2, dedup_messages_max: 4 });
    for (let n = 0; n < 6; n++) await push(items(queue, n, n + 1));
    assert.equal((await push(items(queue, 1, 2)))[0]!.status, "queued", "six messages, the last four count");
    assert.equal((await push(items(queue, 4, 5)))[0]!.status, "duplicate");
    const partition = await partitionOf(queue);
    await owner.query(
      "update queen.segments set created_at = created_at - interval '2 minutes' where partition_id = $1",
      [partition],
    );
    await owner.query("update queen.partitions set last_at = last_at - interval '2 minutes' where id = $1", [
      partition,
    ]);
    assert.equal((await push(items(queue, 5, 6)))[0]!.status, "duplicate", "old, but one of the last two");
    assert.equal((await push(items(queue, 4, 5)))[0]!.status, "queued", "too old");
  });

  test("of two transactions with one transactionId, the second waits and reports what the first stored", async () => {
    for (const end of ["commit", "rollback"] as const) {
      const queue = newQueue();
      await push(items(queue, 0, 1));
      await client.query("begin");
      const [first] = await push([{ queue, transactionId: "race" }]);
      const racing = push([{ queue, transactionId: "race" }], other);
      await waitsForLock(system.database, await processIdWhileBusy(other));
      await client.query(end);
      const [second] = await racing;
      assert.equal(second!.status, end === "commit" ? "duplicate" : "queued");
      assert.equal(second!.message_id, first!.message_id, "no gap, and the same place");
    }
  });

  test("two that make the same new lane at once both get it", async () => {
    const queue = newQueue();
    await client.query("begin");
    await push(items(queue, 0, 1));
    const racing = push(items(queue, 1, 2), other);
    await waitsForLock(system.database, await processIdWhileBusy(other));
    await client.query("commit");
    assert.equal((await racing)[0]!.message_id, messageId(await partitionOf(queue), 1));
  });

  test("lanes are locked by id, whatever the order of the items, so that nobody waits in a circle", async () => {
    const queue = newQueue();
    await push([...items(queue, 0, 1, "a"), ...items(queue, 0, 1, "b")]);
    const rounds = Array.from({ length: 40 }, (_, round) => round);
    const storm = async (as: pg.Client, order: readonly string[], tag: string) => {
      for (const round of rounds) {
        await push(
          order.map((partition) => ({ queue, partition, transactionId: `${tag}${round}` })),
          as,
        );
      }
    };
    await Promise.all([storm(client, ["a", "b"], "x"), storm(other, ["b", "a"], "y")]);
    const { rows } = await owner.query(
      "select p.next_offset from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = $1",
      [queue],
    );
    assert.deepEqual(
      rows.map((row) => row.next_offset),
      [81, 81],
    );
  });

  test("a transaction with an older snapshot cannot append what it has not seen", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await client.query("begin isolation level repeatable read");
    await client.query("select queen.has_pending_messages($1)", [queue]);
    await push(items(queue, 1, 2), other);
    await assert.rejects(push(items(queue, 2, 3)), { code: "40001" });
    await client.query("rollback");
    assert.deepEqual(idsOf(await pop(client, queue)), ["t0", "t1"]);
  });

  test("payloads keep their value, and with payloadText their bytes", async () => {
    const queue = newQueue();
    const exact = '{"z":1,"a":1e400,"a":12345678901234567890.10, "s":"\\u0000 \\ud800 \\/"}';
    await push([
      { queue, transactionId: "exact", payloadText: `\n ${exact}\t` },
      { queue, transactionId: "both", payloadText: "[1,  2]", payload: "not this" },
      { queue, transactionId: "data", data: { x: 1 } },
      { queue, transactionId: "null", payloadText: null, payload: { y: 2 } },
    ]);
    const [segment] = await segmentsOf(await partitionOf(queue));
    assert.ok(segment!.body.toString("utf8").includes(`"data":${exact}"transactionId"`));
    const { messages } = await pop(client, queue, { data_text: true });
    assert.deepEqual(
      messages.map((message) => [message.data, message.dataText]),
      [
        [null, exact],
        [[1, 2], "[1,  2]"],
        [{ x: 1 }, '{"x": 1}'],
        [{ y: 2 }, '{"y": 2}'],
      ],
    );
  });

  test("a traceparent is kept and given back; what is none is ignored", async () => {
    const queue = newQueue();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const bad = [
      "x",
      5,
      null,
      `${traceparent}-00`,
      traceparent.toUpperCase(),
      `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
    ];
    await push([
      { queue, transactionId: "t0", traceparent, payload: 1 },
      ...bad.map((value, index) => ({ queue, transactionId: `bad${index}`, traceparent: value, payload: 1 })),
      { queue, transactionId: "beyond", traceparent, payloadText: "1e400000" },
    ]);
    const { messages } = await pop(client, queue, { batch_size: 10, data_text: true });
    assert.deepEqual(
      messages.map((message) => message.traceparent),
      [traceparent, ...bad.map(() => undefined), traceparent],
    );
    assert.equal(messages[0]!.dataText, "1");
    const { rows } = await owner.query(
      "select payload::text as payload from queen.messages where partition_id = $1 order by message_offset",
      [await partitionOf(queue)],
    );
    assert.deepEqual([rows[0].payload, rows.at(-1)!.payload], ["1", "1e400000"]);
  });

  test("a payload that jsonb cannot hold does not keep others from being popped", async () => {
    const queue = newQueue();
    await push([
      { queue, transactionId: "good", payload: 1 },
      { queue, transactionId: "bad", payloadText: '"\\u0000"' },
      { queue, transactionId: "number", payloadText: "1e400000" },
    ]);
    const { messages } = await pop(client, queue);
    assert.deepEqual(
      messages.map((message) => [message.transactionId, message.data, message.dataText]),
      [
        ["good", 1, undefined],
        ["bad", null, '"\\u0000"'],
        ["number", null, "1e400000"],
      ],
    );
  });

  test("what is wrong is named, and nothing is stored", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    const good = { queue, transactionId: "good" };
    const cases: [unknown, RegExp][] = [
      ["text", /^items array is required$/],
      [{ items: 1 }, /^items array is required$/],
      [Array.from({ length: 10_001 }, () => 1), /^items must be at most 10000$/],
      [[good, 1], /^items\[1\]: Item must be an object$/],
      [[good, {}], /^items\[1\]\.queue: Queue must be a string$/],
      [[{ queue: 1 }], /^items\[0\]\.queue: Queue must be a string$/],
      [[{ queue: "x".repeat(256) }], /^items\[0\]\.queue: Queue must have at most 255 characters$/],
      [[{ queue: "a\nb" }], /^items\[0\]\.queue: Queue must not contain control characters$/],
      [[{ queue: "a\u007f" }], /^items\[0\]\.queue: Queue must not contain control characters$/],
      [[{ queue, partition: null }], /^items\[0\]\.partition: Partition must be a string$/],
      [[{ queue, partition: "" }], /^items\[0\]\.partition: Partition must not be empty$/],
      [[{ queue, transactionId: 5 }], /^items\[0\]\.transactionId: TransactionId must be a string$/],
      [
        [{ queue, transactionId: "😀".repeat(256) }],
        /^items\[0\]\.transactionId: .* at most 255 characters$/,
      ],
      [[{ queue, traceId: 5 }], /^items\[0\]\.traceId: TraceId must be a string$/],
      [[{ queue, traceId: "no" }], /^items\[0\]\.traceId: TraceId must be a UUID$/],
      [[{ queue, producerSub: {} }], /^items\[0\]\.producerSub: ProducerSub must be a string$/],
      [[good, { queue, payloadText: 5 }], /^items\[1\]\.payloadText: PayloadText must be a string$/],
      [[good, { queue, payloadText: "{" }], /^items\[1\]\.payloadText: PayloadText must be JSON: /],
      [[good, { queue, payloadText: "1 2" }], /^items\[1\]\.payloadText: PayloadText must be JSON: /],
    ];
    for (const [request, message] of cases)
      await refused("QN400", message, () => call(client, "push_messages_v2", request));
    assert.equal((await push([{ queue: "" }]))[0]!.status, "queued", "the empty queue name is a name");
    assert.equal((await push([{ queue, transactionId: "😀".repeat(255) }]))[0]!.status, "queued");
    assert.equal((await push([{ queue, transactionId: "", traceId: "" }]))[0]!.trace_id, null);
  });

  test("messages of an encrypted queue are not stored in the clear", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await owner.query("update queen.queues set encryption_enabled = true where name = $1", [queue]);
    await refused("QN400", /encrypted, push them through a broker/, () => push(items(queue, 1, 2)));
  });

  test("a queue deleted in between is made anew", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await owner.query("begin");
    await owner.query("delete from queen.queues where name = $1", [queue]);
    const pushing = push(items(queue, 1, 2));
    await waitsForLock(system.database, await processIdWhileBusy(client));
    await owner.query("commit");
    assert.equal((await pushing)[0]!.status, "queued");
    assert.deepEqual(idsOf(await pop(client, queue)), ["t1"]);
  });
});

describe("pop", () => {
  test("leases the messages of a partition, in order, and shows them as HTTP does", async () => {
    const queue = newQueue();
    await push([
      ...items(queue, 0, 3),
      { queue, transactionId: "last", producerSub: "me", payload: { deep: [1] } },
    ]);
    const partition = await partitionOf(queue);
    const popped = await pop(client, queue, {
      partition_name: "Default",
      consumer_group: "g",
      batch_size: 4,
    });
    const { messages, leaseId: lease, ...envelope } = popped;
    assert.deepEqual(envelope, {
      success: true,
      queue,
      partition: "Default",
      partitionId: partitionId(partition),
      consumerGroup: "g",
      partitionsClaimed: 1,
    });
    assert.deepEqual(parseLeaseId(lease)?.partitions, [partition]);
    assert.deepEqual(idsOf(popped), ["t0", "t1", "t2", "last"]);
    const { createdAt, ...last } = messages[3]!;
    assert.deepEqual(last, {
      id: messageId(partition, 3),
      transactionId: "last",
      traceId: null,
      data: { deep: [1] },
      producerSub: "me",
      partitionId: partitionId(partition),
      partition: "Default",
      leaseId: lease,
      consumerGroup: "g",
    });
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.ok(
      Math.abs(Date.parse(createdAt) - Date.now()) < 60_000,
      "in UTC, whatever the session's time zone",
    );
    const again = await pop(client, queue, { partition_name: "Default", consumer_group: "g" });
    assert.deepEqual(again, { success: false, error: "lease_held", messages: [] });
    assert.equal(
      (await pop(client, queue, { consumer_group: "h" })).messages.length,
      4,
      "each group reads everything",
    );
  });

  test("times are UTC in any time zone", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await client.query("set timezone = 'Asia/Kathmandu'");
    const { messages } = await pop(client, queue);
    assert.ok(Math.abs(Date.parse(messages[0]!.createdAt) - Date.now()) < 60_000);
    await client.query("reset timezone");
  });

  test("pop_specific_batch answers by idx, and one lane is leased once", async () => {
    const queue = newQueue();
    await push([...items(queue, 0, 2, "a"), ...items(queue, 2, 4, "b")]);
    const ask = (idx: number, partition: string) => ({
      idx,
      queue_name: queue,
      partition_name: partition,
      consumer_group: "__QUEUE_MODE__",
      lease_seconds: 60,
      worker_id: "worker",
      batch_size: 10,
      sub_mode: "all",
      sub_from: "",
    });
    const answer = await call(client, "pop_specific_batch", [
      ask(7, "b"),
      ask(8, "a"),
      ask(9, "b"),
      ask(10, "none"),
    ]);
    assert.deepEqual(
      answer.map(({ idx, result }: Row) => [idx, result.success, result.error, idsOf(result as never)]),
      [
        [7, true, undefined, ["t2", "t3"]],
        [8, true, undefined, ["t0", "t1"]],
        [9, false, "lease_held", []],
        [10, false, "partition_not_found", []],
      ],
    );
    await refused("QN400", /^requests\[0\]\.partition_name/, () =>
      call(client, "pop_specific_batch", [{ queue_name: queue }]),
    );
  });

  test("any partition: each is served once, the one served longest ago first", async () => {
    const queue = newQueue();
    const lanes = ["a", "b", "c", "d"];
    await push(lanes.flatMap((lane) => items(queue, 0, 3, lane)));
    const round = async () => {
      const served: string[] = [];
      for (const _ of lanes) {
        const popped = await pop(client, queue, { batch_size: 1 });
        served.push(popped.partition);
        await call(client, "ack_messages_v2", acksOf(popped));
      }
      return served;
    };
    const first = await round();
    assert.deepEqual([...first].sort(), lanes);
    assert.deepEqual(await round(), first);
    assert.deepEqual(await round(), first);
    assert.deepEqual(await pop(client, queue), {
      success: false,
      error: "no_available_partition",
      messages: [],
    });
  });

  test("any partition: several at once under one lease, within one batch", async () => {
    const queue = newQueue();
    await push(["a", "b", "c"].flatMap((lane) => items(queue, 0, 2, lane)));
    const popped = await pop(client, queue, { partitions: 3, batch_size: 5 });
    assert.equal(popped.partitionsClaimed, 3);
    assert.equal(popped.messages.length, 5);
    assert.equal(new Set(popped.messages.map((message) => message.leaseId)).size, 1);
    assert.equal(parseLeaseId(popped.leaseId)!.partitions.length, 3);
    const two = newQueue();
    await push(["a", "b", "c"].flatMap((lane) => items(two, 0, 2, lane)));
    assert.equal((await pop(client, two, { partitions: 2 })).partitionsClaimed, 2);
  });

  test("any partition: finds the one lane with work among thousands", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1, "needle"));
    const { rows } = await owner.query("select id from queen.queues where name = $1", [queue]);
    await owner.query(
      "insert into queen.partitions (queue_id, name) select $1, 'lane ' || n from generate_series(1, 3500) n",
      [rows[0].id],
    );
    for (const group of ["one", "two", "three", "four", "five"]) {
      assert.deepEqual(idsOf(await pop(client, queue, { consumer_group: group })), ["t0"]);
    }
    assert.equal((await pop(client, queue, { consumer_group: "one" })).complete, undefined);
  });

  test("any partition: never waits, neither for a cursor nor for one that is being made", async () => {
    const queue = newQueue();
    await push([...items(queue, 0, 1, "a"), ...items(queue, 0, 1, "b")]);
    await pop(client, queue, { consumer_group: "known", auto_ack: true, partitions: 2 });
    await push([...items(queue, 1, 2, "a"), ...items(queue, 1, 2, "b")]);
    await owner.query("select 1 from queen.open_group($1, 'fresh', 'all', null)", [queue]);
    await other.query("set lock_timeout = '200ms'");
    try {
      for (const group of ["known", "fresh"]) {
        await client.query("begin");
        const held = await pop(client, queue, { consumer_group: group, batch_size: 1 });
        const free = await pop(other, queue, { consumer_group: group, batch_size: 1 });
        assert.notEqual(free.partition, held.partition);
        assert.equal((await pop(other, queue, { consumer_group: group })).error, "no_available_partition");
        await client.query("rollback");
        assert.equal((await pop(other, queue, { consumer_group: group })).partition, held.partition);
      }
    } finally {
      await client.query("rollback");
      await other.query("reset lock_timeout");
    }
  });

  test("a lane that is not due hides no other", async () => {
    const queue = newQueue();
    await configure(queue, { delayed_processing: 3600 });
    await push([...items(queue, 0, 1, "old"), ...items(queue, 0, 1, "new")]);
    await owner.query(
      "update queen.segments set created_at = created_at - interval '2 hours' where partition_id = $1",
      [await partitionOf(queue, "old")],
    );
    for (const group of ["a", "b", "c", "d"]) {
      assert.equal((await pop(client, queue, { consumer_group: group })).partition, "old");
      assert.equal((await pop(client, queue, { consumer_group: group })).error, "no_available_partition");
    }
    assert.equal((await pop(client, queue, { partition_name: "new", consumer_group: "e" })).error, "delayed");
    const window = newQueue();
    await configure(window, { window_buffer: 3600 });
    await push(items(window, 0, 1));
    assert.equal((await pop(client, window, { partition_name: "Default" })).error, "window_buffer");
    assert.equal((await pop(client, window)).error, "no_available_partition");
  });

  test("a group that starts now gets what comes later, also where nothing exists yet", async () => {
    const queue = newQueue();
    assert.equal((await pop(client, queue, { consumer_group: "early", sub_mode: "new" })).success, false);
    await push([...items(queue, 0, 2, "a"), ...items(queue, 0, 2, "b")]);
    assert.equal(
      (await pop(client, queue, { consumer_group: "late", sub_from: "now", partitions: 9 })).success,
      false,
    );
    await push(items(queue, 2, 3, "a"));
    assert.deepEqual(idsOf(await pop(client, queue, { consumer_group: "late", partitions: 9 })), ["t2"]);
    assert.equal((await pop(client, queue, { consumer_group: "early", partitions: 9 })).messages.length, 5);
    const from = await pop(client, queue, {
      consumer_group: "past",
      partitions: 9,
      sub_from: "2020-01-01 00:00",
    });
    assert.equal(from.messages.length, 5);
    await refused("QN400", /sub_from: must be "now" or a time/, () =>
      pop(client, queue, { sub_from: "soon" }),
    );
  });

  test("auto_ack finishes what the caller's transaction commits", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 3));
    for (const end of ["rollback", "commit"]) {
      await client.query("begin");
      const popped = await pop(client, queue, { auto_ack: true, batch_size: 2 });
      assert.deepEqual([popped.leaseId, idsOf(popped)], ["", ["t0", "t1"]]);
      await client.query(end);
    }
    assert.deepEqual(idsOf(await pop(client, queue)), ["t2"]);
  });

  test("a pop that is rolled back leases nothing", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await client.query("begin");
    await pop(client, queue);
    await client.query("rollback");
    assert.deepEqual(idsOf(await pop(other, queue)), ["t0"]);
  });

  test("push, pop and ack of one message in one transaction", async () => {
    const queue = newQueue();
    await client.query("begin");
    await push(items(queue, 0, 2));
    const popped = await pop(client, queue);
    assert.equal((await call(client, "ack_messages_v2", acksOf(popped), true)).length, 2);
    await client.query("commit");
    assert.equal((await pop(client, queue)).success, false);
  });

  test("a named partition that another transaction holds is waited for", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    await client.query("begin");
    await pop(client, queue);
    const waiting = pop(other, queue, { partition_name: "Default" });
    await waitsForLock(system.database, await processIdWhileBusy(other));
    await client.query("commit");
    assert.equal((await waiting).error, "lease_held");
  });

  test("leases that run out are attempts, then the message is buried and the next one delivered", async () => {
    const queue = newQueue();
    await configure(queue, { retry_limit: 1 });
    await push(items(queue, 0, 2));
    const partition = await partitionOf(queue);
    const seen: string[][] = [];
    for (let n = 0; n < 4; n++) {
      const popped = await pop(client, queue, n % 2 === 0 ? {} : { partition_name: "Default" });
      seen.push(idsOf(popped));
      await owner.query(
        "update queen.partition_consumers set lease_expires_at = 'epoch' where partition_id = $1",
        [partition],
      );
    }
    assert.deepEqual(seen, [["t0", "t1"], ["t0", "t1"], ["t0"], ["t1"]]);
    const { rows } = await owner.query(
      "select transaction_id, error_message from queen.dead_letters where partition_id = $1",
      [partition],
    );
    assert.deepEqual(rows, [{ transaction_id: "t0", error_message: "lease expired" }]);
  });

  test("what is wrong is named", async () => {
    const queue = newQueue();
    const cases: [object, RegExp][] = [
      [{ queue_name: 1 }, /^requests\[0\]\.queue_name: /],
      [{ queue_name: queue, consumer_group: "a\tb" }, /^requests\[0\]\.consumer_group: /],
      [{ queue_name: queue, partition_name: 4 }, /^requests\[0\]\.partition_name: /],
      [{ queue_name: queue, batch_size: "many" }, /^requests\[0\]\.batch_size: must be a whole number$/],
      [{ queue_name: queue, lease_seconds: 1.5 }, /^requests\[0\]\.lease_seconds: must be a whole number$/],
      [{ queue_name: queue, auto_ack: "yes" }, /^requests\[0\]\.auto_ack: must be true or false$/],
    ];
    for (const [request, message] of cases)
      await refused("QN400", message, () => call(client, "pop_messages_v2", request));
    assert.equal((await pop(client, queue)).error, "no_available_partition", "no such queue");
    assert.equal((await pop(client, queue, { partition_name: "x" })).error, "partition_not_found");
    assert.deepEqual(await call(client, "pop_messages_batch_v2", []), []);
  });

  test("a batch of pops of any partition gets different ones", async () => {
    const queue = newQueue();
    await push(["a", "b"].flatMap((lane) => items(queue, 0, 1, lane)));
    const answer = await call(client, "pop_messages_batch_v2", [
      { queue_name: queue },
      { queue_name: queue, idx: "mine" },
      { queue_name: queue },
    ]);
    assert.deepEqual(
      answer.map((each: Row) => [each.idx, each.result.success]),
      [
        [0, true],
        ["mine", true],
        [2, false],
      ],
    );
    assert.notEqual(answer[0].result.partition, answer[1].result.partition);
  });
});

describe("a pop in steps", () => {
  test("resolve, lease, fetch, release", async () => {
    const queue = newQueue();
    await push(["a", "b"].flatMap((lane) => items(queue, 0, 3, lane)));
    const ask = { queue_name: queue, consumer_group: "g" };
    const resolved = await call(client, "pop_sm_resolve", [ask, { ...ask, idx: 5 }, ask]);
    assert.deepEqual(
      resolved.map((each: Row) => [each.idx, each.result.success]),
      [
        [0, true],
        [5, true],
        [2, false],
      ],
    );
    const names = resolved.slice(0, 2).map((each: Row) => each.result.partition);
    assert.deepEqual([...names].sort(), ["a", "b"]);

    const [leased] = await call(client, "pop_sm_lease", [
      { ...ask, partition_name: names[0], batch_size: 2 },
    ]);
    const { leaseId: lease, expiresAt, messages } = leased.result;
    assert.equal(messages, undefined);
    assert.ok(Date.parse(expiresAt) > Date.now());
    const fetch = async () =>
      (await call(client, "pop_sm_fetch", [{ leaseId: lease, data_text: true }]))[0].result;
    const fetched = await fetch();
    assert.deepEqual(idsOf(fetched), ["t0", "t1"]);
    assert.deepEqual([fetched.messages[0].dataText, fetched.messages[0].consumerGroup], ["0", "g"]);
    await call(client, "ack_messages_v2", acksOf(fetched).slice(0, 1));
    assert.deepEqual(idsOf(await fetch()), ["t1"], "what is finished is not fetched again");

    const release = () =>
      call(client, "pop_sm_release", [{ idx: "r", leaseId: lease }, { leaseId: "nonsense" }]);
    assert.deepEqual(await release(), [
      { idx: "r", result: { success: true, error: null } },
      { idx: 1, result: { success: false, error: "Lease not found" } },
    ]);
    assert.equal((await release())[0].result.success, false);
    assert.deepEqual(await fetch(), { success: false, error: "Invalid or expired lease", messages: [] });
    const again = await pop(client, queue, { consumer_group: "g", partition_name: names[0] });
    assert.deepEqual(idsOf(again), ["t1", "t2"]);
    const { rows } = await owner.query(
      "select count(*) from queen.partition_consumers where failures is not null",
    );
    assert.equal(rows[0].count, 0, "nothing was counted as a failure");
  });

  test("a lease over several partitions is fetched and released as one", async () => {
    const queue = newQueue();
    await push(["a", "b"].flatMap((lane) => items(queue, 0, 1, lane)));
    const popped = await pop(client, queue, { partitions: 2 });
    const [fetched] = await call(client, "pop_sm_fetch", [{ leaseId: popped.leaseId }]);
    assert.deepEqual(
      new Set(fetched.result.messages.map((message: Row) => message.id)),
      new Set(popped.messages.map((message) => message.id)),
    );
    await call(client, "pop_sm_release", { leaseId: popped.leaseId });
    assert.equal((await pop(client, queue, { partitions: 2 })).partitionsClaimed, 2);
  });
});

test("has_pending_messages says whether a pop would find something", async () => {
  const queue = newQueue();
  const pending = async (partition: string | null = null, group = "g") =>
    (
      await client.query("select queen.has_pending_messages($1, $2, $3) as pending", [
        queue,
        partition,
        group,
      ])
    ).rows[0].pending;
  assert.equal(await pending(), false, "no such queue");
  await push(items(queue, 0, 2, "a"));
  assert.equal(await pending(), true);
  assert.equal(await pending("a"), true);
  assert.equal(await pending("b"), false);
  const popped = await pop(client, queue, { consumer_group: "g", batch_size: 1 });
  assert.equal(await pending(), false, "leased");
  assert.equal(await pending("", "h"), true, "not for the other group");
  await call(client, "ack_messages_v2", acksOf(popped));
  assert.equal(await pending(), true, "the second message");
  await pop(client, queue, { consumer_group: "g", auto_ack: true });
  assert.equal(await pending(), false);
  await pop(client, queue, { consumer_group: "late", sub_mode: "new" });
  assert.equal(await pending(null, "late"), false);
  await push(items(queue, 2, 3, "a"));
  assert.equal(await pending(null, "late"), true);
  const { rows } = await client.query("select queen.has_pending_messages($1) as pending", [queue]);
  assert.equal(rows[0].pending, true, "queue mode");
});

describe("rights", () => {
  test("a role with EXECUTE can call the interface and nothing else", async () => {
    const { role } = system.application;
    const { rows } = await owner.query(
      `select p.oid::regprocedure::text as name, p.prosecdef as definer, has_function_privilege($1, p.oid, 'execute') as allowed,
              coalesce(p.proconfig @> array['search_path=queen, pg_temp'], false) as pinned
         from pg_proc p where p.pronamespace = 'queen'::regnamespace`,
      [role],
    );
    const definers = rows.filter((row) => row.definer);
    assert.deepEqual(
      definers.map((row) => row.name).sort(),
      PUBLIC_FUNCTIONS.map((name) => `queen.${name.replaceAll(", ", ",")}`).sort(),
      "only the interface acts with its owner's rights",
    );
    assert.ok(definers.every((row) => row.pinned && row.allowed));
    for (const { name } of rows.filter((row) => /\.sql_/.test(row.name))) {
      assert.equal(rows.find((row) => row.name === name)!.allowed, false, name);
    }
    for (const text of [
      "select * from queen.messages",
      "select * from queen.queues",
      "select * from queen.segments",
      "delete from queen.queues",
      "insert into queen.hints (queue_ids) values ('{1}')",
      "select queen.sql_push('[]', null, 'null')",
      "select * from queen.open_lanes(array['x'], array['y'], true)",
      "select * from queen.settle('{1}', '{1}', '{1}', '{0}', '{1}', '{null}', '{false}')",
      "select queen.trim_hints()",
    ]) {
      await assert.rejects(client.query(text), { code: "42501" }, text);
    }
  });

  test("nobody has been given anything", async () => {
    const { rows } = await owner.query(
      `select p.proname from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = 'queen'::regnamespace and a.grantee = 0 and p.prosecdef`,
    );
    assert.deepEqual(rows, []);
    const stranger = `${system.application.role}_stranger`;
    await owner.query(`create role ${stranger}`);
    try {
      await other.query("reset role");
      await other.query(`set role ${stranger}`);
      await assert.rejects(other.query("select queen.push_messages_v2('[]')"), { code: "42501" });
      await owner.query(`grant usage on schema queen to ${stranger}`);
      await assert.rejects(other.query("select queen.push_messages_v2('[]')"), { code: "42501" });
    } finally {
      await other.query("reset role");
      await other.query(`set role ${system.application.role}`);
      await owner.query(`drop owned by ${stranger}`);
      await owner.query(`drop role ${stranger}`);
    }
  });

  test("objects of the caller's own cannot take the place of what the interface uses", async () => {
    const queue = newQueue();
    const { role } = system.application;
    await owner.query(`create schema trap; grant all on schema trap to ${role}`);
    await client.query("create temporary table segments (x int); create temporary table partitions (x int)");
    await client.query(
      "create function trap.int8send(int8) returns bytea language sql as $$ select 'trapped'::bytea $$; set search_path = trap, pg_temp, queen",
    );
    await push(items(queue, 0, 1));
    await client.query("reset search_path");
    assert.deepEqual((await segmentsOf(await partitionOf(queue)))[0]!.keys, (await keysOf(owner, ["t0"]))[0]);
    await client.query("drop table pg_temp.segments, pg_temp.partitions");
    await owner.query("drop schema trap cascade");
  });
});

describe("wake-ups", () => {
  async function listen(run: (heard: Row[]) => Promise<void>): Promise<void> {
    const heard: Row[] = [];
    const onNotification = (message: pg.Notification) => heard.push(JSON.parse(message.payload ?? "null"));
    owner.on("notification", onNotification);
    await owner.query("listen queen");
    try {
      await run(heard);
    } finally {
      await owner.query("unlisten queen");
      owner.off("notification", onNotification);
    }
  }
  const settled = async () => {
    await owner.query("select 1");
    await sleep(20);
    await owner.query("select 1");
  };

  test("a push, an ack and a release tell brokers at the commit, and a rollback tells nothing", async () => {
    const queue = newQueue();
    await push(items(queue, 0, 1));
    const partition = await partitionOf(queue);
    const { rows } = await owner.query("select queue_id from queen.partitions where id = $1", [partition]);
    const queueId = rows[0].queue_id;
    const hints = async () => {
      const { rows } = await owner.query(
        "select partition_ids from queen.hints where partition_ids = array[$1::int8]",
        [partition],
      );
      return rows.length;
    };
    await listen(async (heard) => {
      const step = async (work: () => Promise<unknown>, expected: Row) => {
        for (const end of ["rollback", "commit"]) {
          const [before, hinted] = [heard.length, await hints()];
          await client.query("begin");
          await work();
          await settled();
          assert.equal(heard.length, before, "nothing before the end");
          assert.equal(await hints(), hinted);
          await client.query(end);
          await settled();
          assert.equal(heard.length, before + (end === "commit" ? 1 : 0), end);
          assert.equal(await hints(), hinted + (end === "commit" ? 1 : 0), end);
        }
        assert.deepEqual(heard[heard.length - 1], expected);
      };
      await step(() => push(items(queue, 1, 2)), { lanes: [[partition, queueId, 2]], released: [] });
      const popped = await pop(client, queue, { batch_size: 1 });
      await step(() => call(client, "ack_messages_v2", acksOf(popped)), { lanes: [], released: [partition] });
      const second = await pop(client, queue, { batch_size: 1 });
      await step(() => call(client, "pop_sm_release", { leaseId: second.leaseId }), {
        lanes: [],
        released: [partition],
      });
    });
  });

  test("with many lanes, or where the setting says so, only the hint is written", async () => {
    const queue = newQueue();
    const lanes = Array.from({ length: 17 }, (_, index) => `lane ${index}`);
    await push(lanes.flatMap((lane) => items(queue, 0, 1, lane)));
    await listen(async (heard) => {
      await push(lanes.flatMap((lane) => items(queue, 1, 2, lane)));
      await client.query("set queen.notify = off");
      await push(items(queue, 2, 3, "lane 0"));
      await client.query("reset queen.notify");
      await settled();
      assert.deepEqual(heard, []);
      await push(items(queue, 3, 4, "lane 0"));
      await settled();
      assert.equal(heard.length, 1);
    });
    const { rows } = await owner.query(
      "select cardinality(partition_ids) as lanes from queen.hints order by at desc limit 3",
    );
    assert.deepEqual(
      rows.map((row) => row.lanes),
      [1, 1, 17],
    );
  });
});

/** A connection's process id, asked elsewhere because the connection itself is waiting. */
async function processIdWhileBusy(busy: pg.Client): Promise<number> {
  return (busy as unknown as { processID: number }).processID;
}

test("the connections are free", async () => {
  assert.ok((await processId(client)) !== (await processId(other)));
});
