-- delete_message: takes one message out of the log, for all groups; returns whether it was there.
--
-- Its segment is written anew without the message's bytes and key; its offset stays, with nothing in it, and
-- counts as finished wherever a group has a cursor. Its dead letters and traces go, too. Its transactionId may be
-- pushed again. Brokers that hold the segment are told. (The old row is gone from disk when PostgreSQL cleans up.)
--
-- Locks: the lane's cursors by group, then the segment, waiting.
create or replace function queen.delete_message(p_partition int8, p_offset int8) returns bool
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  s       queen.segments;
  v_index int4;
  v_start int4;
  v_end   int4;
begin
  if not exists (select 1 from queen.partitions
                  where id = p_partition and p_offset >= start_offset and p_offset < next_offset) then
    return false;
  end if;
  perform queen.finish(p_partition, null, int8multirange(int8range(p_offset, p_offset + 1)));
  select * into s from queen.segments
   where partition_id = p_partition and first_offset <= p_offset
   order by first_offset desc limit 1
     for no key update;
  v_index := (p_offset - s.first_offset)::int4;
  if not found or v_index >= s.count then
    return false;
  end if;
  v_start := queen.int4_at(s.ends, v_index - 1);
  v_end := queen.int4_at(s.ends, v_index);
  if v_end = v_start then
    return false;
  end if;
  update queen.segments
     set keys = overlay(s.keys placing '\x0000000000000000'::bytea from v_index * 8 + 1 for 8),
         ends = (select string_agg(int4send(queen.int4_at(s.ends, i)
                                            - case when i >= v_index then v_end - v_start else 0 end), '' order by i)
                   from generate_series(0, s.count - 1) as i),
         body = substring(s.body from 1 for v_start) || substring(s.body from v_end + 1)
   where partition_id = s.partition_id and first_offset = s.first_offset;
  delete from queen.dead_letters where partition_id = p_partition and message_offset = p_offset;
  delete from queen.message_traces where partition_id = p_partition and message_offset = p_offset;
  insert into queen.hints (partition_ids, rewritten_partition_ids) values (array[p_partition], array[p_partition]);
  perform pg_notify('queen', json_build_object('rewritten', array[p_partition])::text);
  return true;
end
$$;
