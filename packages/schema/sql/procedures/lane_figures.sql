-- lane_figures: how many messages lanes hold and how many of them are unfinished, from offsets only.
--
-- in   p_queue        the lanes of this queue; null: of all
--      p_partitions   only these lanes; null: all
-- out  partition_id, queue_id, name, created_at, last_at, start_offset, next_offset
--      pending      not finished and not under a lease
--      processing   not finished, under a lease that has not run out
--      place        the first offset that is not finished
--      last_consumed_at
--
-- Who counts: queue mode where the queue is read so, otherwise the named group that has most to do in the
-- lane; where nobody reads, everything is pending. A group without a cursor in a lane stands where it will
-- start. The places of deleted messages count until every group is past them. The log is asked only as
-- group_lanes does. The statement is made for what is given, so that it finds its index.
create or replace function queen.lane_figures(p_queue int8, p_partitions int8[])
returns table (partition_id int8, queue_id int8, name text, created_at timestamptz, last_at timestamptz,
               start_offset int8, next_offset int8, pending int8, processing int8, place int8,
               last_consumed_at timestamptz)
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
begin
  -- The largest of [unfinished, processing, place] is the slowest group's.
  return query execute
    'select l.id, l.queue_id, l.name, l.created_at, l.last_at, l.start_offset, l.next_offset,
            l.slowest[1] - l.slowest[2], l.slowest[2], l.slowest[3], l.last_consumed_at
       from (select p.id, p.queue_id, p.name, p.created_at, p.last_at, p.start_offset, p.next_offset,
                    max(array[p.next_offset - f.place - a.above, a.leased, f.place]) as slowest,
                    max(c.last_consumed_at) as last_consumed_at
               from queen.partitions p
               left join (select g.id, g.queue_id, g.subscription_from
                            from queen.consumer_groups g
                           where g.name = ''__QUEUE_MODE__''
                              or not exists (select 1 from queen.consumer_groups m
                                              where m.queue_id = g.queue_id and m.name = ''__QUEUE_MODE__'')
                         ) g on g.queue_id = p.queue_id
               left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
              cross join lateral (
                select least(p.next_offset, greatest(p.start_offset, case
                         when c.partition_id is not null then c.committed
                         when g.subscription_from is null then p.start_offset
                         when coalesce(p.last_at < g.subscription_from, true) then p.next_offset
                         when p.created_at >= g.subscription_from then p.start_offset
                         else queen.offset_at(p.id, g.subscription_from) end)) as place,
                       case when c.lease_expires_at > clock_timestamp()
                            then least(c.lease_until, p.next_offset) else 0 end as leased_until) f
              cross join lateral (
                select case when c.acked is null then 0
                            else (select coalesce(sum(upper(r) - greatest(lower(r), f.place)), 0)::int8
                                    from unnest(c.acked) as r where upper(r) > f.place) end as above,
                       case when f.leased_until <= f.place then 0
                            when c.acked is null then f.leased_until - f.place
                            else f.leased_until - f.place
                                 - (select coalesce(sum(least(upper(r), f.leased_until) - greatest(lower(r), f.place)), 0)::int8
                                      from unnest(c.acked) as r
                                     where upper(r) > f.place and lower(r) < f.leased_until) end as leased) a
              where true'
    || case when p_queue is not null then ' and p.queue_id = $1' else '' end
    || case when p_partitions is not null then ' and p.id = any ($2)' else '' end
    || ' group by p.id) l'
    using p_queue, p_partitions;
end
$$;
