-- adopt_messages: brings the next messages of a lane over, with their order and their times.
--
-- in   p_source       the lane, by its id in the other database
--      p_from         messages that were brought over before: whoever thinks otherwise is refused
--      p_segment      one element per message, in their order: the number of the segment it belongs to
--      p_at_us        when it was stored there, in microseconds; the same for all messages of a segment
--      p_transaction_id, p_fragment   as in queen.segments
--      p_last_id      the id there of the last one
-- out  messages that were brought over in all
--
-- One transaction brings the messages and moves the mark behind them, so that who is cut off goes on where it was.
-- Locks, waiting: the lane's row in adoptions, then the partition.
create or replace function queen.adopt_messages(
  p_source uuid, p_from int8, p_segment int4[], p_at_us int8[], p_transaction_id text[], p_fragment bytea[],
  p_last_id uuid)
returns int8
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_partition int8;
  v_before    int8;
  v_next      int8;
  v_count     int4 := cardinality(p_fragment);
  v_last      timestamptz := timestamptz 'epoch' + p_at_us[v_count] * interval '1 microsecond';
begin
  select a.partition_id, a.messages into v_partition, v_before
    from queen.adoptions a where a.source_id = p_source for update;
  if v_before is distinct from p_from then
    raise exception 'another adoption of this lane is under way, or its queue was deleted: let one finish, then run it again'
      using errcode = 'QN409';
  end if;
  select p.next_offset into v_next from queen.partitions p where p.id = v_partition for no key update;
  if v_next is distinct from v_before then
    raise exception 'the lane has messages of its own from offset % on, so that those of the source would lose their places', v_before
      using errcode = 'QN409';
  end if;

  insert into queen.segments (partition_id, first_offset, count, created_at, keys, ends, body)
  select v_partition, v_before + min(m.place) - 1, count(*),
         timestamptz 'epoch' + min(m.at_us) * interval '1 microsecond',
         string_agg(int8send(hashtextextended(m.transaction_id, 0)), '' order by m.place),
         string_agg(int4send(m.end_at::int4), '' order by m.place),
         string_agg(m.fragment, '' order by m.place)
    from (select f.*, sum(length(f.fragment)) over (partition by f.segment order by f.place) as end_at
            from unnest(p_segment, p_at_us, p_transaction_id, p_fragment) with ordinality
                 as f (segment, at_us, transaction_id, fragment, place)) m
   group by m.segment;
  update queen.partitions p
     set next_offset = v_before + v_count, last_at = greatest(p.last_at, v_last)
   where p.id = v_partition;
  update queen.adoptions a
     set messages = v_before + v_count, last_at = v_last, last_id = p_last_id
   where a.source_id = p_source;
  insert into queen.hints (partition_ids) values (array[v_partition]);
  return v_before + v_count;
end
$$;
