/**
 * Queen inside the user's own transaction, with a crash at every step: the table and the queue tell the same
 * story, whatever was under way when the connection was lost (P1, P6).
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type pg from "pg";
import { until } from "../support/moments.ts";
import { waitsForLock } from "../support/procedures.ts";
import { acksOf, call, items, type Popped, pop, type SqlSystem, startSqlSystem } from "../support/sql-api.ts";

let system: SqlSystem;
let owner: pg.Client;
let client: pg.Client;

before(async () => {
  system = await startSqlSystem();
  owner = system.owner;
  client = await system.application.connect();
  await owner.query("create table orders (id text primary key)");
  await owner.query("create table balances (queue text primary key, amount int8 not null)");
  await owner.query(`grant all on orders, balances to ${system.application.role}`);
});
after(() => system?.stop());

let queues = 0;
const newQueue = (): string => `queue-${++queues}`;

const processOf = (of: pg.Client): number => (of as unknown as { processID: number }).processID;

/** Ends the connection's process as a crash does, and waits until the server has cleaned up after it. */
async function crash(victim: pg.Client): Promise<void> {
  const pid = processOf(victim);
  await owner.query("select pg_terminate_backend($1)", [pid]);
  await until("the process is gone", async () => {
    const { rows } = await owner.query("select 1 from pg_stat_activity where pid = $1", [pid]);
    return rows.length === 0;
  });
}

type Step = (on: pg.Client) => Promise<unknown>;
const begin: Step = (on) => on.query("begin");
const commit: Step = (on) => on.query("commit");

/** Runs the steps on a connection of its own, as far as the one that is the last; then the connection is lost. */
async function runUntil(steps: readonly Step[], last: number): Promise<void> {
  const victim = await system.application.connect();
  for (const step of steps.slice(0, last + 1)) await step(victim);
  await crash(victim);
}

async function storedIn(queue: string): Promise<string[]> {
  const { rows } = await owner.query(
    `select m.transaction_id as id from queen.messages m join queen.partitions p on p.id = m.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1 order by 1`,
    [queue],
  );
  return rows.map((row) => row.id);
}

async function orders(queue: string): Promise<string[]> {
  const { rows } = await owner.query("select id from orders where id like $1 || '/%' order by 1", [queue]);
  return rows.map((row) => row.id.slice(queue.length + 1));
}

describe("insert my order and push its event in one commit", () => {
  const STEPS = ["begin", "insert", "push", "commit"] as const;
  const order = (queue: string, id: string): Step[] => [
    begin,
    (on) => on.query("insert into orders values ($1)", [`${queue}/${id}`]),
    (on) => call(on, "push_messages_v2", [{ queue, transactionId: id, payload: { id } }]),
    commit,
  ];

  for (const [index, name] of STEPS.entries()) {
    for (const known of [false, true]) {
      test(`a crash after ${name}${known ? "" : ", in a new queue"}`, async () => {
        const queue = newQueue();
        if (known) await call(client, "push_messages_v2", items(queue, 0, 1));
        const before = known ? ["t0"] : [];
        await runUntil(order(queue, "one"), index);
        const expected = name === "commit" ? ["one"] : [];
        assert.deepEqual(await orders(queue), expected);
        assert.deepEqual(await storedIn(queue), [...expected, ...before]);

        // The application comes back and does what it cannot know to be done.
        await client.query("begin");
        await client.query("insert into orders values ($1) on conflict do nothing", [`${queue}/one`]);
        const [answer] = await call(client, "push_messages_v2", [{ queue, transactionId: "one" }]);
        await client.query("commit");
        assert.equal(answer.status, name === "commit" ? "duplicate" : "queued");
        assert.deepEqual(await orders(queue), ["one"]);
        assert.deepEqual(await storedIn(queue), ["one", ...before]);
        const popped = await pop(client, queue);
        assert.equal(popped.messages.length, 1 + before.length, "offsets have no gap, and the lane is free");
      });
    }
  }

  test("a crash while it waits for the lane", async () => {
    const queue = newQueue();
    await call(client, "push_messages_v2", items(queue, 0, 1));
    await client.query("begin");
    await call(client, "push_messages_v2", items(queue, 1, 2));
    const victim = await system.application.connect();
    const [started, insert, push] = order(queue, "one");
    await started!(victim);
    await insert!(victim);
    const pushing = push!(victim).catch(() => undefined);
    await waitsForLock(system.database, processOf(victim));
    await crash(victim);
    await pushing;
    await client.query("commit");
    assert.deepEqual(await orders(queue), []);
    assert.deepEqual(await storedIn(queue), ["t0", "t1"]);
  });

  test("a crash at any moment of the commit", async () => {
    const queue = newQueue();
    let committed = 0;
    for (let n = 0; n < 30; n++) {
      const victim = await system.application.connect();
      for (const step of order(queue, `o${n}`).slice(0, 3)) await step(victim);
      const committing = commit(victim).then(
        () => 1,
        () => 0,
      );
      const crashing = crash(victim);
      committed += await committing;
      await crashing;
    }
    const there = await orders(queue);
    assert.deepEqual(await storedIn(queue), there);
    assert.ok(there.length >= committed, "what was answered is there");
  });

  test("a rollback, also to a savepoint, leaves nothing", async () => {
    const queue = newQueue();
    await client.query("begin");
    for (const step of order(queue, "kept").slice(1, 3)) await step(client);
    await client.query("savepoint before");
    for (const step of order(queue, "dropped").slice(1, 3)) await step(client);
    await client.query("rollback to before");
    await client.query("commit");
    assert.deepEqual(await orders(queue), ["kept"]);
    assert.deepEqual(await storedIn(queue), ["kept"]);
    await client.query("begin");
    for (const step of order(queue, "dropped").slice(1, 3)) await step(client);
    await client.query("rollback");
    assert.deepEqual(await orders(queue), ["kept"]);
    assert.deepEqual(await storedIn(queue), ["kept"]);
  });
});

