-- How far consumer groups were behind, at most once a minute.
--
-- While a group has nothing to do, there is a row an hour: what is missing after a 0 is 0.

create table queen.group_minutes (
  group_id int4 not null references queen.consumer_groups on delete cascade,
  minute   timestamptz not null,
  pending  int8 not null,                    -- messages that it has not finished
  age_ms   int8 not null,                    -- of the oldest of them
  primary key (group_id, minute)
);

create index group_minutes_by_time on queen.group_minutes (minute);

insert into queen.sweeps (name) values ('lag');
