-- sql_find_messages: where messages with these transactionIds are. Part of the SQL interface's inside.
--
-- in   p_partition, p_id, p_from   the partition, the transactionId, the lowest offset to look at
-- out  search     index from 1
--      at_offset  of every message that really has the transactionId
--
-- Walks the keys of the segments from p_from on; it reads no body but those whose keys match.
create or replace function queen.sql_find_messages(p_partition int8[], p_id text[], p_from int8[])
returns table (search int4, at_offset int8)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  select f.search::int4, s.first_offset + n
    from unnest(p_partition, p_id, p_from) with ordinality as f (partition_id, id, from_offset, search)
   cross join lateral (select int8send(hashtextextended(f.id, 0)) as key,
                              convert_to('"transactionId":' || to_json(f.id) || ',"traceId":', 'UTF8') as head) k
   cross join lateral (
      select s.first_offset, s.count, s.keys, s.ends, s.body
        from queen.segments s
       where s.partition_id = f.partition_id
         and s.first_offset >= coalesce((select b.first_offset from queen.segments b
                                          where b.partition_id = f.partition_id and b.first_offset <= f.from_offset
                                          order by b.first_offset desc limit 1), f.from_offset)
         and position(k.key in s.keys) > 0) s
   cross join lateral generate_series(0, s.count - 1) as n
   where substring(s.keys from n * 8 + 1 for 8) = k.key and s.first_offset + n >= f.from_offset
     and substring(queen.fragment_at(s.ends, s.body, n) from 1 for octet_length(k.head)) = k.head;
end
$$;

revoke execute on function queen.sql_find_messages(int8[], text[], int8[]) from public;
