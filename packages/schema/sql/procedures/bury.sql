-- bury: copies the message at an offset to the dead letters of a group. The caller holds the cursor's lock
-- and finishes the message. A message that is gone from the log leaves no letter.
create or replace function queen.bury(
  p_partition int8, p_group int4, p_offset int8, p_error text, p_failures jsonb)
returns void
language sql
set search_path = queen, pg_temp
begin atomic
  insert into queen.dead_letters (queue_id, partition_id, partition_name, group_id, consumer_group,
                                  message_offset, transaction_id, fragment, error_message, retry_count,
                                  history, created_at)
  select p.queue_id, p.id, p.name, g.id, g.name, p_offset,
         ('{' || left(f.text, position(',"data":' in f.text) - 1) || '}')::json ->> 'transactionId',
         f.fragment, p_error,
         greatest(0, coalesce((p_failures -> p_offset::text ->> 'n')::int4, 0) - 1),
         coalesce(p_failures -> p_offset::text -> 'history', '[]'), s.created_at
    from queen.partitions p
    join queen.consumer_groups g on g.id = p_group
   cross join lateral (select s.first_offset, s.ends, s.body, s.created_at from queen.segments s
                        where s.partition_id = p.id and s.first_offset <= p_offset
                        order by s.first_offset desc limit 1) s
   cross join lateral (select queen.fragment_at(s.ends, s.body, (p_offset - s.first_offset)::int4) as fragment) raw
   cross join lateral (select raw.fragment, convert_from(raw.fragment, 'UTF8') as text) f
   where p.id = p_partition and f.text <> ''
  on conflict do nothing;
end;
