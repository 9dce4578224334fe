/** Leases and their renewal over HTTP (P4): a lane is its holder's for as long as it says so. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { HttpAnswer } from "../support/http.ts";
import {
  expireLeases,
  ids,
  idsOf,
  newQueue,
  numbered,
  type System,
  startSystem,
  until,
} from "../support/system.ts";

let system: System;

before(async () => {
  system = await startSystem();
});
after(() => system?.stop());

const extend = (leaseId: string, body?: unknown): Promise<HttpAnswer> =>
  system.client.request("POST", `/api/v1/lease/${encodeURIComponent(leaseId)}/extend`, body);

/** When the leases of a queue end, in seconds from now by the database's clock. */
async function secondsLeft(queue: string): Promise<number[]> {
  const rows = await system.database.query(
    `select extract(epoch from c.lease_expires_at - clock_timestamp())::float8 as seconds
       from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id
      where q.name = $1 and c.lease_token is not null order by 1`,
    [queue],
  );
  return rows.map((row) => row.seconds as number);
}

const isAbout = (actual: number, expected: number): boolean => actual > expected - 20 && actual <= expected;

test("autoRenewLease: a lease lasts leaseTime, and then the lane is anybody's", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 1 });
  await system.client.push(numbered(queue, 2));
  const first = await system.client.pop(queue, { batch: 2 });
  assert.equal((await system.client.pop(queue, { partition: "Default" })).emptyReason, "lease_held");
  const second = await system.client.pop(queue, { batch: 2, wait: true, timeout: 10_000 });
  assert.deepEqual(idsOf(second.messages), ids(0, 2));
  assert.notEqual(second.json.leaseId, first.json.leaseId);
});

test("autoRenewLease: renewals keep the lane away from others for longer than leaseTime", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 1 });
  await system.client.push(numbered(queue, 2));
  const { messages, json } = await system.client.pop(queue, { batch: 2 });
  const started = performance.now();
  const others = [
    system.client.pop(queue, { wait: true, timeout: 2_200 }),
    system.client.pop(queue, { partition: "Default", wait: true, timeout: 2_200 }),
  ];
  let renewals = 0;
  while (performance.now() - started < 2_000) {
    const answer = await extend(json.leaseId, { seconds: 1 });
    assert.equal(answer.json[0].success, true);
    renewals++;
    await until("half a second is left", async () => (await secondsLeft(queue))[0]! < 0.5);
  }
  assert.ok(renewals >= 3);
  await extend(json.leaseId, { seconds: 60 });
  for (const other of await Promise.all(others)) assert.equal(other.status, 204, "nobody else got the lane");
  const results = await system.client.ackMessages(messages);
  assert.ok(results.every((result) => result.success && result.leaseReleased));
});

test("autoRenewLease: a renewal answers when the lease ends now, as an array and in a header", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { json } = await system.client.pop(queue);
  const answer = await extend(json.leaseId, { seconds: 1_000 });
  assert.equal(answer.status, 200);
  const [result] = answer.json;
  const { expiresAt } = result;
  assert.deepEqual(answer.json, [
    { index: 0, leaseId: json.leaseId, success: true, error: null, expiresAt, newExpiresAt: expiresAt },
  ]);
  assert.match(expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(answer.headers["queen-lease-expires-at"], expiresAt);
  const [row] = await system.database.query(
    `select date_trunc('milliseconds', c.lease_expires_at) = $2::timestamptz as same
       from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
       join queen.queues q on q.id = p.queue_id where q.name = $1`,
    [queue, expiresAt],
  );
  assert.equal(row!.same, true);
});

test("autoRenewLease: empty, {}, [] and null bodies renew for a minute; a lease never gets shorter", async () => {
  for (const body of [undefined, "", {}, [], "null", { seconds: null }]) {
    const queue = newQueue();
    await system.client.configure(queue, { leaseTime: 5 });
    await system.client.push(numbered(queue, 1));
    const { json } = await system.client.pop(queue);
    const answer = await extend(json.leaseId, body);
    assert.deepEqual([answer.status, answer.json?.[0]?.success], [200, true], JSON.stringify(body));
    assert.ok(isAbout((await secondsLeft(queue))[0]!, 60));
    const shorter = await extend(json.leaseId, { seconds: 1 });
    assert.equal(shorter.json[0].success, true);
    assert.equal(shorter.json[0].expiresAt, answer.json[0].expiresAt);
  }
});

