-- has_pending_messages: whether a pop would find something now. Part of the SQL interface.
--
-- in   p_queue_name
--      p_partition_name   null or empty: any
--      p_consumer_group
-- out  true: a partition has messages that the group has not finished, not all expired, is not leased to it, is not
--      paused, and waits neither for a retry nor for its window buffer
--
-- Reads the partitions and the group's places in them, never the log; so delayedProcessing is not seen. Where
-- nothing is pending, every partition of the queue is looked at. Locks nothing.
create or replace function queen.has_pending_messages(
  p_queue_name text, p_partition_name text default null, p_consumer_group text default '__QUEUE_MODE__')
returns bool
language sql stable security definer
set search_path = queen, pg_temp
as $$
  with reader as materialized (
    select q.id, q.ttl, q.window_buffer, g.id as group_id, g.subscription_from, s.everything, s.lanes
      from queen.queues q
      left join queen.consumer_groups g on g.queue_id = q.id and g.name = p_consumer_group
     cross join lateral queen.sql_pauses(q.id, g.id) s
     where q.name = p_queue_name)
  select exists (
    select 1
      from reader r
      join queen.partitions p on p.queue_id = r.id
      left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = r.group_id
     where not r.everything and p.id <> all (r.lanes)
       and p.name = coalesce(nullif(p_partition_name, ''), p.name)
       and p.next_offset > greatest(coalesce(c.committed, 0), p.start_offset)
       and (c.partition_id is not null or r.subscription_from is null or p.last_at >= r.subscription_from)
       and (c.lease_token is null or c.lease_expires_at <= clock_timestamp())
       and (c.not_before is null or c.not_before <= clock_timestamp())
       and (coalesce(r.ttl, 0) = 0 or p.last_at >= clock_timestamp() - r.ttl * interval '1 second')
       and (r.window_buffer = 0 or p.last_at <= clock_timestamp() - r.window_buffer * interval '1 second'))
$$;

revoke execute on function queen.has_pending_messages(text, text, text) from public;
