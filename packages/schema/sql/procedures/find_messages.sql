-- find_messages: looks for messages by the key of their transactionId, newest first.
--
-- in   p_partition, p_key, p_from   the partition, 8 bytes, the lowest offset to look at
-- out  search     index from 0
--      at_offset, fragment, created_at
--
-- A key can stand for several transactionIds: the caller compares the fragment. The search walks the keys
-- of the segments from p_from on; it reads no body but those that match.
create or replace function queen.find_messages(p_partition int8[], p_key bytea[], p_from int8[])
returns table (search int4, at_offset int8, fragment bytea, created_at timestamptz)
language sql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
begin atomic
  select (f.ordinality - 1)::int4, s.first_offset + i,
         queen.fragment_at(s.ends, s.body, i), s.created_at
    from unnest(p_partition, p_key, p_from) with ordinality as f (partition_id, key, from_offset, ordinality)
    join queen.segments s on s.partition_id = f.partition_id and s.first_offset >= f.from_offset - 4096
                         and position(f.key in s.keys) > 0
   cross join lateral generate_series(0, s.count - 1) as i
   where substring(s.keys from i * 8 + 1 for 8) = f.key and s.first_offset + i >= f.from_offset
   order by f.ordinality, s.first_offset desc, i desc;
end;
