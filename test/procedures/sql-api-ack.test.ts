/** Acks, leases and transactions of the SQL interface (P4, P5, P6, P8), called by a role that may do nothing else. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { messageId, parsePartitionId, partitionId } from "@queen/protocol";
import type pg from "pg";
import type { Row } from "../support/database.ts";
import { readEverything, waitsForLock } from "../support/procedures.ts";
import {
  acksOf,
  call,
  idsOf,
  items,
  type Popped,
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

const ack = (acks: unknown, strict = false, as = client): Promise<Row[]> =>
  call(as, "ack_messages_v2", acks, strict);
const transact = (
  operations: readonly object[],
  requiredLeases?: readonly string[],
  as = client,
): Promise<Row> =>
  call(as, "execute_transaction_v2", { operations, ...(requiredLeases ? { requiredLeases } : {}) });
const outcomes = (results: readonly Row[]) =>
  results.map((row) => [row.success, row.error, row.leaseReleased, row.dlq]);

/** A queue with messages t0, t1, … of which the first `batch` are leased. */
async function leased(
  messages: number,
  batch = messages,
  options: object = {},
): Promise<{ queue: string; popped: Popped }> {
  const queue = newQueue();
  await owner.query("select * from queen.configure_queue($1, null, null, $2, true)", [
    queue,
    { retry_delay: 0, ...options },
  ]);
  await call(client, "push_messages_v2", items(queue, 0, messages));
  return { queue, popped: await pop(client, queue, { batch_size: batch, consumer_group: "g" }) };
}

const popAgain = (queue: string, more: object = {}) => pop(client, queue, { consumer_group: "g", ...more });

async function cursorOf(popped: Popped): Promise<Row> {
  const { rows } = await owner.query(
    `select committed, acked::text, lease_token is not null as leased from queen.partition_consumers c
       join queen.consumer_groups g on g.id = c.group_id where partition_id = $1 and g.name = $2`,
    [parsePartitionId(popped.partitionId), popped.consumerGroup],
  );
  return rows[0];
}

