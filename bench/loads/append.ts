/**
 * An append load is the floor of pushes: the bytes that a broker would get, stored in bare PostgreSQL by the driver
 * that the broker has, without a broker. Each sender has a connection and one statement in flight; each statement
 * is a transaction of its own. A table with nothing but a key and the payload takes them
 *
 *   row   as a row for each message
 *   log   as one row for all messages of a statement, which is the least that a log can do
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { LoadContext } from "../load.ts";
import { distribution, type Figures, ratePerSecond } from "../measure.ts";
import { MessageWriter } from "../messages.ts";

export interface AppendLoad {
  readonly kind: "append";
  readonly senders: number;
  readonly batch: number;
  readonly by: "row" | "log";
}

const TABLE = "create table floor (id int8 generated always as identity primary key, count int4, body bytea)";
const STATEMENTS = {
  row: {
    name: "row",
    text: "insert into floor (count, body) select 1, convert_to(m, 'UTF8') from unnest($1::text[]) as m",
  },
  log: { name: "log", text: "insert into floor (count, body) values ($2, $1)" },
};
const FOUND =
  "select coalesce(sum(count), 0)::int8 as messages, coalesce(sum(length(body)), 0)::int8 as bytes from floor";

export async function runAppend(load: AppendLoad, context: LoadContext): Promise<Figures> {
  const { accountant, timing, enterPhase } = context;
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: context.databaseUrl! });
    await client.connect();
    return client;
  };
  const clients = await Promise.all(Array.from({ length: load.senders }, connect));
  await clients[0]!.query(TABLE);

  const writer = new MessageWriter("plain");
  const latencies: number[] = [];
  let isMeasuring = false;
  let isOver = false;
  let messages = 0;
  let stored = 0;
  let bytes = 0;
  const append = async (client: pg.Client, sender: number): Promise<void> => {
    while (!isOver) {
      const sentAtMs = performance.now();
      const items = Array.from({ length: load.batch }, (_, index) =>
        writer.item("bench", sender, sender, stored + index, sentAtMs),
      );
      const values = load.by === "row" ? [items] : [Buffer.from(items.join("")), load.batch];
      await client.query({ ...STATEMENTS[load.by], values });
      stored += load.batch;
      for (const item of items) bytes += item.length;
      if (!isMeasuring) continue;
      messages += load.batch;
      latencies.push(performance.now() - sentAtMs);
    }
  };

  try {
    enterPhase("warming up");
    const appending = Promise.all(clients.map(append));
    await sleep(timing.warmupSeconds * 1000);
    const opening = await accountant.open();
    enterPhase("measuring");
    isMeasuring = true;
    await sleep(timing.seconds * 1000);
    const closing = accountant.read();
    isMeasuring = false;
    isOver = true;
    const cost = await accountant.cost(opening, closing, messages);
    await appending;
    enterPhase("checking");
    const found = (await clients[0]!.query<{ messages: string; bytes: string }>(FOUND)).rows[0]!;
    if (Number(found.messages) !== stored || Number(found.bytes) !== bytes) {
      throw new Error(
        `${stored} messages, ${bytes} bytes were stored; ${found.messages}, ${found.bytes} are there`,
      );
    }
    return {
      messages,
      perSecond: ratePerSecond(messages, closing.atMs - opening.atMs),
      latencyMs: distribution(latencies),
      cost,
      verdict: null,
      extra: {},
      errors: {},
    };
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
  }
}
