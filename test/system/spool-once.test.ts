/** The spool and exactly once: whatever dies while messages wait on the disk or leave it, each is stored once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { until } from "../support/moments.ts";
import { drained, ids, item, server, statusOf, withRig } from "../support/spool-rig.ts";

test("a push in doubt that is committed late is stored once", () =>
  withRig({}, async ({ queue, client, stored, url }) => {
    await client.push([item(0, queue)]);
    const locker = new pg.Client({ connectionString: url });
    await locker.connect();
    await locker.query("begin; lock table queen.segments in exclusive mode");
    assert.equal(await statusOf(client, item(1, queue), item(2, queue)), "buffered");
    assert.equal(await statusOf(client, item(3, queue)), "buffered");
    await locker.query("rollback");
    await locker.end();
    await drained(client);
    assert.deepEqual(await stored(queue), ids(0, 4));
  }));

test("what was a duplicate when it was buffered is one after an outage longer than the dedup window", () =>
  withRig({}, async ({ queue, client, kill, start, stored }) => {
    await client.configure(queue, { dedupWindowSeconds: 3, dedupMessagesMin: 1 });
    const many = Array.from({ length: 5_000 }, (_, n) => item(n, queue)); // more than a look back by rows would see
    await client.push(many);
    await server.kill();
    // So many that the duplicates are in the first batch that is drained, and in a later one.
    for (const n of [7, ...Array.from({ length: 20 }, (_, index) => 5_000 + index), 8]) {
      assert.equal(await statusOf(client, item(n, queue)), "buffered");
    }
    await kill();
    await sleep(3_500); // the window passes by PostgreSQL's clock, which nobody can move
    await server.restart();
    await start();
    await drained(client);
    const found = await stored(queue);
    assert.equal(new Set(found).size, found.length);
    assert.equal(found.length, 5_020);
  }));

const CRASHES = [
  // Before the disk has them, messages may be lost: they were not answered. Afterwards they may not.
  ["spool-before-write:2", "while buffering"],
  ["spool-before-sync:2", "while buffering"],
  ["spool-after-sync:2", "while buffering"],
  ["drain-before-append", "while draining"],
  ["drain-after-append", "while draining"],
  ["drain-after-append:2", "while draining"],
  ["drain-after-settle", "while draining"],
  ["spool-before-unlink", "while draining"],
] as const;

for (const [point, when] of CRASHES) {
  test(`a broker that dies at ${point} lost nothing that it answered, and stores nothing twice`, () =>
    withRig({}, async ({ queue, client, broker, kill, start, stored }) => {
      await kill();
      await start({ QUEEN_CRASH_AT: point });
      const isPrimaryDead = (): boolean => !isAlive(broker().pid);
      await server.kill();
      const answered: string[] = [];
      for (let n = 0; n < 20; n++) {
        const answer = await client.push([item(n, queue, `p${n % 3}`)]).catch(() => undefined);
        if (answer) answered.push(answer[0]!.transaction_id);
      }
      if (when === "while buffering") await until("it died", isPrimaryDead);
      else assert.equal(answered.length, 20);
      await server.restart();
      // A worker that dies is replaced, and dies again: a drain that never gets through, until the point is gone.
      if (when === "while draining") {
        await until("it died", () => isPrimaryDead() || broker().output().includes("worker.died"));
      }
      await kill();
      await start();
      await drained(client);
      const found = await stored(queue);
      assert.equal(new Set(found).size, found.length, "stored once");
      assert.deepEqual(
        answered.filter((id) => !found.includes(id)),
        [],
        "nothing answered is lost",
      );
      for (const partition of [0, 1, 2]) {
        const own = found
          .filter((id) => Number(id.slice(1)) % 3 === partition)
          .map((id) => Number(id.slice(1)));
        assert.deepEqual(
          own,
          own.toSorted((a, b) => a - b),
        );
      }
    }));
}

for (const point of ["push-before-append", "push-after-append"]) {
  test(`a worker that dies at ${point} leaves a push that can be repeated`, () =>
    withRig({}, async ({ queue, client, kill, start, stored }) => {
      await kill();
      await start({ QUEEN_CRASH_AT: point });
      await assert.rejects(client.push([item(0, queue)]));
      await kill();
      await start();
      await until("it is answered", () => client.push([item(0, queue)]).catch(() => undefined));
      await drained(client);
      assert.deepEqual(await stored(queue), ["t0"]);
    }));
}

test("a worker that dies after a take and before its answer leaves messages that come again", () =>
  withRig({}, async ({ queue, client, kill, start }) => {
    await client.configure(queue, { leaseTime: 1 });
    await client.push([item(0, queue)]);
    await kill();
    await start({ QUEEN_CRASH_AT: "pop-after-take" });
    await assert.rejects(client.pop(queue));
    await kill();
    await start();
    const popped = await until("it comes again", async () => {
      const { messages } = await client.pop(queue, { wait: true, timeout: 500 });
      return messages.length > 0 ? messages : undefined;
    });
    assert.equal(popped[0]!.transactionId, "t0");
  }));

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
