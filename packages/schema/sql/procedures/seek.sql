-- seek: moves a consumer group to a point in time, or behind everything there is, in a queue or in one lane.
--
-- in   p_queue, p_group, p_partition   names; p_partition null: all lanes
--      p_at       the first message stored then or later is the next one delivered; null: to the end
-- out  one row: queue_id, group_id, partition_id   null: there is no such queue, group, partition
--      lanes      cursors that were moved
--      moved_to   in one lane: the offset that comes next
--      ready      lanes that have something to deliver now, or whose lease ended
--
-- A lease in the way ends: its token is dead. What was finished above the old place, failures and delays are
-- forgotten. Where the whole queue is moved, the group's subscription follows, so that lanes in which it has
-- no cursor yet start there, too; a cursor of one lane is made if it is missing.
--
-- Locks: the queue's and the group's row (no cursor is opened meanwhile by the old subscription), then the
-- cursors by partition, waiting.
create or replace function queen.seek(p_queue text, p_group text, p_partition text, p_at timestamptz)
returns table (queue_id int8, group_id int4, partition_id int8, lanes int4, moved_to int8, ready int8[])
language plpgsql
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  v_now       timestamptz;
  v_queue     int8;
  v_group     int4;
  v_partition int8;
  v_lanes     int4;
  v_backward  bool;
  v_to        int8;
  v_ready     int8[];
begin
  select q.id into v_queue from queen.queues q where q.name = p_queue for key share;
  select g.id into v_group from queen.consumer_groups g
   where g.queue_id = v_queue and g.name = p_group
     for update;
  if p_partition is not null then
    select p.id into v_partition from queen.partitions p where p.queue_id = v_queue and p.name = p_partition
       for key share;
  end if;
  if v_group is null or (p_partition is not null and v_partition is null) then
    return query select v_queue, v_group, v_partition, 0, null::int8, '{}'::int8[];
    return;
  end if;

  if v_partition is not null then
    insert into queen.partition_consumers (partition_id, group_id, committed)
    values (v_partition, v_group, 0) on conflict do nothing;
  end if;
  perform 1
     from queen.partition_consumers c
     join queen.partitions p on p.id = c.partition_id
    where p.queue_id = v_queue and c.group_id = v_group and (v_partition is null or p.id = v_partition)
    order by c.partition_id
      for no key update of c;

  v_now := clock_timestamp();
  with moved as (
    update queen.partition_consumers c
       set committed = t.target, acked = null, failures = null, not_before = null,
           lease_token = null, lease_expires_at = null, lease_until = null
      from (select p.id, p.next_offset, c.committed as before, c.lease_token is not null as leased,
                   case when p_at is null or coalesce(p.last_at < p_at, true) then p.next_offset
                        else queen.offset_at(p.id, p_at) end as target
              from queen.partitions p
              join queen.partition_consumers c on c.partition_id = p.id and c.group_id = v_group
             where p.queue_id = v_queue and (v_partition is null or p.id = v_partition)) t
     where c.partition_id = t.id and c.group_id = v_group
    returning t.id, t.before, t.target, t.next_offset, t.leased)
  select count(*)::int4, max(m.target), coalesce(bool_or(m.target < m.before), false),
         coalesce(array_agg(m.id order by m.id) filter (where m.target < m.next_offset or m.leased), '{}')
    into v_lanes, v_to, v_backward, v_ready
    from moved m;

  if v_partition is null then
    update queen.consumer_groups g
       set subscription_mode = case when p_at is null then 'new' else 'timestamp' end,
           subscription_from = coalesce(p_at, v_now)
     where g.id = v_group;
  end if;
  if v_backward or p_at is not null then
    delete from queen.consumer_watermarks w where w.queue_name = p_queue and w.consumer_group = p_group;
  end if;
  insert into queen.hints (partition_ids)
  select array_agg(r.id)
    from unnest(v_ready) with ordinality as r (id, place)
   group by (r.place - 1) / 1000;

  return query select v_queue, v_group, v_partition, v_lanes, case when v_partition is not null then v_to end, v_ready;
end
$$;
