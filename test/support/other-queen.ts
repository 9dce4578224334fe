/** The database of another Queen, 0.15 or 0.16, as far as it matters to who brings it over. */
import { randomUUID } from "node:crypto";
import { createDatabase, type TestDatabase } from "./database.ts";

const TABLES = `
  create schema queen;
  create table queen.queues (
    id uuid primary key default gen_random_uuid(), name varchar(255) unique not null, namespace varchar(255),
    task varchar(255), priority int default 0, lease_time int default 300, retry_limit int default 3,
    retry_delay int default 1000, ttl int default 3600, dead_letter_queue bool default false,
    dlq_after_max_retries bool default false, delayed_processing int default 0, window_buffer int default 0,
    retention_seconds int default 0, completed_retention_seconds int default 0, retention_enabled bool default false,
    encryption_enabled bool default false, max_wait_time_seconds int default 0, max_queue_size int default 0,
    created_at timestamptz default now());
  create table queen.partitions (
    id uuid primary key default gen_random_uuid(), queue_id uuid references queen.queues on delete cascade,
    name varchar(255) not null default 'Default', created_at timestamptz default now(),
    last_activity timestamptz default now(), unique (queue_id, name));
  create table queen.messages (
    id uuid primary key, transaction_id varchar(255) not null, trace_id uuid,
    partition_id uuid references queen.partitions on delete cascade, payload jsonb not null,
    created_at timestamptz default now(), is_encrypted bool default false, producer_sub text,
    unique (partition_id, transaction_id));
  create index on queen.messages (partition_id, created_at, id);
  create table queen.partition_consumers (
    id uuid primary key default gen_random_uuid(), partition_id uuid references queen.partitions on delete cascade,
    consumer_group varchar(255) not null default '__QUEUE_MODE__',
    last_consumed_id uuid default '00000000-0000-0000-0000-000000000000', last_consumed_created_at timestamptz,
    total_messages_consumed bigint default 0, total_batches_consumed bigint default 0, last_consumed_at timestamptz,
    lease_expires_at timestamptz, lease_acquired_at timestamptz, message_batch jsonb, batch_size int default 0,
    acked_count int default 0, worker_id varchar(255), pending_estimate bigint default 0,
    last_stats_update timestamptz, batch_retry_count int default 0, created_at timestamptz default now(),
    unique (partition_id, consumer_group),
    check ((last_consumed_id = '00000000-0000-0000-0000-000000000000') = (last_consumed_created_at is null)));
  create table queen.consumer_groups_metadata (
    id uuid primary key default gen_random_uuid(), consumer_group text not null, queue_name text not null default '',
    partition_name text not null default '', namespace text not null default '', task text not null default '',
    subscription_mode text not null, subscription_timestamp timestamptz not null,
    created_at timestamptz default now(),
    unique (consumer_group, queue_name, partition_name, namespace, task));
  create table queen.dead_letter_queue (
    id uuid primary key default gen_random_uuid(), message_id uuid references queen.messages on delete cascade,
    partition_id uuid references queen.partitions on delete cascade, consumer_group varchar(255),
    error_message text, retry_count int default 0, original_created_at timestamptz,
    failed_at timestamptz default now());
`;

export interface OtherMessage {
  readonly transactionId: string;
  readonly payload?: unknown;
  /** Seconds ago; messages of one push have the same time. */
  readonly age: number;
  readonly traceId?: string;
  readonly producerSub?: string;
  readonly isEncrypted?: boolean;
}

/** What the tests do with it: as its broker would. */
export class OtherQueen {
  readonly database: TestDatabase;
  /** Times are counted back from here, so that equal ages are equal times. */
  readonly now = new Date();
  #ids = 0;

  static async create(): Promise<OtherQueen> {
    const database = await createDatabase({ empty: true });
    await database.query(TABLES);
    return new OtherQueen(database);
  }

  private constructor(database: TestDatabase) {
    this.database = database;
  }

  async queue(name: string, options: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const columns = { name, namespace: "", task: "", ...options };
    const names = Object.keys(columns);
    await this.database.query(
      `insert into queen.queues (${names.join(", ")}) values (${names.map((_, index) => `$${index + 1}`).join(", ")})`,
      Object.values(columns),
    );
  }

