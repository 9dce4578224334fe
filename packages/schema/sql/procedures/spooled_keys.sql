-- spooled_keys: the keys in the log that count for messages that waited on a broker's disk.
--
-- in   one element per lane
--        p_partition
--        p_age_ms       how long the oldest of its messages has waited
--        p_doubt_from   an append with an unknown outcome may have stored some of them, from this offset on; -1: none
--        p_known        the caller has the keys below this offset; 0: none
-- out  lane         index from 0
--      from_offset  where the keys begin that count
--      next_offset  behind the segment
--      keys         of a segment
--
-- The dedup window counts from when the messages began to wait, not from now: what was in it then is still
-- looked at, and so is everything that was stored since, also by a drain that was cut off.
create or replace function queen.spooled_keys(
  p_partition int8[], p_age_ms int8[], p_doubt_from int8[], p_known int8[])
returns table (lane int4, from_offset int8, next_offset int8, keys bytea)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_began timestamptz;
  v_next  int8;                             -- as they were when the messages began to wait
  v_from  int8;
  v_min   int4;
  v_max   int4;
  v_span  interval;
  v_start int8;
begin
  for i in 1 .. cardinality(p_partition) loop
    select p.start_offset, q.dedup_messages_min, q.dedup_messages_max, q.dedup_window_seconds * interval '1 second'
      into v_start, v_min, v_max, v_span
      from queen.partitions p join queen.queues q on q.id = p.queue_id
     where p.id = p_partition[i];
    continue when not found;
    v_began := clock_timestamp() - p_age_ms[i] * interval '1 millisecond';
    v_next := queen.offset_at(p_partition[i], v_began);
    v_from := greatest(v_next - v_max, least(v_next - v_min, queen.offset_at(p_partition[i], v_began - v_span)));
    if p_doubt_from[i] >= 0 then
      v_from := least(v_from, p_doubt_from[i]);
    end if;
    v_from := greatest(v_from, v_start);
    return query
    select i - 1, v_from, s.first_offset + s.count, s.keys
      from queen.segments s
     where s.partition_id = p_partition[i]
       and s.first_offset >= case when p_known[i] > v_from then p_known[i]
                                  else v_from - 4096 end     -- one that begins before may reach beyond
       and s.first_offset + s.count > v_from
     order by s.first_offset;
  end loop;
end
$$;
