/** Lanes: made by many at once, removed while they are pushed to, locked in any order. */
import type { PoppedMessage } from "@queen/test/support/http";
import { until } from "@queen/test/support/moments";
import type { FaultTest } from "../fault-test.ts";

const NEW_LANES = 2_000;

const newLanes: FaultTest = {
  id: "F29",
  title: "2,000 new partitions, the first pushes from three brokers at once",
  async run(run) {
    await run.startBrokers(3);
    const clients = run.brokers.map((_, index) => run.client(index));
    await clients[0]!.configure("q", { leaseTime: 300 });
    run.fault("three brokers push");
    const answers = await Promise.all(
      clients.flatMap((client, broker) =>
        Array.from({ length: 10 }, (_, part) =>
          client.push(
            Array.from({ length: NEW_LANES / 10 }, (_, index) => ({
              queue: "q",
              partition: `p${part * (NEW_LANES / 10) + index}`,
              transactionId: `b${broker}`,
              payload: broker,
            })),
          ),
        ),
      ),
    );
    const queued = answers.flat().filter((result) => result.status === "queued").length;
    run.expect(queued === 3 * NEW_LANES, `${queued} of ${3 * NEW_LANES} pushes were queued`);
    const [lanes] = await run.query(
      "select count(*)::int4 as count, count(distinct name)::int4 as names from queen.partitions where name like 'p%'",
    );
    run.expect(
      lanes!.count === NEW_LANES && lanes!.names === NEW_LANES,
      `there are ${lanes!.count} partitions`,
    );
    const seen = new Set<string>();
    await until(
      "wildcard pops have seen everything",
      async () => {
        const popped = await clients[1]!.pop("q", {
          batch: 10_000,
          partitions: 128,
          wait: true,
          timeout: 1_000,
        });
        for (const { partition, transactionId } of popped.messages) seen.add(`${partition} ${transactionId}`);
        return seen.size === 3 * NEW_LANES;
      },
      60_000,
    );
    run.count({ load: "pushes of 200", pushed: queued, delivered: seen.size });
  },
};

const RACE_LANES = 5;

/** A partition whose messages are all consumed is removed; the push that meets it makes it anew. */
const removedLanes: FaultTest = {
  id: "F32",
  title: "partitions are removed while they are pushed to",
  async run(run) {
    await run.startBrokers(2);
    await run.client().configure("race", { leaseTime: 30 });
    const pushed = new Set<string>();
    const delivered = new Set<string>();
    const endMs = performance.now() + run.seconds * 1_000;
    let isOver = false;
    const produce = async (index: number): Promise<void> => {
      const client = run.client(index % 2);
      for (let n = 0; performance.now() < endMs; n++) {
        const value = `${index}:${n}`;
        const partition = `p${n % RACE_LANES}`;
        const items = [{ queue: "race", partition, transactionId: value, payload: value }];
        const { status, text } = await client.request("POST", "/api/v1/push", { items });
        if (status === 201) pushed.add(value);
        else if (status !== 503) run.problem(`a push was answered ${status} ${text}`);
      }
    };
    const consume = async (index: number): Promise<void> => {
      const client = run.client(index % 2);
      while (!isOver) {
        const popped = await client.pop("race", { batch: 20, partitions: 2, wait: true, timeout: 300 });
        if (popped.messages.length === 0) continue;
        for (const message of popped.messages) delivered.add(message.data as string);
        await client.ackMessages(popped.messages as PoppedMessage[]);
      }
    };
    const remove = async (): Promise<void> => {
      while (performance.now() < endMs) {
        // What the condition says is looked at again under the row's lock: a push in between keeps the row.
        const gone = await run.query(
          `delete from queen.partitions p
            using queen.partition_consumers c
            where c.partition_id = p.id and c.committed = p.next_offset and c.lease_token is null and p.next_offset > 0
            returning p.name`,
        );
        for (const { name } of gone) run.fault(`${name} is removed`);
        await run.pause(5, 50);
      }
    };
    const consumers = [consume(0), consume(1)];
    await Promise.all([produce(0), produce(1), produce(2), remove()]);
    await until("everything was delivered", () => delivered.size >= pushed.size, 60_000).catch(
      () => undefined,
    );
    isOver = true;
    await Promise.all(consumers);
    const lost = [...pushed].filter((value) => !delivered.has(value));
    run.expect(lost.length === 0, `${lost.length} messages are lost, such as ${lost.slice(0, 5).join(", ")}`);
    run.count({ load: "single pushes to 5 lanes", pushed: pushed.size, delivered: delivered.size });
  },
};

const deadlocks: FaultTest = {
  id: "F34",
  title: "pushes to many partitions and transactions, all in random order",
  async run(run) {
    await run.startBrokers(2);
    const count = async (): Promise<number> => {
      const [row] = await run.query(
        "select deadlocks::float8 as count from pg_stat_database where datname = current_database()",
      );
      return row!.count as number;
    };
    const before = await count();
    run.fault("a storm");
    await run.underLoad(
      { producers: 20, pushesPerSecond: 4, itemsPerPush: 12, partitions: 5, consumersPerGroup: 4, pipes: 8 },
      async () => undefined,
    );
    const found = (await count()) - before;
    run.note(`${found} deadlocks`);
    run.expect(found === 0, `PostgreSQL met ${found} deadlocks`);
  },
};

export const LANE_TESTS: readonly FaultTest[] = [newLanes, removedLanes, deadlocks];
