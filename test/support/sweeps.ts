/** Sweeps as functions of a connection, and what a test wants to know about a lane afterwards. */
import assert from "node:assert/strict";
import type pg from "pg";
import type { Row } from "./database.ts";

export interface SweepOptions {
  readonly worker?: string;
  readonly intervalMs?: number;
  readonly batch?: number;
  readonly keepSeconds?: number;
}

/** One call: at most one round. */
export async function sweep(client: pg.Client, name: string, options: SweepOptions = {}): Promise<Row> {
  const { rows } = await client.query("select * from queen.sweep($1, $2, $3, $4, $5)", [
    name,
    options.worker ?? "tester",
    options.intervalMs ?? 0,
    options.batch ?? 1000,
    options.keepSeconds ?? 0,
  ]);
  return rows[0];
}

/** A whole pass; returns what it did. */
export async function sweepAll(client: pg.Client, name: string, options: SweepOptions = {}): Promise<Row> {
  for (let round = 1; round < 10_000; round++) {
    const row = await sweep(client, name, options);
    if (row.state === "finished") return row.done;
    assert.equal(row.state, "under way");
  }
  throw new Error(`the sweep ${name} never ends`);
}

/** Sets columns of a queue. */
export async function configure(client: pg.Client, queue: string, options: Row): Promise<void> {
  await client.query("select * from queen.configure_queue($1, null, null, $2::jsonb, true)", [
    queue,
    JSON.stringify(options),
  ]);
}

/** The transactionIds that a partition's log holds, in order. */
export async function storedIds(client: pg.Client, partition: number): Promise<string[]> {
  const { rows } = await client.query(
    "select transaction_id from queen.messages where partition_id = $1 order by message_offset",
    [partition],
  );
  return rows.map((row) => row.transaction_id);
}

export async function startOffset(client: pg.Client, partition: number): Promise<number> {
  const { rows } = await client.query("select start_offset from queen.partitions where id = $1", [partition]);
  return rows[0].start_offset;
}

export async function deadLetters(client: pg.Client, partition: number): Promise<Row[]> {
  const { rows } = await client.query(
    `select consumer_group as "group", transaction_id as id, error_message as error, retry_count as retries,
            jsonb_array_length(history) as failures
       from queen.dead_letters where partition_id = $1 order by consumer_group, message_offset`,
    [partition],
  );
  return rows;
}

/** What the history says was removed from a queue, by kind. */
export async function history(client: pg.Client, queueId: number): Promise<Row> {
  const { rows } = await client.query(
    "select kind, sum(messages)::int8 as messages from queen.retention_history where queue_id = $1 group by kind",
    [queueId],
  );
  return Object.fromEntries(rows.map((row) => [row.kind, Number(row.messages)]));
}

/** How often a table was read from end to end in the transaction that is open. */
export async function sequentialScans(client: pg.Client, table: string): Promise<number> {
  const { rows } = await client.query(
    "select seq_scan from pg_stat_xact_user_tables where schemaname = 'queen' and relname = $1",
    [table],
  );
  return Number(rows[0].seq_scan);
}
