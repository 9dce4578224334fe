/**
 * A system under test: a database of its own, a broker process on it and a client of that broker. A test
 * file starts one and uses a queue per test, so that tests see nothing of each other.
 */
import { type BrokerProcess, startBrokerProcess } from "./broker.ts";
import { createDatabase, type TestDatabase } from "./database.ts";
import { HttpClient, type PoppedMessage, type PushItem } from "./http.ts";

export { until } from "./moments.ts";

export interface System {
  readonly database: TestDatabase;
  readonly broker: BrokerProcess;
  readonly client: HttpClient;
  /** A second broker on the same database, with a client of its own. */
  another(env?: Record<string, string>): Promise<{ broker: BrokerProcess; client: HttpClient }>;
  stop(): Promise<void>;
}

export async function startSystem(env: Record<string, string> = {}): Promise<System> {
  const database = await createDatabase();
  const started: { broker: BrokerProcess; client: HttpClient }[] = [];
  const start = async (own: Record<string, string>) => {
    const broker = await startBrokerProcess({ databaseUrl: database.url, env: own });
    const one = { broker, client: new HttpClient(broker.url) };
    started.push(one);
    return one;
  };
  try {
    const { broker, client } = await start(env);
    return {
      database,
      broker,
      client,
      another: (own = {}) => start({ ...env, ...own }),
      async stop() {
        for (const each of started) each.client.close();
        await Promise.all(started.map((each) => each.broker.kill("SIGKILL")));
        await database.drop();
      },
    };
  } catch (error) {
    await database.drop();
    throw error;
  }
}

let queues = 0;

/** A queue's name that no other test of the process uses. */
export function newQueue(what = "queue"): string {
  queues++;
  return `${what}-${queues}`;
}

/** So many items for one partition, with the transactionIds t0, t1, … and the payloads 0, 1, … */
export function numbered(queue: string, count: number, partition?: string, from = 0): PushItem[] {
  return Array.from({ length: count }, (_, index) => ({
    queue,
    ...(partition === undefined ? {} : { partition }),
    transactionId: `t${from + index}`,
    payload: from + index,
  }));
}

export const idsOf = (messages: readonly PoppedMessage[]): string[] =>
  messages.map((message) => message.transactionId);

export const dataOf = (messages: readonly PoppedMessage[]): unknown[] =>
  messages.map((message) => message.data);

/** t<from>, …, t<to - 1>. */
export const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `t${from + index}`);

/** Leases end only by the database's clock: this lets every lease on a queue run out now. */
export async function expireLeases(database: TestDatabase, queue: string): Promise<number> {
  const rows = await database.query(
    `update queen.partition_consumers c set lease_expires_at = clock_timestamp() - interval '1 second'
       from queen.partitions p join queen.queues q on q.id = p.queue_id
      where p.id = c.partition_id and q.name = $1 and c.lease_token is not null
      returning 1`,
    [queue],
  );
  return rows.length;
}

/** The places of all groups in a queue's partitions. */
export async function readCursors(database: TestDatabase, queue: string) {
  return database.query(
    `select p.name as partition, g.name as "group", c.committed, c.acked::text, c.lease_token is not null as leased
       from queen.queues q join queen.partitions p on p.queue_id = q.id
       join queen.partition_consumers c on c.partition_id = p.id
       join queen.consumer_groups g on g.id = c.group_id
      where q.name = $1 order by 1, 2`,
    [queue],
  );
}

/** How many messages are stored in a queue. */
export async function countMessages(database: TestDatabase, queue?: string): Promise<number> {
  const [row] = await database.query(
    `select count(*)::int4 as count from queen.messages m
       join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id
      where $1::text is null or q.name = $1`,
    [queue ?? null],
  );
  return row!.count as number;
}
