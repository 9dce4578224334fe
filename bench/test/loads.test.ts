/** Every kind of load moves its messages through a broker: each is sent, comes back once and in order, and is acknowledged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import type { Load } from "../loads/index.ts";
import { runSmallLoad } from "./small-load.ts";

const push = { kind: "push", producers: 4, batch: 10, partitions: 5 } as const;
const drain = { kind: "drain", consumers: 4, batch: 20, partitions: 5, messagesPerPartition: 50 } as const;
const flow = { kind: "flow", producers: 2, pushBatch: 5, consumers: 2, popBatch: 50, partitions: 5 } as const;
const named = { kind: "named-pops", connections: 4, partitions: 4, messagesPerPartition: 20 } as const;
const pipe = { kind: "pipe", workers: 4, partitions: 4, messagesPerPartition: 20 } as const;

const LOADS: Readonly<Record<string, Load>> = {
  "a push, a partition for each request": { ...push, spread: "request" },
  "a push, a partition for each message": { ...push, spread: "message" },
  "a drain with auto-ack": { ...drain, ack: "auto", groups: 0 },
  "a drain with acks of messages": { ...drain, ack: "batch", groups: 0 },
  "a drain with acks of ranges": { ...drain, ack: "range", groups: 0 },
  "a drain by two groups": { ...drain, ack: "batch", groups: 2 },
  "a flow in a closed loop": { ...flow, messagesPerSecond: null },
  "a flow at a fixed rate": { ...flow, messagesPerSecond: 200 },
  "named pops with auto-ack": { ...named, ack: "auto" },
  "named pops with acks": { ...named, ack: "batch" },
  "a pipe by transactions": { ...pipe, by: "transaction" },
  "a pipe by acks and pushes": { ...pipe, by: "ack and push" },
  "a burst": { kind: "burst", partitions: 5, messagesPerPartition: 20, batch: 10 },
  "parked consumers": { kind: "parked", consumers: 20, queues: 4 },
};

for (const [name, load] of Object.entries(LOADS)) {
  test(`${name} is correct`, async () => {
    await runSmallLoad(load, 1, async (databaseUrl, figures) => {
      assert.deepEqual(figures.errors, {});
      assert.equal(figures.verdict?.correct, true, JSON.stringify(figures.verdict));
      assert.ok(figures.verdict.sent > 0);
      const client = new pg.Client({ connectionString: databaseUrl });
      await client.connect();
      try {
        const { rows } = await client.query<{ unfinished: number }>(
          `select count(*)::int4 as unfinished
             from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
            where c.committed < p.next_offset`,
        );
        assert.equal(rows[0]!.unfinished, 0, "partitions with messages that were read and not acknowledged");
      } finally {
        await client.end();
      }
    });
  });
}
