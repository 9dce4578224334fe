/** renew (P4): extends what is held, lane by lane, and nothing that was replaced. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import {
  expire,
  newLane,
  newToken,
  RENEW,
  readEverything,
  renew,
  settle,
  type TestLane,
  takeOne,
} from "../support/procedures.ts";

let database: TestDatabase;
let client: pg.Client;
let other: pg.Client;

before(async () => {
  database = await createDatabase();
  [client, other] = await Promise.all([database.client(), database.client()]);
});
after(() => database?.drop());

async function leasedLane(token: number, leaseSeconds = 10): Promise<TestLane & { token: number }> {
  const lane = { ...(await newLane(client, 2)), token };
  await takeOne(client, { ...lane, leaseSeconds });
  return lane;
}

async function secondsLeft({ partition }: TestLane): Promise<number> {
  const [row] = await database.query(
    `select extract(epoch from lease_expires_at - clock_timestamp())::float8 as left
       from queen.partition_consumers where partition_id = $1`,
    [partition],
  );
  return row!.left;
}

test("one lease over several partitions is extended on all of them", async () => {
  const token = newToken();
  const lanes = [await leasedLane(token), await leasedLane(token), await leasedLane(token)];
  const rows = await renew(
    client,
    lanes.map((lane) => ({ ...lane, seconds: 100 })),
  );
  assert.deepEqual(
    rows.map((row) => row.status),
    [RENEW.extended, RENEW.extended, RENEW.extended],
  );
  for (const [index, lane] of lanes.entries()) {
    const left = await secondsLeft(lane);
    assert.ok(left > 95 && left <= 100);
    assert.ok(Math.abs(rows[index]!.expires_at.getTime() - Date.now() - left * 1000) < 5_000);
  }
});

test("a renewal never shortens a lease", async () => {
  const lane = await leasedLane(newToken(), 100);
  const [row] = await renew(client, [{ ...lane, seconds: 5 }]);
  assert.equal(row!.status, RENEW.extended);
  assert.ok((await secondsLeft(lane)) > 95);
});

test("the longest of two renewals of a lease in one call counts, in either order", async () => {
  for (const order of [
    [100, 20],
    [20, 100],
  ]) {
    const lane = await leasedLane(newToken());
    const rows = await renew(
      client,
      order.map((seconds) => ({ ...lane, seconds })),
    );
    assert.deepEqual(
      rows.map((row) => row.status),
      [RENEW.extended, RENEW.extended],
    );
    assert.ok((await secondsLeft(lane)) > 95);
  }
});

test("a token that was replaced or ended is not held, and nothing changes", async () => {
  const [replaced, ended] = [await leasedLane(newToken()), await leasedLane(newToken())];
  await expire(client, replaced);
  await takeOne(client, { ...replaced, token: newToken(), leaseSeconds: 10 });
  await settle(client, [{ ...ended, release: true }]);
  const before = await readEverything(client);
  const rows = await renew(client, [
    { ...replaced, seconds: 100 },
    { ...ended, seconds: 100 },
    { partition: 999_999_999, token: 1, seconds: 100 },
  ]);
  assert.deepEqual(
    rows.map((row) => [row.status, row.expires_at]),
    [
      [RENEW.notHeld, null],
      [RENEW.notHeld, null],
      [RENEW.notHeld, null],
    ],
  );
  assert.deepEqual(await readEverything(client), before);
});

test("a token that ran out but was not replaced is extended", async () => {
  const lane = await leasedLane(newToken());
  await expire(client, lane);
  assert.equal((await renew(client, [{ ...lane, seconds: 50 }]))[0]!.status, RENEW.extended);
  assert.ok((await secondsLeft(lane)) > 45);
});

test("a cursor that somebody holds is busy, and the others in the call are extended", async () => {
  const [held, free] = [await leasedLane(newToken()), await leasedLane(newToken())];
  await other.query("begin");
  await other.query("select 1 from queen.partition_consumers where partition_id = $1 for update", [
    held.partition,
  ]);
  const rows = await renew(client, [
    { ...held, seconds: 100 },
    { ...free, seconds: 100 },
  ]);
  await other.query("rollback");
  assert.deepEqual(
    rows.map((row) => row.status),
    [RENEW.busy, RENEW.extended],
  );
  assert.ok((await secondsLeft(held)) < 20);
});
