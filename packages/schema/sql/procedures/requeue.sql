-- requeue: moves dead letters back to the end of their lanes, each for the group that had given it up.
--
-- in   p_letters   ids of dead letters, any of which may be gone
-- out  one row per letter that was moved: letter_id, queue_id, partition_id, at_offset
--
-- The letter's deletion and the new message are one transaction, and only who deletes the letter appends: a
-- letter is stored once, however often and by how many it is asked for. A partition that is gone is made
-- again; so is a group, starting now.
--
-- Locks, waiting: queues, partitions by id, cursors by (partition, group), letters by id.
create or replace function queen.requeue(p_letters int8[])
returns table (letter_id int8, queue_id int8, partition_id int8, at_offset int8)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_lanes   int8[];
  v_at      int8;
  r         record;
begin
  perform 1 from queen.queues q
   where q.id in (select d.queue_id from queen.dead_letters d where d.id = any (p_letters))
   order by q.id
     for key share;

  perform queen.open_lanes(array_agg(t.queue), array_agg(t.partition_name), true)
     from (select distinct q.name as queue, d.partition_name
             from queen.dead_letters d join queen.queues q on q.id = d.queue_id
            where d.id = any (p_letters)
              and not exists (select 1 from queen.partitions p
                               where p.queue_id = d.queue_id and p.name = d.partition_name)) t
   having count(*) > 0;
  perform queen.open_group(t.queue, t.consumer_group, 'new', null)
     from (select distinct q.name as queue, d.consumer_group
             from queen.dead_letters d join queen.queues q on q.id = d.queue_id
            where d.id = any (p_letters)) t
    where not exists (select 1 from queen.consumer_groups g join queen.queues q on q.id = g.queue_id
                       where q.name = t.queue and g.name = t.consumer_group);

  select array_agg(distinct p.id) into v_lanes
    from queen.dead_letters d
    join queen.partitions p on p.queue_id = d.queue_id and p.name = d.partition_name
   where d.id = any (p_letters);
  perform 1 from queen.partitions p where p.id = any (v_lanes) order by p.id for no key update;
  perform 1 from queen.partition_consumers c
   where c.partition_id = any (v_lanes)
   order by c.partition_id, c.group_id
     for no key update;
  perform 1 from queen.dead_letters d where d.id = any (p_letters) order by d.id for update;

  for r in
    select p.id, p.queue_id, array_agg(d.id order by d.id) as letters, array_agg(d.fragment order by d.id) as fragments,
           array_agg(d.transaction_id order by d.id) as transaction_ids, array_agg(g.id order by d.id) as groups
      from queen.dead_letters d
      join queen.partitions p on p.queue_id = d.queue_id and p.name = d.partition_name
      join queen.consumer_groups g on g.queue_id = d.queue_id and g.name = d.consumer_group
     where d.id = any (p_letters) and p.id = any (v_lanes)
     group by p.id, p.queue_id
     order by p.id
  loop
    v_at := queen.republish(r.id, r.fragments, r.transaction_ids, r.groups);
    delete from queen.dead_letters d where d.id = any (r.letters);
    return query
    select l.id, r.queue_id, r.id, v_at + l.place - 1
      from unnest(r.letters) with ordinality as l (id, place);
  end loop;
end
$$;
