-- open_cursors: makes the groups' cursors on these lanes, where they are missing.
--
-- in   p_partition, p_group   one pair per cursor
-- out  cursor     index of the pair, from 0
--      status     0 there now, 1 no such partition, 2 its queue has no such group
--
-- A new cursor starts where the group's subscription says: at the beginning of what is left, or at the
-- first message stored at or after its start.
create or replace function queen.open_cursors(p_partition int8[], p_group int4[])
returns table (cursor int4, status int2)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  -- A queue that is being deleted is waited for here, with nothing else in hand: its deletion goes on to
  -- partitions and groups in an order of its own.
  perform 1 from queen.queues q
   where q.id in (select p.queue_id from queen.partitions p where p.id = any (p_partition))
   order by q.id
     for key share;

  insert into queen.partition_consumers (partition_id, group_id, committed)
  select p.id, g.id,
         case when g.subscription_from is null then p.start_offset
              else queen.offset_at(p.id, g.subscription_from) end
    from unnest(p_partition, p_group) as c (partition_id, group_id)
    join queen.partitions p on p.id = c.partition_id
    join queen.consumer_groups g on g.id = c.group_id and g.queue_id = p.queue_id + 0   -- not by the index on queue_id
   order by p.id, g.id
      for key share of p, g
  on conflict do nothing;

  return query
  select (c.ordinality - 1)::int4,
         case when exists (select 1 from queen.partition_consumers pc
                            where pc.partition_id = c.partition_id and pc.group_id = c.group_id)
              then 0::int2
              when exists (select 1 from queen.partitions p where p.id = c.partition_id) then 2::int2
              else 1::int2 end
    from unnest(p_partition, p_group) with ordinality as c (partition_id, group_id, ordinality);
end
$$;