describe("update my table and ack in one commit", () => {
  const add =
    (queue: string): Step =>
    (on) =>
      on.query(
        "insert into balances values ($1, 1) on conflict (queue) do update set amount = balances.amount + 1",
        [queue],
      );
  const strictAck =
    (popped: Popped): Step =>
    (on) =>
      call(on, "ack_messages_v2", acksOf(popped), true);

  async function balance(queue: string): Promise<number> {
    const { rows } = await owner.query("select amount from balances where queue = $1", [queue]);
    return rows[0]?.amount ?? 0;
  }

  async function committedIn(queue: string): Promise<number> {
    const { rows } = await owner.query(
      `select coalesce(max(c.committed), 0) as committed from queen.partition_consumers c
         join queen.partitions p on p.id = c.partition_id join queen.queues q on q.id = p.queue_id where q.name = $1`,
      [queue],
    );
    return rows[0].committed;
  }

  for (const [index, name] of ["begin", "update", "ack", "commit"].entries()) {
    test(`a crash after ${name}`, async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", items(queue, 0, 1));
      const popped = await pop(client, queue);
      const steps = [begin, add(queue), strictAck(popped), commit];
      await runUntil(steps, index);
      const expected = name === "commit" ? 1 : 0;
      assert.equal(await balance(queue), expected);
      assert.equal(await committedIn(queue), expected);

      // The consumer does not know what happened and does it again, under its lease.
      const retry = await system.application.connect();
      const again = (async () => {
        for (const step of steps) await step(retry);
      })();
      if (name === "commit")
        await assert.rejects(again, { code: "QN409", message: "Message already acknowledged" });
      else await again;
      await retry.query("rollback");
      assert.equal(await balance(queue), 1, "counted once");
      assert.equal(await committedIn(queue), 1);
    });
  }

  for (const [index, name] of ["begin", "pop", "update", "ack", "commit"].entries()) {
    test(`pop, update and ack in one transaction: a crash after ${name}`, async () => {
      const queue = newQueue();
      await call(client, "push_messages_v2", items(queue, 0, 1));
      let popped: Popped | undefined;
      const steps: Step[] = [
        begin,
        async (on) => {
          popped = await pop(on, queue);
          assert.equal(popped.messages.length, 1);
        },
        add(queue),
        (on) => strictAck(popped!)(on),
        commit,
      ];
      await runUntil(steps, index);
      const expected = name === "commit" ? 1 : 0;
      assert.equal(await balance(queue), expected);
      assert.equal(await committedIn(queue), expected);
      assert.equal(
        (await pop(client, queue)).messages.length,
        1 - expected,
        "free at once, without waiting for a lease",
      );
    });
  }

  test("a lease that was lost keeps the table as it was", async () => {
    const queue = newQueue();
    await call(client, "push_messages_v2", items(queue, 0, 1));
    const slow = await pop(client, queue);
    await owner.query(
      "update queen.partition_consumers set lease_expires_at = 'epoch' where lease_token is not null",
    );
    const quick = await pop(client, queue);
    const late = await system.application.connect();
    await begin(late);
    await add(queue)(late);
    await assert.rejects(strictAck(slow)(late), { code: "QN409", message: "Invalid or expired lease" });
    await late.query("commit"); // PostgreSQL makes a rollback of it
    assert.equal(await balance(queue), 0);
    for (const step of [begin, add(queue), strictAck(quick), commit]) await step(late);
    assert.equal(await balance(queue), 1);
  });
});

test("a chain: what is taken from one queue is in the next one, once, whatever crashes in between", async () => {
  const [from, to] = [newQueue(), newQueue()];
  await call(client, "push_messages_v2", items(from, 0, 20));
  for (let round = 0; ; round++) {
    const on = await system.application.connect();
    await begin(on);
    const popped = await pop(on, from, { batch_size: 3 });
    if (!popped.success) break;
    await call(on, "execute_transaction_v2", {
      operations: [
        ...acksOf(popped).map((ack) => ({ type: "ack", ...ack })),
        // Without a transactionId of its own, nothing but the transaction keeps it from being there twice.
        ...popped.messages.map((message) => ({ type: "push", queue: to, payload: message.data })),
      ],
      requiredLeases: [popped.leaseId],
    });
    if (round % 3 === 2) await commit(on);
    await crash(on);
  }
  const popped = await pop(client, to);
  assert.deepEqual(
    popped.messages.map((message) => message.data),
    Array.from({ length: 20 }, (_, index) => index),
  );
});
