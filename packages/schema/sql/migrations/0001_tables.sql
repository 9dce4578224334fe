-- The log of segments, its readers, and what brokers tell each other through the database.

create table queen.queues (
  id                          int8 generated always as identity primary key,
  name                        text not null unique,
  namespace                   text not null default '',
  task                        text not null default '',
  priority                    int4 not null default 0,
  lease_time                  int4 not null default 300,
  retry_limit                 int4 not null default 3,
  retry_delay                 int4 not null default 1000,
  max_queue_size              int4 not null default 0,
  ttl                         int4 not null default 3600,
  dead_letter_queue           bool,          -- null: not said, exhausted messages are dead-lettered
  dlq_after_max_retries       bool,          -- null: not said
  delayed_processing          int4 not null default 0,
  window_buffer               int4 not null default 0,
  retention_seconds           int4 not null default 0,
  completed_retention_seconds int4 not null default 0,
  retention_enabled           bool not null default false,
  encryption_enabled          bool not null default false,
  max_wait_time_seconds       int4 not null default 0,
  dedup_window_seconds        int4 not null default 3600,
  dedup_messages_min          int4 not null default 1000,
  dedup_messages_max          int4 not null default 100000,
  created_at                  timestamptz not null default clock_timestamp(),
  constraint queue_name_length check (char_length(name) <= 255)
);

-- One row per lane, updated by every append: small rows with room on the page, so that updates stay HOT.
-- No column that an append changes may ever be indexed.
create table queen.partitions (
  id           int8 generated always as identity primary key,
  queue_id     int8 not null references queen.queues on delete cascade,
  name         text not null,
  next_offset  int8 not null default 0,      -- the offset of the next message
  start_offset int8 not null default 0,      -- messages below it are gone from the log
  last_at      timestamptz,                  -- created_at of the newest segment
  created_at   timestamptz not null default clock_timestamp(),
  constraint partition_name_once unique (queue_id, name),
  constraint partition_name_length check (char_length(name) between 1 and 255),
  constraint offsets_in_order check (start_offset <= next_offset)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);

-- Serves scan_ready: the lanes of a queue, page by page.
create index partitions_by_queue on queen.partitions (queue_id, id);

-- The log: what one append wrote to one partition. Append-only. No foreign key to partitions, because its
-- check would lock the partition's row once more per append; a trigger on partitions removes segments.
--   keys   per message the 8 bytes of hashtextextended(transactionId, 0), big-endian
--   ends   per message the 4 bytes of where its fragment ends in body, big-endian
--   body   the fragments back to back: "transactionId":…,"traceId":…,"producerSub":…,"data":<payload>
create table queen.segments (
  partition_id int8 not null,
  first_offset int8 not null,
  count        int4 not null,
  created_at   timestamptz not null,
  keys         bytea not null,
  ends         bytea not null,
  body         bytea not null,
  primary key (partition_id, first_offset)
) with (toast_tuple_target = 8160);

alter table queen.segments alter column keys set storage external;
alter table queen.segments alter column ends set storage external;

do $$
begin
  if (select 'lz4' = any (enumvals) from pg_settings where name = 'default_toast_compression') then
    alter table queen.segments alter column body set compression lz4;
  end if;
end
$$;

create table queen.consumer_groups (
  id                int4 generated always as identity primary key,
  queue_id          int8 not null references queen.queues on delete cascade,
  name              text not null,
  subscription_mode text not null default 'all',
  subscription_from timestamptz,             -- null: from the beginning
  created_at        timestamptz not null default clock_timestamp(),
  constraint group_name_once unique (queue_id, name),
  constraint group_name_length check (char_length(name) between 1 and 255),
  constraint subscription_mode_known check (subscription_mode in ('all', 'new', 'timestamp')),
  constraint mode_and_start_together check ((subscription_mode = 'all') = (subscription_from is null))
);

-- A group's place in a lane. Only the primary key is indexed, so that updates stay HOT.
create table queen.partition_consumers (
  partition_id     int8 not null,
  group_id         int4 not null,
  committed        int8 not null,            -- everything below is finished
  acked            int8multirange,           -- finished above it; null: nothing
  lease_token      int8,                     -- null: nobody holds the lane
  lease_expires_at timestamptz,
  lease_until      int8,                     -- the offset after the last one leased
  not_before       timestamptz,              -- a failed message waits until then
  failures         jsonb,                    -- unfinished messages that failed: {"<offset>": {"n": 2, "history": […]}}
  last_consumed_at timestamptz,
  primary key (partition_id, group_id),
  constraint lease_together check ((lease_token is null) = (lease_expires_at is null)
                               and (lease_token is null) = (lease_until is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);

-- Self-contained copies: a dead letter outlives the log.
create table queen.dead_letters (
  id             int8 generated always as identity primary key,
  queue_id       int8 not null references queen.queues on delete cascade,
  partition_id   int8 not null,
  partition_name text not null,
  group_id       int4 not null,
  consumer_group text not null,
  message_offset int8 not null,
  transaction_id text not null,
  fragment       bytea not null,             -- as in the segment's body
  error_message  text not null,
  retry_count    int4 not null,
  history        jsonb not null default '[]',
  created_at     timestamptz not null,       -- of the message
  failed_at      timestamptz not null default clock_timestamp(),
  constraint dead_letter_once unique (partition_id, group_id, message_offset)
);

create index dead_letters_by_queue on queen.dead_letters (queue_id, id);

-- Says to brokers that missed a notification: these lanes may have work, these queues changed.
-- Written in the transaction that made it true and read by what a snapshot has not seen yet, so that
-- nothing can fall between two looks. Rows are kept for a minute.
create table queen.hints (
  xid           xid8 not null default pg_current_xact_id(),
  at            timestamptz not null default clock_timestamp(),
  queue_ids     int8[],
  partition_ids int8[]
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);

create index hints_by_transaction on queen.hints (xid);

-- When a wildcard pop of the group last found nothing in the queue.
create table queen.consumer_watermarks (
  queue_name         text not null,
  consumer_group     text not null,
  last_empty_scan_at timestamptz not null default clock_timestamp(),
  updated_at         timestamptz not null default clock_timestamp(),
  primary key (queue_name, consumer_group)
);

create table queen.system_state (
  key        text primary key,
  value      jsonb not null,
  updated_at timestamptz not null default clock_timestamp()
);
