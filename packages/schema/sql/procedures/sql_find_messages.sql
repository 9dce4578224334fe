-- sql_find_messages: where messages with these transactionIds are. Part of the SQL interface's inside.
--
-- in   one element per lane
--        p_partition, p_from, p_to   the partition, the offsets [p_from, p_to) to look at
--      one element per search
--        p_lane      its lane, index from 1
--        p_id        the transactionId
-- out  search     index from 1
--      at_offset  of every message that really has the transactionId
--
-- Walks the keys of the segments, once for all searches if there are many. Of the bodies it reads those whose
-- keys match, each once, and compares the transactionIds themselves.
create or replace function queen.sql_find_messages(
  p_partition int8[], p_from int8[], p_to int8[], p_lane int4[], p_id text[])
returns table (search int4, at_offset int8)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_few constant int4 := 8;
  v_search  int4[];
  v_segment int8[];
  v_place   int4[];
begin
  -- `offset 0` keeps a segment's row from being joined in another order.
  if cardinality(p_id) <= v_few then
    select array_agg(i.search), array_agg(s.first_offset), array_agg(n) into v_search, v_segment, v_place
      from (select i.search::int4 as search, i.lane, int8send(hashtextextended(i.id, 0)) as key
              from unnest(p_lane, p_id) with ordinality as i (lane, id, search)) i
     cross join lateral (
        select s.first_offset, s.count, s.keys
          from queen.segments s
         where s.partition_id = p_partition[i.lane] and s.first_offset < p_to[i.lane]
           and s.first_offset >= coalesce(
                 (select b.first_offset from queen.segments b
                   where b.partition_id = p_partition[i.lane] and b.first_offset <= p_from[i.lane]
                   order by b.first_offset desc limit 1), p_from[i.lane])
           and position(i.key in s.keys) > 0
        offset 0) s
     cross join lateral generate_series(0, s.count - 1) as n
     where substring(s.keys from n * 8 + 1 for 8) = i.key
       and s.first_offset + n >= p_from[i.lane] and s.first_offset + n < p_to[i.lane];
  else
    select array_agg(i.search), array_agg(k.first_offset), array_agg(k.place) into v_search, v_segment, v_place
      from (select i.search::int4 as search, i.lane, int8send(hashtextextended(i.id, 0)) as key
              from unnest(p_lane, p_id) with ordinality as i (lane, id, search)) i
      join (select l.lane, s.first_offset, n as place, substring(s.keys from n * 8 + 1 for 8) as key
              from unnest(p_partition, p_from, p_to) with ordinality as l (partition_id, from_offset, to_offset, lane)
             cross join lateral (
                select s.first_offset, s.count, s.keys
                  from queen.segments s
                 where s.partition_id = l.partition_id and s.first_offset < l.to_offset
                   and s.first_offset >= coalesce(
                         (select b.first_offset from queen.segments b
                           where b.partition_id = l.partition_id and b.first_offset <= l.from_offset
                           order by b.first_offset desc limit 1), l.from_offset)
                offset 0) s
             cross join lateral generate_series(0, s.count - 1) as n
             where s.first_offset + n >= l.from_offset and s.first_offset + n < l.to_offset) k
        on k.lane = i.lane and k.key = i.key;
  end if;

  return query
  select u.search, m.first_offset + u.place
    from (select p_partition[p_lane[f.search]] as partition_id, f.first_offset,
                 array_agg(f.search) as searches, array_agg(f.place) as places
            from unnest(v_search, v_segment, v_place) as f (search, first_offset, place)
           group by 1, 2) m
   cross join lateral (
      select s.ends, s.body || ''::bytea as body     -- out of its compression, once
        from queen.segments s
       where s.partition_id = m.partition_id and s.first_offset = m.first_offset
      offset 0) s
   cross join lateral unnest(m.searches, m.places) as u (search, place)
   cross join lateral (
      select convert_to('"transactionId":' || to_json(p_id[u.search]) || ',"traceId":', 'UTF8') as head) h
   where substring(queen.fragment_at(s.ends, s.body, u.place) from 1 for octet_length(h.head)) = h.head;
end
$$;

revoke execute on function queen.sql_find_messages(int8[], int8[], int8[], int4[], text[]) from public;
