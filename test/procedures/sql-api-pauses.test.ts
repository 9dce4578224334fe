/** Pauses and pop maintenance in the SQL interface: what is paused is not delivered by any of its pops. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
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
let client: pg.Client;

before(async () => {
  system = await startSqlSystem();
  client = await system.application.connect();
});
after(() => system?.stop());

let queues = 0;

/** A queue with one message in each of the partitions a and b, which the groups g and h have met. */
async function newQueue(): Promise<string> {
  const queue = `queue-${++queues}`;
  await call(client, "push_messages_v2", [...items(queue, 0, 1, "a"), ...items(queue, 1, 2, "b")]);
  for (const consumer_group of ["g", "h"]) await giveBack(await any(queue, consumer_group));
  return queue;
}

const pause = (
  queue: string,
  partition: string | null = null,
  group: string | null = null,
): Promise<unknown> =>
  system.owner.query("select * from queen.pause($1, $2, $3, 'tester', null)", [queue, partition, group]);
const resume = (
  queue: string,
  partition: string | null = null,
  group: string | null = null,
): Promise<unknown> =>
  system.owner.query("select * from queen.resume($1, $2, $3)", [queue, partition, group]);
const setMaintenance = (enabled: boolean): Promise<unknown> =>
  system.owner.query(
    `insert into queen.system_state (key, value) values ('pop_maintenance_mode', jsonb_build_object('enabled', $1::bool))
     on conflict (key) do update set value = excluded.value`,
    [enabled],
  );

const any = (queue: string, consumer_group: string): Promise<Popped> =>
  pop(client, queue, { consumer_group, partitions: 2 });
const named = (queue: string, partition_name: string, consumer_group: string): Promise<Popped> =>
  pop(client, queue, { partition_name, consumer_group });
const giveBack = async (popped: Popped): Promise<Popped> => {
  if (popped.success) await call(client, "pop_sm_release", [{ leaseId: popped.leaseId }]);
  return popped;
};
const hasPending = async (queue: string, partition: string | null, group: string): Promise<boolean> =>
  (await client.query("select queen.has_pending_messages($1, $2, $3) as answer", [queue, partition, group]))
    .rows[0].answer;

for (const [partition, group] of [
  [null, null],
  ["a", null],
  [null, "g"],
  ["a", "g"],
] as const) {
  test(`a pause of partition ${partition ?? "any"} for group ${group ?? "any"} holds for every pop`, async () => {
    const queue = await newQueue();
    await pause(queue, partition, group);
    for (const each of ["g", "h"]) {
      const covers = (name: string): boolean => (partition ?? name) === name && (group ?? each) === each;
      const free = ["a", "b"].filter((name) => !covers(name));
      for (const name of ["a", "b"]) {
        const popped = await giveBack(await named(queue, name, each));
        assert.equal(popped.error, covers(name) ? "paused" : undefined);
        assert.equal(await hasPending(queue, name, each), !covers(name));
        const request = { queue_name: queue, partition_name: name, consumer_group: each };
        const [leased] = await call(client, "pop_sm_lease", [request]);
        assert.equal(leased.result.error, covers(name) ? "paused" : undefined);
        await giveBack(leased.result);
        const [specific] = await call(client, "pop_specific_batch", [request]);
        assert.equal(specific.result.success, !covers(name));
        await giveBack(specific.result);
      }
      assert.equal(await hasPending(queue, null, each), free.length > 0);
      const popped = await giveBack(await any(queue, each));
      assert.deepEqual(popped.messages.map((message) => message.partition).sort(), free);
      if (free.length === 0) assert.equal(popped.error, "paused");
      const [resolved] = await call(client, "pop_sm_resolve", [{ queue_name: queue, consumer_group: each }]);
      assert.equal(resolved.result.success, free.length > 0);
      if (free.length === 0) assert.equal(resolved.result.error, "paused");
      else assert.ok(free.includes(resolved.result.partition));
    }
    await resume(queue, partition, group);
    for (const each of ["g", "h"])
      assert.deepEqual(idsOf(await giveBack(await any(queue, each))).sort(), ["t0", "t1"]);
  });
}

test("a pop of any partition says paused only if a paused one has something for it", async () => {
  const queue = await newQueue();
  await pause(queue, "a");
  const rest = await any(queue, "g");
  assert.deepEqual(idsOf(rest), ["t1"]);
  await call(client, "ack_messages_v2", acksOf(rest));
  assert.equal((await any(queue, "g")).error, "paused");
  await resume(queue, "a");
  await call(client, "ack_messages_v2", acksOf(await any(queue, "g")));
  await pause(queue, "a");
  assert.equal((await any(queue, "g")).error, "no_available_partition");
});

test("pop maintenance stops every pop; leases that are held go on", async () => {
  const queue = await newQueue();
  const held = await named(queue, "a", "g");
  await setMaintenance(true);
  try {
    assert.equal((await any(queue, "h")).error, "paused");
    assert.equal((await named(queue, "b", "g")).error, "paused");
    assert.equal((await pop(client, "nobody's")).error, "paused");
    assert.equal(await hasPending(queue, null, "h"), false);
    const [fetched] = await call(client, "pop_sm_fetch", [{ leaseId: held.leaseId }]);
    assert.deepEqual(idsOf(fetched.result), ["t0"]);
    const [acked] = await call(client, "ack_messages_v2", acksOf(held));
    assert.equal(acked.success, true);
    const [pushed] = await call(client, "push_messages_v2", items(queue, 9, 10, "a"));
    assert.equal(pushed.status, "queued");
  } finally {
    await setMaintenance(false);
  }
  assert.deepEqual(idsOf(await any(queue, "g")).sort(), ["t1", "t9"]);
});

test("of two who pause the same at the same time, one does and both are told by whom", async () => {
  const queue = await newQueue();
  const [one, two] = [await system.database.client(), await system.database.client()];
  const by = (session: pg.Client, name: string) =>
    session.query("select changed, paused_by from queen.pause($1, null, null, $2, null)", [queue, name]);
  await one.query("begin");
  assert.deepEqual((await by(one, "one")).rows, [{ changed: true, paused_by: "one" }]);
  const second = by(two, "two");
  await one.query("commit");
  assert.deepEqual((await second).rows, [{ changed: false, paused_by: "one" }]);
});

test("pauses are out of an application's reach", async () => {
  const queue = await newQueue();
  for (const statement of [
    "select * from queen.pauses",
    `select * from queen.pause('${queue}', null, null, 'me', null)`,
    "select * from queen.sql_pauses(1, 1)",
    "select queen.doctor_facts(1)",
  ]) {
    await assert.rejects(client.query(statement), { code: "42501" });
  }
});
