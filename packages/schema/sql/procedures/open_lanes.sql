-- open_lanes: finds the partitions with these names, and makes the missing ones where asked to.
--
-- in   p_queues, p_partitions   names, one pair per lane
--      p_create                 whether missing queues and partitions are made
--      p_groups                 groups of these queues that wait for messages: what is made gets their cursors
-- out  lane          index of the pair, from 0
--      queue_id      null: there is no such queue
--      partition_id  null: there is no such partition
--      next_offset
--      is_new        it was made by this call
--
-- Locks: the queues that get lanes, by id; unique keys of new rows, in name order, so that two brokers that make
-- the same lanes wait for each other and never in a circle; groups (key share), never waiting. A lane deleted meanwhile
-- comes back as missing; the caller asks again.
--
-- Names are looked up one by one, each by its own probe of the index: a join would be planned for the size that the table
-- had when somebody last counted, and it may grow by thousands of rows a second.
create or replace function queen.open_lanes(
  p_queues text[], p_partitions text[], p_create bool, p_groups int4[] default '{}')
returns table (lane int4, queue_id int8, partition_id int8, next_offset int8, is_new bool)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
begin
  if p_create then
    insert into queen.queues (name, namespace, task)
    select n.name, split_part(n.name, '.', 1), split_part(n.name, '.', 2)
      from (select distinct name from unnest(p_queues) as name) n
     where not exists (select 1 from queen.queues q where q.name = n.name)
     order by n.name
    on conflict do nothing;

    -- First the lock, then the look: a queue that is being deleted is waited for, and its lanes come back as
    -- missing; one that is being configured is waited for, and its lanes are made as it then wants them.
    perform 1
       from queen.queues q
      where q.id in (select w.id
                       from unnest(p_queues, p_partitions) as l (queue_name, name)
                       join queen.queues w on w.name = l.queue_name
                      where (select p.id from queen.partitions p where p.queue_id = w.id and p.name = l.name) is null)
      order by q.id
        for share;
    if found then
      with made as (
        insert into queen.partitions (queue_id, name, encryption_required)
        select q.id, n.name, q.encryption_enabled
          from (select distinct l.queue_name, l.name
                  from unnest(p_queues, p_partitions) as l (queue_name, name)) n
          join queen.queues q on q.name = n.queue_name
         where (select p.id from queen.partitions p where p.queue_id = q.id and p.name = n.name) is null
         order by q.id, n.name
        on conflict do nothing
        returning id, queue_id)
      insert into queen.partition_consumers (partition_id, group_id, committed)
      select m.id, g.id, 0
        from made m
        join queen.consumer_groups g on g.queue_id = m.queue_id and g.id + 0 = any (p_groups)   -- by the index on queue_id
         for key share of g skip locked;
    end if;
  end if;

  return query
  select (l.ordinality - 1)::int4, q.id, p.id, p.next_offset,
         coalesce(p.xmin = pg_current_xact_id_if_assigned()::xid, false)
    from unnest(p_queues, p_partitions) with ordinality as l (queue_name, partition_name, ordinality)
    left join queen.queues q on q.name = l.queue_name
    left join lateral (
      select p.id, p.next_offset, p.xmin from queen.partitions p
       where p.queue_id = q.id and p.name = l.partition_name limit 1) p on true;
end
$$;
