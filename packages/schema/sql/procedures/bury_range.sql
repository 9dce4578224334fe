-- bury_range: copies messages of a lane to the dead letters of a group. The caller holds the cursor's lock
-- and finishes the messages. A message that is gone from the log leaves no letter.
--
-- in   p_offsets    which
--      p_failures   the cursor's, for the messages' history
create or replace function queen.bury_range(
  p_partition int8, p_group int4, p_offsets int8multirange, p_error text, p_failures jsonb)
returns void
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group,
                                  message_offset, transaction_id, fragment, error_message, retry_count,
                                  history, created_at)
  select p.queue_id, p.id, p.name, g.id, g.name, f.at_offset,
         ('{' || left(f.text, position(',"data":' in f.text) - 1) || '}')::json ->> 'transactionId',
         f.fragment, p_error,
         greatest(0, coalesce((p_failures -> f.at_offset::text ->> 'n')::int4, 0) - 1),
         coalesce(p_failures -> f.at_offset::text -> 'history', '[]'), s.created_at
    from queen.partitions p
    join queen.consumer_groups g on g.id = p_group
   cross join lateral (
     -- `offset 0`: what is computed is computed once; `body || ''` is the body out of its compression.
     select s.first_offset, s.count, s.ends, s.body || ''::bytea as body, s.created_at
       from queen.segments s
      where s.partition_id = p.id and s.first_offset < upper(p_offsets)
        and s.first_offset >= coalesce(
              (select b.first_offset from queen.segments b
                where b.partition_id = p.id and b.first_offset <= lower(p_offsets)
                order by b.first_offset desc limit 1), lower(p_offsets))
     offset 0) s
   cross join lateral (
     select raw.at_offset, raw.fragment, convert_from(raw.fragment, 'UTF8') as text
       from (select s.first_offset + n as at_offset, queen.fragment_at(s.ends, s.body, n) as fragment
               from generate_series(0, s.count - 1) as n
              where p_offsets @> (s.first_offset + n)
             offset 0) raw
     offset 0) f
   where p.id = p_partition and f.text <> ''
   order by f.at_offset
  on conflict do nothing;
end
$$;