  async push(queue: string, partition: string, messages: readonly OtherMessage[]): Promise<void> {
    const [lane] = await this.database.query(
      `insert into queen.partitions (queue_id, name) select id, $2 from queen.queues where name = $1
       on conflict (queue_id, name) do update set last_activity = now() returning id`,
      [queue, partition],
    );
    await this.database.query(
      `insert into queen.messages (id, transaction_id, trace_id, partition_id, payload, created_at, is_encrypted, producer_sub)
       select m.id, m.transaction_id, m.trace_id, $1, coalesce(m.payload, 'null'),
              $3::timestamptz - m.age * interval '1 second', m.is_encrypted, m.producer_sub
         from jsonb_to_recordset($2) as m (id uuid, transaction_id text, trace_id uuid, payload jsonb, age float8,
                                           is_encrypted bool, producer_sub text)`,
      [
        lane!.id,
        JSON.stringify(
          messages.map((message) => ({
            id: this.#nextId(),
            transaction_id: message.transactionId,
            trace_id: message.traceId ?? null,
            payload: message.payload ?? null,
            age: message.age,
            is_encrypted: message.isEncrypted ?? false,
            producer_sub: message.producerSub ?? null,
          })),
        ),
        this.now,
      ],
    );
  }

  /** The group has finished everything up to and with the message; without one it stands at the start. */
  async consumed(queue: string, partition: string, group: string, transactionId?: string): Promise<void> {
    await this.database.query(
      `insert into queen.partition_consumers (partition_id, consumer_group, last_consumed_id, last_consumed_created_at)
       select p.id, $3, coalesce(m.id, '00000000-0000-0000-0000-000000000000'), m.created_at
         from queen.partitions p
         join queen.queues q on q.id = p.queue_id
         left join queen.messages m on m.partition_id = p.id and m.transaction_id = $4
        where q.name = $1 and p.name = $2
       on conflict (partition_id, consumer_group) do update
          set last_consumed_id = excluded.last_consumed_id,
              last_consumed_created_at = excluded.last_consumed_created_at`,
      [queue, partition, group, transactionId ?? null],
    );
  }

  async subscribed(group: string, queue: string, mode: string, age: number, partition = ""): Promise<void> {
    await this.database.query(
      `insert into queen.consumer_groups_metadata
         (consumer_group, queue_name, partition_name, subscription_mode, subscription_timestamp)
       values ($1, $2, $3, $4, $5::timestamptz - $6 * interval '1 second')`,
      [group, queue, partition, mode, this.now, age],
    );
  }

  async buried(
    queue: string,
    partition: string,
    group: string,
    transactionId: string,
    error: string,
  ): Promise<void> {
    await this.database.query(
      `insert into queen.dead_letter_queue (message_id, partition_id, consumer_group, error_message, retry_count,
                                            original_created_at, failed_at)
       select m.id, p.id, $3, $5, 3, m.created_at, clock_timestamp()
         from queen.messages m
         join queen.partitions p on p.id = m.partition_id
         join queen.queues q on q.id = p.queue_id
        where q.name = $1 and p.name = $2 and m.transaction_id = $4`,
      [queue, partition, group, transactionId, error],
    );
  }

  /** Everything in it, to see whether it was changed. */
  async contents(): Promise<string> {
    const [row] = await this.database.query(
      `select md5(string_agg(t.text, ',' order by t.text)) as digest from (
         select q::text as text from queen.queues q union all select p::text from queen.partitions p
         union all select m::text from queen.messages m union all select c::text from queen.partition_consumers c
         union all select g::text from queen.consumer_groups_metadata g
         union all select d::text from queen.dead_letter_queue d) t`,
    );
    return row!.digest as string;
  }

  /** In the order of their making, as a UUIDv7 is. */
  #nextId(): string {
    this.#ids += 1;
    return `${this.#ids
      .toString(16)
      .padStart(12, "0")
      .replace(/^(.{8})(.{4})$/, "$1-$2")}-7000-8000-${randomUUID().slice(-12)}`;
  }
}
