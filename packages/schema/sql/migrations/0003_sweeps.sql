-- Background sweeps, what they removed, and the option ttl, which acts where it was said.

-- One row per sweep. Who holds its lock does a round of it; where a pass stands is in the row, so that
-- anybody can go on with it.
create table queen.sweeps (
  name        text primary key,
  position    jsonb,                         -- where the pass under way stands; null: none is
  worker      text,                          -- who did the last round
  round_at    timestamptz,                   -- when it ended
  started_at  timestamptz,                   -- of the pass under way, or of the last one
  finished_at timestamptz,                   -- of the last whole pass
  rounds      int4 not null default 0,       -- of the pass under way, or of the last one; the next two, too
  busy_ms     float8 not null default 0,     -- time spent in rounds, without the pauses between them
  done        jsonb not null default '{}',   -- what was done, by kind
  passes      int8 not null default 0,       -- whole passes ever
  total       jsonb not null default '{}'    -- what was ever done, by kind
);

insert into queen.sweeps (name) values ('leases'), ('eviction'), ('retention'), ('partitions'), ('metrics');

-- What sweeps took away from readers, a row per round, queue and kind.
create table queen.retention_history (
  id       int8 generated always as identity primary key,
  queue_id int8 not null references queen.queues on delete cascade,
  at       timestamptz not null default clock_timestamp(),
  kind     text not null,
  messages int8 not null,
  constraint retention_kind_known check (kind in ('retention', 'completed_retention', 'max_wait_time_eviction'))
);

create index retention_history_by_time on queen.retention_history (at);
create index retention_history_by_queue on queen.retention_history (queue_id, at);

-- null: not said, shown as 3600, and nothing expires
alter table queen.queues alter column ttl drop default, alter column ttl drop not null;
update queen.queues set ttl = null where ttl = 3600;

drop function if exists queen.take(
  int4[], int4[], int8[], int4[], int8[], int4[], bool[], int4[], int4[], int4[], int8[], int8[]);
