/** The helper that users start in their own tests. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startTestQueen, type TestQueen, until } from "../src/index.ts";

let system: TestQueen;
before(async () => {
  system = await startTestQueen({ breakable: true });
});
after(() => system?.stop());

test("with nothing given it brings its own PostgreSQL, and leaves nothing behind", async () => {
  const { QUEEN_TEST_DATABASE_URL, TMPDIR } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "queen-alone-"));
  chmodSync(folder, 0o711); // as root, PostgreSQL runs as another user, who must get in
  delete process.env.QUEEN_TEST_DATABASE_URL;
  process.env.TMPDIR = folder;
  try {
    const alone = await startTestQueen();
    await alone.client().queue("q").push({ data: 1 });
    assert.equal(readdirSync(folder).length, 2); // the database, and the broker's spool
    await alone.stop();
    assert.deepEqual(readdirSync(folder), []);
    assert.deepEqual(
      alone.brokers.map((broker) => broker.isRunning),
      [false],
    );
  } finally {
    if (QUEEN_TEST_DATABASE_URL !== undefined) process.env.QUEEN_TEST_DATABASE_URL = QUEEN_TEST_DATABASE_URL;
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    rmSync(folder, { recursive: true, force: true });
  }
});

test("drained waits for the group's last message", async () => {
  const queen = system.client();
  const queue = queen.queue<number>("drained");
  await queue.push([{ data: 1 }, { data: 2 }]);
  await assert.rejects(system.drained("drained", "g", { timeoutMillis: 100 }), /did not come true/);
  const consumer = queue.group("g").consume(() => undefined);
  await system.drained("drained", "g");
  assert.deepEqual(await consumer.stop(), { completed: 2, failed: 0 });
});

test("leases run out when a test says so, also for a pop that waits", async () => {
  const queue = system.client().queue<number>("leases").config({ leaseTime: 300 });
  await queue.create();
  await queue.push({ data: 1 });
  assert.equal((await queue.pop()).length, 1);
  const waiting = queue.wait(true).pop();
  await system.expireLeases("leases");
  assert.deepEqual(
    (await waiting).map(({ data }) => data),
    [1],
  );
});

test("time jumps over delays and retry delays", async () => {
  const queen = system.client();
  const queue = queen.queue<number>("delayed").config({ delayedProcessing: 3_600, retryDelay: 3_600_000 });
  await queue.create();
  await queue.push({ data: 1 });
  const waiting = queue.wait(true).pop();
  await system.jump(3_601);
  const [message] = await waiting;
  assert.equal(message?.data, 1);
  await queen.ack(message!, "failed");
  assert.deepEqual(await queue.pop(), []);
  await system.jump(3_601);
  assert.equal((await queue.wait(true).pop()).length, 1);
});

test("connections break on purpose: to the broker, and from it to the database", async () => {
  const queen = system.client({ timeoutMillis: 300, retries: 10 });
  const queue = queen.queue<number>("broken");
  await queue.push({ data: 1 });
  system.toBroker[0]!.hold();
  const held = queue.push({ data: 2 }).then(
    () => "stored",
    () => "timed out",
  );
  assert.equal(await held, "timed out");
  system.toBroker[0]!.restore();
  assert.ok(system.toBroker[0]!.cut() > 0);
  system.toDatabase.cut();
  await until("pushes work again", async () => (await queue.push({ data: 3 }))[0]?.status === "queued");
});
