-- What operators stop and start again, and what they are told about leases.

-- Pops of what is paused deliver nothing. A row stops a queue, one of its lanes, one of its groups, or one group
-- on one lane. No foreign key to partitions, as with the log: a trigger on partitions removes their pauses.
create table queen.pauses (
  id           int8 generated always as identity primary key,
  queue_id     int8 not null references queen.queues on delete cascade,
  partition_id int8,                         -- null: all lanes
  group_id     int4 references queen.consumer_groups on delete cascade, -- null: all groups
  reason       text,
  paused_by    text not null default current_user,
  paused_at    timestamptz not null default clock_timestamp(),
  constraint pause_once unique nulls not distinct (queue_id, partition_id, group_id)
);

create index pauses_by_partition on queen.pauses (partition_id) where partition_id is not null;
create index pauses_by_group on queen.pauses (group_id) where group_id is not null;

-- A mode of maintenance in queen.system_state was switched.
alter table queen.hints add column state_changed bool;

-- Since when the lease is held; it means something only while there is a lease.
alter table queen.partition_consumers add column lease_acquired_at timestamptz;
