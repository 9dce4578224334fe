-- lane_groups: what the consumer groups of a lane have finished, and hold under a lease now.
--
-- out  group_id, name
--      finished                      offsets, everything before a group's start among them
--      leased_until, lease_expires_at   of a lease that has not run out; null: none
create or replace function queen.lane_groups(p_partition int8)
returns table (group_id int4, name text, finished int8multirange, leased_until int8, lease_expires_at timestamptz)
language plpgsql stable
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  select g.id, g.name,
         int8multirange(int8range(0, case
           when c.partition_id is not null then c.committed
           when g.subscription_from is null then p.start_offset
           when coalesce(p.last_at < g.subscription_from, true) then p.next_offset
           when p.created_at >= g.subscription_from then p.start_offset
           else queen.offset_at(p.id, g.subscription_from) end)) + coalesce(c.acked, '{}'),
         case when c.lease_expires_at > clock_timestamp() then c.lease_until end,
         case when c.lease_expires_at > clock_timestamp() then c.lease_expires_at end
    from queen.partitions p
    join queen.consumer_groups g on g.queue_id = p.queue_id
    left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
   where p.id = p_partition;
end
$$;
