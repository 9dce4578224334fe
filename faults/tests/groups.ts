/** Groups that come, go and move; a slow one and retention; a message that kills its consumers. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseMessageId } from "@queen/protocol";
import { until } from "@queen/test/support/moments";
import type { FaultTest } from "../fault-test.ts";
import { QUEUE } from "../load/shape.ts";

const movingGroup: FaultTest = {
  id: "F30",
  title: "a group is made, moved and deleted while others consume",
  async run(run) {
    await run.startBrokers(2);
    await run.underLoad({}, async () => {
      for (let turn = 0; run.hasTime(2_000); turn++) {
        const client = run.client(turn % 2);
        const group = `visitor${turn}`;
        run.fault("a group comes, moves and goes");
        const first = await client.pop(QUEUE, {
          consumerGroup: group,
          batch: 50,
          partitions: 5,
          wait: true,
          timeout: 5_000,
        });
        run.expect(first.messages.length > 0, "a new group got nothing of the log");
        run.expect(
          first.messages.some((message) => parseMessageId(message.id)!.offset === 0),
          "a new group did not begin at the beginning",
        );
        const ends = await run.query(
          `select p.name, p.next_offset::float8 as next from queen.partitions p
             join queen.queues q on q.id = p.queue_id where q.name = $1`,
          [QUEUE],
        );
        const path = `/api/v1/consumer-groups/${group}`;
        const sought = await client.request("POST", `${path}/queues/${QUEUE}/seek`, { toEnd: true });
        run.expect(sought.status === 200, `the seek was answered ${sought.status} ${sought.text}`);
        const stale = await client.ackMessages(first.messages);
        run.expect(
          stale.every((result) => !result.success || result.leaseReleased === false),
          "an ack with a lease from before the seek ended a lease",
        );
        const other = run.client((turn + 1) % 2);
        const next = await other.pop(QUEUE, {
          consumerGroup: group,
          batch: 50,
          partitions: 5,
          wait: true,
          timeout: 10_000,
        });
        for (const message of next.messages) {
          const end = ends.find((row) => row.name === message.partition)?.next ?? 0;
          const { offset } = parseMessageId(message.id)!;
          run.expect(
            offset >= Number(end),
            `after the seek ${message.partition}@${offset} came, below ${end}`,
          );
        }
        const deleted = await client.request("DELETE", path);
        run.expect(deleted.status === 200, `the deletion was answered ${deleted.status} ${deleted.text}`);
        await run.pause(200, 800);
      }
    });
  },
};

const slowGroup: FaultTest = {
  id: "F31",
  title: "retention of a second, and a group that is slow",
  async run(run) {
    await run.startBrokers(1, { env: { RETENTION_INTERVAL: "1000" } });
    const client = run.client();
    await client.configure("q", { leaseTime: 300, retentionEnabled: true, completedRetentionSeconds: 1 });
    const values = Array.from({ length: 2_000 }, (_, n) => `v${n}`);
    for (let from = 0; from < values.length; from += 100)
      await client.push(
        values
          .slice(from, from + 100)
          .map((value, n) => ({ queue: "q", partition: `p${n % 5}`, payload: value })),
      );
    const consume = async (group: string, atMost = Infinity): Promise<string[]> => {
      const got: string[] = [];
      while (got.length < atMost) {
        const popped = await client.pop("q", {
          consumerGroup: group,
          batch: 100,
          partitions: 5,
          wait: true,
          timeout: 1_000,
        });
        if (popped.messages.length === 0) return got;
        got.push(...popped.messages.map((message) => message.data as string));
        await client.ackMessages(popped.messages);
      }
      return got;
    };
    const begun = await consume("slow", 100);
    const fast = await consume("fast");
    run.fault("one group is slow");
    await sleep(Math.min(30_000, Math.max(5_000, run.seconds * 500)));
    const slow = [...begun, ...(await consume("slow"))];
    run.expect(
      new Set(fast).size === values.length,
      `the fast group got ${new Set(fast).size} of ${values.length}`,
    );
    run.expect(
      new Set(slow).size === values.length,
      `the slow group got ${new Set(slow).size} of ${values.length}`,
    );
    await until("what all groups have finished is removed", async () => {
      const [row] = await run.query(
        "select coalesce(sum(next_offset - start_offset), 0)::float8 as left from queen.partitions",
      );
      return Number(row!.left) < values.length;
    });
    run.count({ load: "pushes of 100", pushed: values.length, delivered: fast.length + slow.length });
  },
};

/** `retentionSeconds` removes whatever is older, consumed or not: that much and no more, and it is counted. */
const agedOut: FaultTest = {
  id: "F31b",
  title: "retention by age alone, and a group that is slow",
  async run(run) {
    await run.startBrokers(1, { env: { RETENTION_INTERVAL: "1000" } });
    const client = run.client();
    const push = async (from: number, count: number): Promise<void> => {
      const items = Array.from({ length: count }, (_, n) => ({ queue: "q", payload: from + n }));
      await client.push(items);
    };
    await client.configure("q", { leaseTime: 300 });
    await push(0, 300);
    const { messages: first } = await client.pop("q", { consumerGroup: "slow", batch: 100 });
    await client.ackMessages(first);
    await sleep(3_000);
    run.fault("everything older than two seconds goes");
    await client.configure("q", { leaseTime: 300, retentionEnabled: true, retentionSeconds: 2 });
    await until("the old messages are gone", async () => {
      const [row] = await run.query("select start_offset::float8 as start from queen.partitions");
      return row!.start === 300;
    });
    await client.configure("q", { leaseTime: 300 });
    await push(300, 50);
    const { messages: rest } = await client.pop("q", { consumerGroup: "slow", batch: 1_000 });
    const got = rest.map((message) => message.data as number);
    run.expect(
      got.length === 50 && got.every((value, index) => value === 300 + index),
      `the slow group got ${got.length} messages from ${got[0]} to ${got.at(-1)}, of 300 to 349`,
    );
    const [counted] = await run.query(
      "select coalesce(sum(messages), 0)::float8 as messages from queen.retention_history where kind = 'retention'",
    );
    run.expect(counted!.messages === 300, `${counted!.messages} removed messages are counted, of 300`);
    run.note(`${300 - first.length} messages were removed before the slow group had them, as configured`);
    run.count({ load: "pushes of 50 to 300", pushed: 350, delivered: first.length + rest.length });
  },
};

