-- read_keys: the keys of the messages that count for deduplication in these partitions.
--
-- in   p_partition
-- out  lane         index from 0
--      next_offset  null: there is no such partition
--      first_offset, created_at, keys   a segment in the window; null: none
--
-- The window: younger than the queue's dedup_window_seconds, but never fewer than the last
-- dedup_messages_min messages and never more than the last dedup_messages_max. Where it begins is looked up once for each
-- partition: a time that changes within a statement could not be compared with the index, and each segment would ask anew.
create or replace function queen.read_keys(p_partition int8[])
returns table (lane int4, next_offset int8, first_offset int8, created_at timestamptz, keys bytea)
language sql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
begin atomic
  select (l.ordinality - 1)::int4, p.next_offset, s.first_offset,
         s.created_at, s.keys
    from unnest(p_partition) with ordinality as l (partition_id, ordinality)
    left join queen.partitions p on p.id = l.partition_id
    left join queen.queues q on q.id = p.queue_id
    left join lateral (
      select s.first_offset, s.created_at, s.keys
        from queen.segments s
       where s.partition_id = p.id
         and s.first_offset >= greatest(p.start_offset, p.next_offset - q.dedup_messages_max,
               least(p.next_offset - q.dedup_messages_min,
                     queen.offset_at(p.id, statement_timestamp() - q.dedup_window_seconds * interval '1 second')))
               - 4096                     -- a segment that begins before the window may reach into it
       order by s.first_offset) s on true
   order by l.ordinality, s.first_offset;
end;
