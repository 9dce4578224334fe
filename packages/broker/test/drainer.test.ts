import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokerError } from "@queen/protocol";
import type { Directory } from "../src/lanes/directory.ts";
import type { Lane, MessageOwner } from "../src/lanes/lane.ts";
import type { PushItem } from "../src/operations/push-body.ts";
import type { Session } from "../src/postgres/session.ts";
import type { Pusher } from "../src/pushing/pusher.ts";
import { Drainer } from "../src/spooling/drainer.ts";
import type { SpoolRecord } from "../src/spooling/record.ts";

let sequence = 0;
const record = (partition: string, id: string, isSealed = false): SpoolRecord => ({
  queue: "q",
  partition,
  doubt: undefined,
  content: Buffer.from(
    `${isSealed ? "sealed " : ""}"transactionId":"${id}","traceId":null,"producerSub":null,"data":1`,
  ),
  sequence: sequence++,
  spooledAtMs: 0,
});

/** A drainer without the key of sealed records, and what it pushed. */
function drainer(rows: readonly object[] = []): {
  drain: Drainer["drain"];
  pushed: string[];
  calls: (readonly unknown[])[];
} {
  const pushed: string[] = [];
  const calls: (readonly unknown[])[] = [];
  const run = async (_: unknown, values: readonly unknown[]): Promise<unknown> => {
    calls.push(values);
    return rows;
  };
  const pusher = {
    add(owner: MessageOwner, index: number, item: PushItem) {
      pushed.push(`${item.partition} ${item.transactionId}`);
      owner.queued(index, {} as Lane, 0);
    },
  } as unknown as Pusher;
  const lanes = new Map<string, Lane>();
  const directory = {
    lane: (_queue: string, partition: string) => {
      if (!lanes.has(partition)) lanes.set(partition, { id: lanes.size } as Lane);
      return lanes.get(partition);
    },
  } as unknown as Directory;
  const made = new Drainer({
    directory,
    pusher,
    seal: {
      seal: (fragment) => Buffer.from(fragment),
      open: (content) => {
        const text = content.toString("latin1");
        if (text.startsWith("sealed")) throw new BrokerError("ENCRYPTION_KEY_MISSING", "no key");
        return text;
      },
    },
    use: (work) => work({ run } as unknown as Session),
    now: () => 0,
    clock: () => 0,
  });
  return { drain: (records) => made.drain(records), pushed, calls };
}

test("a message whose key is missing waits, and so do those behind it in its lane; other lanes go on", async () => {
  const { drain, pushed } = drainer();
  const { results, isAway } = await drain([
    record("a", "a0"),
    record("a", "a1", true),
    record("b", "b0"),
    record("a", "a2"),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["stored", "later", "stored", "later"],
  );
  assert.deepEqual(pushed, ["a a0", "b b0"]);
  assert.equal(isAway, false);
});

test("what is no message is set aside and holds nobody up", async () => {
  const { drain, pushed } = drainer();
  const { results } = await drain([
    { ...record("a", "x"), content: Buffer.from("nonsense") },
    record("a", "a0"),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "stored"],
  );
  assert.deepEqual(pushed, ["a a0"]);
});

test("a lane's keys are read once: the next batch asks only for what was added", async () => {
  const key = String.fromCharCode(1, 2, 3, 4, 5, 6, 7, 8);
  const { drain, calls } = drainer([{ lane: 0, fromOffset: 0, nextOffset: 7, keys: key }]);
  await drain([record("a", "a0")]);
  await drain([record("a", "a1")]);
  await drain([{ ...record("a", "a2"), spooledAtMs: -1 }]); // it waits for longer: more counts for it
  assert.deepEqual(
    calls.map(([, , , known]) => known),
    [[0], [7], [0]],
  );
});