const crashLoop: FaultTest = {
  id: "F33",
  title: "a message kills every consumer that gets it",
  async run(run) {
    await run.startBrokers(1);
    const client = run.client();
    await client.configure("q", { leaseTime: 1, retryLimit: 3, retryDelay: 0 });
    const items = (partition: string) =>
      Array.from({ length: 10 }, (_, n) => ({ queue: "q", partition, transactionId: `t${n}`, payload: n }));
    await client.push([...items("bad"), ...items("good")]);
    const sizes: number[] = [];
    let dead: Record<string, unknown>[] = [];
    // Its consumer dies each time: the lease runs out.
    while (dead.length === 0 && sizes.length < 20) {
      run.fault("a consumer dies");
      const popped = await client.pop("q", { partition: "bad", batch: 10, wait: true, timeout: 10_000 });
      if (popped.messages[0]?.data !== 0) break;
      sizes.push(popped.messages.length);
      if (sizes.length === 1) {
        const good = await client.pop("q", { partition: "good", batch: 10 });
        run.expect(good.messages.length === 10, `another partition gave ${good.messages.length} of 10`);
        await client.ackMessages(good.messages);
      }
      await sleep(1_100);
      dead = await run.query("select transaction_id, error_message from queen.dead_letters");
    }
    const rest = await client.pop("q", { partition: "bad", batch: 10, wait: true, timeout: 10_000 });
    dead = await run.query("select transaction_id, error_message from queen.dead_letters");
    run.note(`it was delivered with ${sizes.join(", ")} messages`);
    run.expect(sizes.at(-1) === 1, `it was not delivered alone at last: ${sizes.join(", ")}`);
    run.expect(
      dead.length === 1 && dead[0]!.transaction_id === "t0",
      `dead letters: ${JSON.stringify(dead)}`,
    );
    run.expect(dead[0]?.error_message === "lease expired", `its letter says ${dead[0]?.error_message}`);
    run.expect(
      JSON.stringify(rest.messages.map((message) => message.data)) === "[1,2,3,4,5,6,7,8,9]",
      `behind it came ${JSON.stringify(rest.messages.map((message) => message.data))}`,
    );
    run.count({ load: "20 messages", pushed: 20, delivered: 20 });
  },
};

export const GROUP_TESTS: readonly FaultTest[] = [movingGroup, slowGroup, agedOut, crashLoop];
