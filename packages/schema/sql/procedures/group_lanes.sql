-- group_lanes: where a consumer group stands in the lanes of a queue, from offsets only.
--
-- in   p_queue, p_group   the ids
-- out  partition_id, name, next_offset, last_at, partition_created_at
--      place       the first offset that is not finished; where the group has no cursor yet, where it will start
--      pending     messages that are not finished
--      finished    offsets below the place, and those finished above it
--      has_cursor, lease_token, lease_expires_at, last_consumed_at
--
-- Reads partitions and cursors. The log is asked only for lanes that the group has not met and whose start
-- lies between two times: some index probes each.
create or replace function queen.group_lanes(p_queue int8, p_group int4)
returns table (partition_id int8, name text, next_offset int8, last_at timestamptz, partition_created_at timestamptz,
               place int8, pending int8, finished int8, has_cursor bool, lease_token int8,
               lease_expires_at timestamptz, last_consumed_at timestamptz)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select p.id, p.name, p.next_offset, p.last_at, p.created_at, l.place,
         p.next_offset - l.place - f.above, l.place + f.above, c.partition_id is not null,
         c.lease_token, c.lease_expires_at, c.last_consumed_at
    from queen.consumer_groups g
    join queen.partitions p on p.queue_id = g.queue_id
    left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
   cross join lateral (
     select least(p.next_offset, greatest(p.start_offset, case
              when c.partition_id is not null then c.committed
              when g.subscription_from is null then p.start_offset
              when coalesce(p.last_at < g.subscription_from, true) then p.next_offset
              when p.created_at >= g.subscription_from then p.start_offset
              else queen.offset_at(p.id, g.subscription_from) end)) as place) l
   cross join lateral (
     select case when c.acked is null then 0
                 else (select coalesce(sum(upper(r) - greatest(lower(r), l.place)), 0)::int8
                         from unnest(c.acked) as r where upper(r) > l.place) end as above) f
   where g.id = p_group and g.queue_id = p_queue;
end;
