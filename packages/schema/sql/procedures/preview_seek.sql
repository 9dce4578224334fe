-- preview_seek: what a seek would do; see seek. Changes nothing.
--
-- in   as seek
-- out  one row: queue_id, group_id, partition_id   null: there is no such queue, group, partition
--      lanes         lanes in which the group would stand elsewhere
--      again         messages that it has finished and would get again
--      skipped       messages that it has not finished and would not get
--      leased        lanes whose lease would end
--
-- Counts come from offsets; places of deleted messages count. The log is probed for each lane's place at that time.
create or replace function queen.preview_seek(p_queue text, p_group text, p_partition text, p_at timestamptz)
returns table (queue_id int8, group_id int4, partition_id int8, lanes int8, again int8, skipped int8, leased int8)
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  v_queue     int8;
  v_group     int4;
  v_partition int8;
begin
  select q.id into v_queue from queen.queues q where q.name = p_queue;
  select g.id into v_group from queen.consumer_groups g where g.queue_id = v_queue and g.name = p_group;
  select p.id into v_partition from queen.partitions p where p.queue_id = v_queue and p.name = p_partition;

  return query
  select v_queue, v_group, v_partition,
         count(*) filter (where t.target <> l.place or t.above > 0),
         coalesce(sum(greatest(0, l.place - t.target) + t.above), 0)::int8,
         coalesce(sum(greatest(0, t.target - l.place) - t.below), 0)::int8,
         count(*) filter (where l.lease_expires_at > clock_timestamp())
    from queen.group_lanes(v_queue, v_group) l
    join queen.partitions p on p.id = l.partition_id
    left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = v_group
   cross join lateral (
     select greatest(p.start_offset, case when p_at is null or coalesce(p.last_at < p_at, true) then p.next_offset
                                          else queen.offset_at(p.id, p_at) end) as target) s
   -- of what is finished above the place: what lies behind the target, and what lies before it
   cross join lateral (
     select s.target,
            coalesce(sum(greatest(0, upper(r) - greatest(lower(r), s.target, l.place))), 0)::int8 as above,
            coalesce(sum(greatest(0, least(upper(r), s.target) - greatest(lower(r), l.place))), 0)::int8 as below
       from unnest(c.acked) as r) t
   where v_partition is null or p.id = v_partition;
end
$$;
