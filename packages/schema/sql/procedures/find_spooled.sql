-- find_spooled: looks in the log for messages that waited on a broker's disk.
--
-- in   one element per lane
--        p_partition
--        p_age_ms       how long the oldest of its messages has waited
--        p_doubt_from   an append with an unknown outcome may have stored some of them, from this offset on; -1: none
--      one element per message
--        p_lane         its lane, index from 1
--        p_key          8 bytes
-- out  record         index of the message, from 0
--      fragment       of a message in the log with this key; the caller compares the transactionIds
--
-- The dedup window counts from when the messages began to wait, not from now: what was in it then is still
-- looked at, and so is everything that was stored since, also by a drain that was cut off.
create or replace function queen.find_spooled(
  p_partition int8[], p_age_ms int8[], p_doubt_from int8[], p_lane int4[], p_key bytea[])
returns table (record int4, fragment bytea)
language sql
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  with began as (
    select l.ordinality::int4 as lane, p.id, p.start_offset, q.dedup_messages_min, q.dedup_messages_max,
           q.dedup_window_seconds * interval '1 second' as span, l.doubt_from,
           clock_timestamp() - l.age_ms * interval '1 millisecond' as at
      from unnest(p_partition, p_age_ms, p_doubt_from) with ordinality
           as l (partition_id, age_ms, doubt_from, ordinality)
      join queen.partitions p on p.id = l.partition_id
      join queen.queues q on q.id = p.queue_id),
  placed as (
    select b.*, queen.offset_at(b.id, b.at) as then_next, queen.offset_at(b.id, b.at - b.span) as window_start
      from began b),
  lanes as (
    select d.lane, d.id,
           greatest(d.start_offset, least(
             greatest(d.then_next - d.dedup_messages_max, least(d.then_next - d.dedup_messages_min, d.window_start)),
             case when d.doubt_from >= 0 then d.doubt_from else d.then_next end)) as from_offset
      from placed d)
  select (n.ordinality - 1)::int4, queen.fragment_at(s.ends, s.body, i)
    from lanes l
    join queen.segments s on s.partition_id = l.id and s.first_offset >= l.from_offset - 4096
   cross join lateral generate_series(0, s.count - 1) as i
    join unnest(p_lane, p_key) with ordinality as n (lane, key, ordinality)
      on n.lane = l.lane and n.key = substring(s.keys from i * 8 + 1 for 8)
   where s.first_offset + i >= l.from_offset;
end;
