-- find_spooled: looks in the log for messages that waited on a broker's disk.
--
-- in   one element per lane
--        p_partition
--        p_age_ms       how long the oldest of its messages has waited
--        p_doubt_from   an append with an unknown outcome may have stored some of them, from this offset on; -1: none
--        p_keys         per message the 8 bytes of its key
-- out  lane       index from 0
--      message    index among the lane's messages, from 0
--      fragment   of a message in the log with its key; the caller compares the transactionIds
--
-- The dedup window counts from when the messages began to wait, not from now: what was in it then is still
-- looked at, and so is everything that was stored since, also by a drain that was cut off. Walks the keys of
-- that part of the log once; reads no body but those that match.
create or replace function queen.find_spooled(
  p_partition int8[], p_age_ms int8[], p_doubt_from int8[], p_keys bytea[])
returns table (lane int4, message int4, fragment bytea)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off                   -- the keys are hashed, however few the planner believes them to be
set enable_mergejoin = off
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
    select i - 1, k.message, queen.fragment_at(s.ends, s.body, m)
      from queen.segments s
     cross join lateral generate_series(0, s.count - 1) as m
      join (select n as message, substring(p_keys[i] from n * 8 + 1 for 8) as key
              from generate_series(0, length(p_keys[i]) / 8 - 1) as n) k
        on k.key = substring(s.keys from m * 8 + 1 for 8)
     where s.partition_id = p_partition[i] and s.first_offset >= v_from - 4096
       and s.first_offset + m >= v_from;
  end loop;
end
$$;
