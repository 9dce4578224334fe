-- find_in_lane: looks for a message by the key of its transactionId in a range of a lane, newest first.
--
-- in   p_key      8 bytes
--      p_from, p_below   offsets [p_from, p_below)
-- out  at_offset, fragment
--
-- A key can stand for several transactionIds: the caller compares the fragment. Walks the keys of the
-- range's segments; reads no body but those that match.
create or replace function queen.find_in_lane(p_partition int8, p_key bytea, p_from int8, p_below int8)
returns table (at_offset int8, fragment bytea)
language sql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  select s.first_offset + i, queen.fragment_at(s.ends, s.body, i)
    from queen.segments s
   cross join lateral generate_series(0, s.count - 1) as i
   where s.partition_id = p_partition and s.first_offset < p_below
     and s.first_offset >= coalesce((select b.first_offset from queen.segments b
                                      where b.partition_id = p_partition and b.first_offset <= p_from
                                      order by b.first_offset desc limit 1), 0)
     and position(p_key in s.keys) > 0
     and substring(s.keys from i * 8 + 1 for 8) = p_key
     and s.first_offset + i >= p_from and s.first_offset + i < p_below
   order by s.first_offset desc, i desc;
end;