test("autoRenewLease: one lease id renews all its lanes, and only what is still held", async () => {
  const queue = newQueue();
  const lanes = ["a", "b", "c"];
  await system.client.push(lanes.flatMap((lane) => numbered(queue, 1, lane)));
  const { messages, json } = await system.client.pop(queue, { batch: 10, partitions: 3 });
  assert.equal(messages.length, 3);
  assert.equal((await extend(json.leaseId, { seconds: 5_000 })).json[0].success, true);
  assert.deepEqual(
    (await secondsLeft(queue)).map((seconds) => isAbout(seconds, 5_000)),
    [true, true, true],
  );
  await system.client.ackMessages(messages.slice(0, 1));
  assert.equal((await extend(json.leaseId, { seconds: 9_000 })).json[0].success, true);
  assert.deepEqual(
    (await secondsLeft(queue)).map((seconds) => isAbout(seconds, 9_000)),
    [true, true],
  );
  await system.client.ackMessages(messages.slice(1));
  const [over] = (await extend(json.leaseId)).json;
  assert.deepEqual([over.success, over.error], [false, "Lease not found"]);
});

test("autoRenewLease: a lease that is unknown, released or replaced is not found, and nothing changes", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const first = await system.client.pop(queue);
  await expireLeases(system.database, queue);
  const second = await system.client.pop(queue, { partition: "Default" });
  const before = (await secondsLeft(queue))[0]!;
  const unknown = [
    "x",
    "00000000-0000-4000-8000-000000000000",
    first.json.leaseId,
    `${second.json.leaseId}.zz`,
  ];
  for (const leaseId of unknown) {
    const answer = await extend(leaseId, { seconds: 40_000 });
    if (leaseId === unknown[3]) continue; // names a further lane, of which nobody holds anything
    assert.deepEqual(answer.json, [
      { index: 0, leaseId, success: false, error: "Lease not found", expiresAt: null, newExpiresAt: null },
    ]);
    assert.equal(answer.status, 200);
    assert.ok((await secondsLeft(queue))[0]! <= before, leaseId);
  }
  await system.client.ackMessages(second.messages);
  assert.equal((await extend(second.json.leaseId)).json[0].error, "Lease not found");
});

test("autoRenewLease: a lease that ran out and was not replaced can still be renewed", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { json } = await system.client.pop(queue);
  await expireLeases(system.database, queue);
  assert.equal((await extend(json.leaseId)).json[0].success, true);
  assert.equal((await system.client.pop(queue, { partition: "Default" })).emptyReason, "lease_held");
});

test("autoRenewLease: another broker renews too, and the one that served the pop honours it", async () => {
  const { client } = await system.another();
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 1 });
  await system.client.push(numbered(queue, 1));
  const { messages, json } = await system.client.pop(queue);
  assert.equal((await client.extend(json.leaseId, 60)).json[0].success, true);
  const other = await system.client.pop(queue, { wait: true, timeout: 1_500 });
  assert.equal(other.status, 204);
  assert.equal((await system.client.ackMessages(messages))[0]!.success, true);
});

test("autoRenewLease: seconds must be a whole number from 1 on", async () => {
  for (const seconds of [0, -5, 1.5, "60", true, {}]) {
    const answer = await extend("00000000-0000-8000-8000-000000000000", { seconds });
    assert.deepEqual([answer.status, answer.json?.code], [400, "VALIDATION_FAILED"], JSON.stringify(seconds));
    assert.match(answer.json.error, /seconds/);
  }
  const bad = await extend("00000000-0000-8000-8000-000000000000", "{");
  assert.deepEqual([bad.status, bad.json?.code], [400, "INVALID_JSON"]);
});

test("a lease is never longer than twelve hours", async () => {
  const queue = newQueue();
  await system.client.push(numbered(queue, 1));
  const { json } = await system.client.pop(queue);
  assert.equal((await extend(json.leaseId, { seconds: 10_000_000 })).json[0].success, true);
  assert.ok(isAbout((await secondsLeft(queue))[0]!, 43_200));
});

test("leaseTime 0 means a minute", async () => {
  const queue = newQueue();
  await system.client.configure(queue, { leaseTime: 0 });
  await system.client.push(numbered(queue, 1));
  await system.client.pop(queue);
  assert.ok(isAbout((await secondsLeft(queue))[0]!, 60));
});