async function expire(popped: Popped): Promise<void> {
  await owner.query(
    "update queen.partition_consumers set lease_expires_at = 'epoch' where partition_id = $1 and lease_token is not null",
    [parsePartitionId(popped.partitionId)],
  );
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

describe("ack", () => {
  test("finishes just what was acked, and ends the lease when everything is", async () => {
    const { queue, popped } = await leased(3);
    const acks = acksOf(popped);
    assert.deepEqual(await ack([acks[2]]), [
      {
        index: 0,
        transactionId: "t2",
        success: true,
        error: null,
        queueName: queue,
        partitionName: "Default",
        leaseReleased: false,
        dlq: false,
      },
    ]);
    assert.deepEqual(await cursorOf(popped), { committed: 0, acked: "{[2,3)}", leased: true });
    assert.deepEqual(outcomes(await ack(acks.slice(0, 2))), [
      [true, null, true, false],
      [true, null, true, false],
    ]);
    assert.deepEqual(await cursorOf(popped), { committed: 3, acked: null, leased: false });
    assert.deepEqual(
      outcomes(await ack(acks)),
      acks.map(() => [true, null, false, false]),
      "twice is success",
    );
  });

  test("takes one ack, an array, or a batch with one group for all", async () => {
    const { popped } = await leased(3);
    const [first, second, third] = acksOf(popped);
    assert.equal((await ack(first))[0]!.success, true);
    assert.equal((await ack([second]))[0]!.success, true);
    const batch = { consumerGroup: "g", acknowledgments: [{ ...third, consumerGroup: "another" }] };
    assert.equal((await ack(batch))[0]!.success, true);
    assert.deepEqual(await ack([]), []);
  });

  test("without a lease counts for whoever holds the message", async () => {
    const { popped } = await leased(1);
    const [{ leaseId: _, ...without }] = acksOf(popped) as [Row];
    assert.deepEqual(outcomes(await ack([without])), [[true, null, true, false]]);
  });

  test("with a lease that was replaced changes nothing", async () => {
    const { queue, popped } = await leased(2);
    await expire(popped);
    const next = await popAgain(queue);
    assert.deepEqual(idsOf(next), ["t0", "t1"]);
    const before = await cursorOf(popped);
    const results = await ack([
      ...acksOf(popped, { status: "completed" }),
      ...acksOf(popped, { status: "failed" }),
    ]);
    assert.deepEqual(
      outcomes(results),
      results.map(() => [false, "Invalid or expired lease", false, false]),
    );
    assert.deepEqual(await cursorOf(popped), before);
    assert.equal((await ack(acksOf(next)))[1]!.leaseReleased, true);
  });

  test("with a lease that ran out and was not replaced counts", async () => {
    const { popped } = await leased(1);
    await expire(popped);
    assert.equal((await ack(acksOf(popped)))[0]!.success, true);
  });

  test("of old and new leases in one call, each is judged by itself", async () => {
    const { queue, popped } = await leased(1);
    await expire(popped);
    const next = await popAgain(queue);
    const results = await ack([...acksOf(popped), ...acksOf(next), ...acksOf(popped)]);
    assert.deepEqual(
      results.map((row) => row.success),
      [false, true, false],
    );
  });

  test("of what is not there", async () => {
    const { queue, popped } = await leased(2, 1);
    const [known] = acksOf(popped) as [Row];
    const results = await ack([
      { ...known, transactionId: "never" },
      { ...known, partitionId: partitionId(999_999) },
      { ...known, partitionId: messageId(1, 1) },
      { ...known, consumerGroup: "nobody" },
      { ...known, transactionId: "t1" },
      { ...known, leaseId: "nonsense" },
      { ...known, status: "done" },
    ]);
    assert.deepEqual(
      results.map((row) => [row.success, row.error, row.queueName]),
      [
        [false, "Message not found", queue],
        [false, "Message not found", null],
        [false, "Message not found", null],
        [false, "Message not found", queue],
        [false, "Invalid or expired lease", queue],
        [false, "Invalid or expired lease", queue],
        [false, 'unknown status "done": use completed, failed, dlq or retry', queue],
      ],
    );
    assert.deepEqual(await cursorOf(popped), { committed: 0, acked: null, leased: true });
  });

  test("failed: again in order, then to the dead letters, with history", async () => {
    const { queue, popped } = await leased(3, 3, { retry_limit: 1 });
    let results = await ack([acksOf(popped)[0]!, acksOf(popped, { status: "failed", error: "first" })[1]!]);
    assert.deepEqual(outcomes(results), [
      [true, null, true, false],
      [true, null, true, false],
    ]);
    const again = await popAgain(queue);
    assert.deepEqual(idsOf(again), ["t1", "t2"]);
    results = await ack([acksOf(again, { status: "failed", error: "second" })[0]!, acksOf(again)[1]!]);
    assert.deepEqual(outcomes(results), [
      [true, null, true, true],
      [true, null, true, false],
    ]);
    assert.equal((await popAgain(queue)).success, false);
    const { rows } = await owner.query(
      "select transaction_id, error_message, retry_count, jsonb_array_length(history) as history from queen.dead_letters where partition_id = $1",
      [parsePartitionId(popped.partitionId)],
    );
    assert.deepEqual(rows, [{ transaction_id: "t1", error_message: "second", retry_count: 1, history: 2 }]);
  });

  test("failed: not before the retry delay", async () => {
    const { queue, popped } = await leased(1, 1, { retry_delay: 60_000 });
    await ack(acksOf(popped, { status: "failed" }));
    assert.equal((await popAgain(queue, { partition_name: "Default" })).error, "retry_delay");
    assert.equal((await popAgain(queue)).error, "no_available_partition");
  });

  test("a queue without dead letters retries for ever", async () => {
    const { queue, popped } = await leased(1, 1, { retry_limit: 0, dead_letter_queue: false });
    let last = popped;
    for (let n = 0; n < 4; n++) {
      assert.deepEqual(outcomes(await ack(acksOf(last, { status: "failed" }))), [[true, null, true, false]]);
      last = await popAgain(queue);
      assert.deepEqual(idsOf(last), ["t0"]);
    }
  });

  test("dlq and retry", async () => {
    const { queue, popped } = await leased(3);
    const results = await ack([
      acksOf(popped, { status: "dlq", error: "poison" })[0]!,
      acksOf(popped, { status: "retry" })[1]!,
    ]);
    assert.deepEqual(outcomes(results), [
      [true, null, true, true],
      [true, null, true, false],
    ]);
    assert.deepEqual(idsOf(await popAgain(queue)), ["t1", "t2"]);
  });

  test("many messages over several segments and lanes in one call", async () => {
    const queue = newQueue();
    const lanes = ["a", "b", "c"];
    await call(
      client,
      "push_messages_v2",
      lanes.flatMap((lane) => items(queue, 0, 400, lane)),
    );
    const popped = await pop(client, queue, { partitions: 3, batch_size: 1200 });
    assert.equal(popped.messages.length, 1200);
    const acks = acksOf(popped).sort((a, b) => (a.transactionId < b.transactionId ? -1 : 1));
    const results = await ack(acks);
    assert.ok(results.every((row) => row.success && row.leaseReleased));
    assert.deepEqual(
      results.map((row) => row.transactionId),
      acks.map((each) => each.transactionId),
    );
    assert.equal((await pop(client, queue)).success, false);
  });

  test("thousands: the work grows with their number, not with its square", async () => {
    // With every new key compared to every stored one, the statements would time out.
    const queue = newQueue();
    for (const from of [0, 4_000, 8_000]) {
      const answer = await call(client, "push_messages_v2", items(queue, from, from + 4_000));
      assert.ok(answer.every((row: Row) => row.status === "queued"));
    }
    assert.equal(
      (await call(client, "push_messages_v2", items(queue, 5_000, 9_000)))[3_999].status,
      "duplicate",
    );
    const popped = await pop(client, queue, { batch_size: 10_000 });
    const results = await ack(acksOf(popped));
    assert.ok(results.every((row) => row.success && row.leaseReleased));
    assert.ok(
      (await ack(acksOf(popped))).every((row) => row.success),
      "and again",
    );
  });

  test("waits for a cursor that another transaction holds, and sees what it did", async () => {
    const { queue, popped } = await leased(1);
    await expire(popped);
    await client.query("begin");
    await popAgain(queue);
    const late = ack(acksOf(popped), false, other);
    await waitsForLock(system.database, (other as unknown as { processID: number }).processID);
    await client.query("commit");
    assert.deepEqual(outcomes(await late), [[false, "Invalid or expired lease", false, false]]);
  });

  test("strict: all by this very call, or nothing of the transaction", async () => {
    const { queue, popped } = await leased(2);
    const acks = acksOf(popped);
    await refused("QN409", /^Message not found$/, () =>
      ack([acks[0], { ...acks[1], transactionId: "never" }], true),
    );
    assert.equal((await ack([acks[0]], true))[0]!.success, true);
    await refused("QN409", /^Message already acknowledged$/, () => ack(acks, true));
    await expire(popped);
    const next = await popAgain(queue);
    await refused("QN409", /^Invalid or expired lease$/, () => ack([acks[1]], true));
    assert.equal((await ack(acksOf(next), true))[0]!.leaseReleased, true);
    await refused("QN409", /^Message already acknowledged$/, () => ack(acksOf(next), true));
  });

  test("what is wrong is named, and nothing is changed", async () => {
    const { popped } = await leased(1);
    const [good] = acksOf(popped) as [Row];
    const cases: [unknown, RegExp][] = [
      ["text", /^acknowledgments array is required$/],
      [[good, 1], /^acknowledgments\[1\]: Ack must be an object$/],
      [[good, { ...good, transactionId: "" }], /^acknowledgments\[1\]\.transactionId: /],
      [[good, { ...good, partitionId: "x" }], /^acknowledgments\[1\]\.partitionId: /],
      [[good, { ...good, status: 1 }], /^acknowledgments\[1\]\.status: /],
      [[good, { ...good, leaseId: 1 }], /^acknowledgments\[1\]\.leaseId: /],
      [[good, { ...good, consumerGroup: "a\n" }], /^acknowledgments\[1\]\.consumerGroup: /],
      [{ acknowledgments: [good], consumerGroup: "a\n" }, /^consumerGroup: /],
    ];
    for (const [request, message] of cases) await refused("QN400", message, () => ack(request));
  });
});

describe("renew", () => {
  test("extends what is held, the earliest end counts", async () => {
    const queue = newQueue();
    await call(
      client,
      "push_messages_v2",
      ["a", "b"].flatMap((lane) => items(queue, 0, 1, lane)),
    );
    const popped = await pop(client, queue, { partitions: 2, lease_seconds: 10 });
    const [first, second] = await call(client, "renew_lease_v2", [
      { leaseId: popped.leaseId, seconds: 600 },
      { leaseId: "nonsense" },
    ]);
    const left = Date.parse(first.expiresAt) - Date.now();
    assert.ok(left > 500_000 && left < 700_000, first.expiresAt);
    assert.deepEqual(first, {
      index: 0,
      leaseId: popped.leaseId,
      success: true,
      error: null,
      expiresAt: first.expiresAt,
      newExpiresAt: first.expiresAt,
    });
    assert.deepEqual([second.success, second.error, second.expiresAt], [false, "Lease not found", null]);
    await ack(acksOf(popped).slice(0, 1));
    assert.equal((await call(client, "renew_lease_v2", { leaseId: popped.leaseId }))[0].success, true);
    await ack(acksOf(popped));
    assert.equal((await call(client, "renew_lease_v2", { leaseId: popped.leaseId }))[0].success, false);
    for (const seconds of [0, -1, 1.5, "x"]) {
      await refused("QN400", /^leases\[0\]\.seconds/, () =>
        call(client, "renew_lease_v2", [{ leaseId: popped.leaseId, seconds }]),
      );
    }
  });
});

describe("transaction", () => {
  test("acks and pushes together", async () => {
    const { popped } = await leased(2);
    const to = newQueue();
    const [first, second] = acksOf(popped) as [Row, Row];
    const answer = await transact(
      [
        { type: "ack", ...first },
        {
          type: "push",
          items: [
            { queue: to, transactionId: "a", payload: 1 },
            { queue: to, transactionId: "a" },
          ],
        },
        { type: "push", queue: to, transactionId: "b" },
        { type: "ack", ...second, leaseId: undefined },
      ],
      [popped.leaseId],
    );
    assert.deepEqual([answer.success, answer.replayed], [true, false]);
    const target = await pop(client, to, { data_text: true });
    assert.deepEqual(
      target.messages.map((message) => [message.transactionId, message.dataText]),
      [
        ["a", "1"],
        ["b", "{}"],
      ],
    );
    const pushed = (index: number, status: string, transactionId: string, id: string) => ({
      index,
      type: "push",
      success: true,
      status,
      transactionId,
      messageId: id,
      partitionId: target.partitionId,
      queueName: to,
    });
    const acked = (index: number, transactionId: string) => ({
      index,
      type: "ack",
      success: true,
      transactionId,
      error: null,
      dlq: false,
    });
    const [a, b] = target.messages.map((message) => message.id);
    assert.deepEqual(answer.results, [
      acked(0, "t0"),
      pushed(1, "queued", "a", a),
      pushed(2, "duplicate", "a", a),
      pushed(3, "queued", "b", b),
      acked(4, "t1"),
    ]);
    assert.deepEqual(await cursorOf(popped), { committed: 2, acked: null, leased: false });
  });

  test("sent again, it succeeds and changes nothing", async () => {
    const { popped } = await leased(1);
    const to = newQueue();
    const operations = [
      { type: "ack", ...acksOf(popped)[0] },
      { type: "push", queue: to, transactionId: "once" },
    ];
    await transact(operations, [popped.leaseId]);
    const before = await readEverything(owner);
    const answer = await transact(operations, [popped.leaseId]);
    assert.deepEqual([answer.success, answer.replayed, answer.results[1].status], [true, true, "duplicate"]);
    assert.deepEqual(await readEverything(owner), before);
  });

  test("refused as a whole: nothing of it is kept, nor of the caller's own statements", async () => {
    const { queue, popped } = await leased(2);
    const [first] = acksOf(popped) as [Row];
    const push = (transactionId: string) => ({ type: "push", queue, partition: "to", transactionId });
    await transact([push("there")]);
    await refused("QN409", /^ACK operation failed: Message not found$/, () =>
      transact([push("a"), { type: "ack", ...first, transactionId: "never" }]),
    );
    await refused("QN409", /^Invalid or expired lease$/, () => transact([push("a")], ["nonsense"]));
    await ack([first]);
    await refused("QN409", /^ACK operation failed: Message already acknowledged$/, () =>
      transact([{ type: "ack", ...first }, push("a")]),
    );
    await expire(popped);
    const next = await popAgain(queue, { partition_name: "Default" });
    await refused("QN409", /^ACK operation failed: Invalid or expired lease$/, () =>
      transact([push("a"), { type: "ack", ...acksOf(popped)[1] }]),
    );
    await refused("QN409", /^Invalid or expired lease$/, () => transact([push("a")], [popped.leaseId]));
    assert.equal((await transact([push("a")], [next.leaseId])).success, true);
  });

  test("failed counts an attempt, and only what is out of attempts goes to the dead letters", async () => {
    const { queue, popped } = await leased(1, 1, { retry_limit: 1 });
    const failed = (of: Popped) =>
      transact([{ type: "ack", ...acksOf(of, { status: "failed", error: "no" })[0] }]);
    assert.equal((await failed(popped)).results[0].dlq, false);
    assert.equal((await failed(await popAgain(queue))).results[0].dlq, true);
  });

  test("what is wrong is named, and nothing is changed", async () => {
    const { queue, popped } = await leased(1);
    const push = { type: "push", queue, transactionId: "x" };
    const cases: [unknown, RegExp][] = [
      [{}, /^operations array required$/],
      [{ operations: [] }, /^operations array cannot be empty$/],
      [{ operations: [push, 1] }, /^operations\[1\]: Operation must be an object$/],
      [{ operations: [push, { type: "pop" }] }, /^operations\[1\]\.type: Unknown operation type: pop$/],
      [
        { operations: [push, { type: "push", items: {} }] },
        /^operations\[1\]\.items: Items must be an array$/,
      ],
      [{ operations: [push, { type: "push", items: [push, {}] }] }, /^operations\[1\]\.items\[1\]\.queue: /],
      [{ operations: [push, { type: "push" }] }, /^operations\[1\]\.queue: /],
      [
        { operations: [push, { type: "ack", partitionId: popped.partitionId }] },
        /^operations\[1\]\.transactionId: /,
      ],
      [{ operations: [push], requiredLeases: [1] }, /^requiredLeases: /],
      [{ operations: [push], requiredLeases: "x" }, /^requiredLeases: /],
      [{ operations: Array.from({ length: 1001 }, () => push) }, /^operations must be at most 1000$/],
    ];
    for (const [request, message] of cases) {
      await refused("QN400", message, () => call(client, "execute_transaction_v2", request));
    }
  });

  test("transactions that cross each other never wait in a circle", async () => {
    const queue = newQueue();
    await call(
      client,
      "push_messages_v2",
      ["a", "b"].flatMap((lane) => items(queue, 0, 60, lane)),
    );
    const take = async (as: pg.Client, lane: string) =>
      pop(as, queue, { partition_name: lane, batch_size: 60 });
    const [left, right] = [await take(client, "a"), await take(client, "b")];
    const storm = async (as: pg.Client, from: Popped, first: string, second: string, tag: string) => {
      for (const [index, each] of acksOf(from).entries()) {
        const push = (partition: string) => ({
          type: "push",
          queue,
          partition,
          transactionId: `${tag}${index}`,
        });
        await transact([{ type: "ack", ...each }, push(first), push(second)], [], as);
      }
    };
    await Promise.all([storm(client, left, "b", "a", "x"), storm(other, right, "a", "b", "y")]);
    assert.deepEqual((await cursorOf(left)).committed, 60);
    assert.deepEqual((await cursorOf(right)).committed, 60);
  });
});
