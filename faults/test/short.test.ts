/** Of the fault programme what fits into every test run: the load without faults, and a broker that is killed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDatabase } from "@queen/test/support/database";
import { FaultRun } from "../fault-run.ts";
import { type FaultTest, runTest } from "../fault-test.ts";
import type { LoadShape } from "../load/shape.ts";
import type { Outcome } from "../outcome.ts";
import { calm, killOne } from "../tests/brokers.ts";

const SEED = Number(process.env.QUEEN_TEST_SEED ?? Math.floor(Math.random() * 1_000_000));

// Nobody lets a lease run out, so that nothing has to be waited for at the end but leases of killed brokers.
const LOAD = { leaseSeconds: 3, abandonedShare: 0, lateShare: 0 };

async function short(faultTest: FaultTest, load: Partial<LoadShape> = {}): Promise<Outcome> {
  const database = await createDatabase();
  const { id } = faultTest;
  const run = new FaultRun({
    id,
    seed: SEED,
    seconds: 2,
    tell: () => undefined,
    databaseUrl: database.url,
    load,
  });
  try {
    await runTest(faultTest, run);
  } finally {
    await database.drop();
  }
  const { outcome } = run;
  assert.deepEqual(outcome.problems, [], `seed ${SEED}: ${outcome.notes.join("; ")}`);
  return outcome;
}

test("without faults nothing is lost, reordered, delivered twice or refused", async () => {
  const { pushed, delivered, lost, duplicated, reordered } = await short(calm);
  assert.ok(pushed >= 100 && delivered >= pushed, `${pushed} pushed, ${delivered} delivered`);
  assert.deepEqual({ lost, duplicated, reordered }, { lost: 0, duplicated: 0, reordered: 0 });
});

test("a broker that is killed under load and started again lost nothing", async () => {
  const { faults, lost, reordered } = await short(killOne, LOAD);
  assert.ok(faults >= 1);
  assert.deepEqual({ lost, reordered }, { lost: 0, reordered: 0 });
});
