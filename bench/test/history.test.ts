/** A queue with a history is what the growth of retained messages is measured on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { runSmallLoad } from "./small-load.ts";

test("a group that comes after the history gets each new message once, on two brokers", async () => {
  await runSmallLoad({ kind: "sparse", partitions: 20, retained: 3_000 }, 2, async (databaseUrl, figures) => {
    assert.deepEqual(figures.errors, {});
    assert.equal(figures.verdict?.correct, true, JSON.stringify(figures.verdict));
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      const kept = await client.query<{ messages: number }>(
        "select sum(next_offset - start_offset)::int4 as messages from queen.partitions",
      );
      assert.equal(kept.rows[0]!.messages, 3_000 + figures.verdict.sent);
    } finally {
      await client.end();
    }
  });
});
