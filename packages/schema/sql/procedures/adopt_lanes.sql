-- adopt_lanes: makes the lanes of a queue that are brought over, and says how far each one is.
--
-- in   p_names, p_sources   the lanes' names, and their ids in the other database
--      p_create             whether missing ones are made; otherwise only those that are there come back
-- out  lane          index of the pair, from 0
--      messages      brought over so far; null: the lane is not of this source, or has messages of its own
--      last_us, last_id   where the last of them stands in the other database; null: at the beginning
--      letters       dead letters brought over so far
--      next_offset
create or replace function queen.adopt_lanes(p_queue text, p_names text[], p_sources uuid[], p_create bool)
returns table (lane int4, messages int8, last_us int8, last_id uuid, letters int8, next_offset int8)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
begin
  if p_create then
    perform queen.open_lanes(array_fill(p_queue, array[cardinality(p_names)]), p_names, true);
    insert into queen.adoptions (source_id, partition_id)
    select l.source_id, p.id
      from unnest(p_names, p_sources) as l (name, source_id)
      join queen.queues q on q.name = p_queue
      join queen.partitions p on p.queue_id = q.id and p.name = l.name
     where p.next_offset = 0
     order by l.source_id
    on conflict do nothing;
  end if;
  return query
  select (l.ordinality - 1)::int4, a.messages, (extract(epoch from a.last_at) * 1000000)::int8, a.last_id, a.letters,
         p.next_offset
    from unnest(p_names, p_sources) with ordinality as l (name, source_id, ordinality)
    join queen.queues q on q.name = p_queue
    join queen.partitions p on p.queue_id = q.id and p.name = l.name
    left join queen.adoptions a on a.source_id = l.source_id and a.partition_id = p.id
   order by l.ordinality;
end
$$;
