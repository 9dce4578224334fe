-- What brokers did, minute by minute, and running totals of it.
--
-- A worker writes the figures of the current minute again every few seconds, as they are by then: writing the
-- same twice changes nothing. `run_id` is drawn when a worker process starts, because host, worker and process id may
-- all be those of the process before it. Old rows are trimmed by `minute`.

create table queen.worker_minutes (
  minute          timestamptz not null,
  run_id          uuid not null,
  hostname        text not null,
  port            int4 not null,
  worker_id       int4 not null,
  pid             int4 not null,
  push_requests   int8 not null default 0,
  push_messages   int8 not null default 0,   -- stored; a duplicate is none
  pop_requests    int8 not null default 0,
  pop_messages    int8 not null default 0,
  pop_empty       int8 not null default 0,
  ack_requests    int8 not null default 0,
  ack_messages    int8 not null default 0,
  ack_success     int8 not null default 0,   -- finished, also at delivery (auto-ack) and by transactions
  ack_failed      int8 not null default 0,   -- reported as failed, or refused
  transactions    int8 not null default 0,
  dead_lettered   int8 not null default 0,
  database_errors int8 not null default 0,
  age_ms_sum      float8 not null default 0, -- of messages at their delivery
  age_count       int8 not null default 0,
  age_ms_max      float8 not null default 0,
  samples         int4 not null default 0,
  gauges          jsonb not null default '{}', -- sampled: {"free_slots": {"sum": 120, "min": 1, "max": 3, "last": 2}, …}
  updated_at      timestamptz not null default clock_timestamp(),
  primary key (minute, run_id)
) with (fillfactor = 70);

create table queen.queue_minutes (
  minute             timestamptz not null,
  queue_id           int8 not null references queen.queues on delete cascade,
  run_id             uuid not null,          -- all zeros: the database itself, which counts deleted partitions
  hostname           text not null,
  worker_id          int4 not null,
  push_requests      int8 not null default 0,
  push_messages      int8 not null default 0,
  pop_requests       int8 not null default 0,
  pop_messages       int8 not null default 0,
  pop_empty          int8 not null default 0,
  ack_requests       int8 not null default 0,
  ack_success        int8 not null default 0,
  ack_failed         int8 not null default 0,
  transactions       int8 not null default 0,
  dead_lettered      int8 not null default 0,
  partitions_deleted int8 not null default 0,
  age_ms_sum         float8 not null default 0,
  age_count          int8 not null default 0,
  age_ms_max         float8 not null default 0,
  parked             int4 not null default 0, -- most consumers that waited at once
  updated_at         timestamptz not null default clock_timestamp(),
  primary key (queue_id, minute, run_id)
) with (fillfactor = 70);

create index queue_minutes_by_time on queen.queue_minutes (minute);

-- Sums of worker_minutes' counters since the beginning, which outlive the minutes.
create table queen.metric_totals (
  name  text primary key,
  value int8 not null
);

-- It says more than yes or no now.
drop function if exists queen.bury_expired(int8, int4, int4);
