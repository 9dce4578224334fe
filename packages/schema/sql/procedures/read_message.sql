-- read_message: one message with everything an operator wants to know about it; no row: it is not there.
--
-- A message that is gone from the log is read from its dead letter. `groups` is a json array of
-- {name, consumed, leaseExpiresAtUs}, `letters` of {group, error, retries}, the newest first.
create or replace function queen.read_message(p_partition int8, p_offset int8)
returns table (queue jsonb, partition_name text, created_at timestamptz, fragment bytea, groups jsonb, letters jsonb)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with letter as (
    select d.* from queen.dead_letters d where d.partition_id = p_partition and d.message_offset = p_offset
     order by d.failed_at desc, d.id desc)
  select to_jsonb(q), coalesce(p.name, (select l.partition_name from letter l limit 1)), m.created_at, m.fragment,
         (select coalesce(jsonb_agg(jsonb_build_object(
                   'name', g.name, 'consumed', g.finished @> p_offset,
                   'leaseExpiresAtUs', case when p_offset < g.leased_until and not g.finished @> p_offset
                     then (extract(epoch from g.lease_expires_at - timestamptz '2000-01-01Z') * 1000000)::int8 end)
                   order by g.name), '[]')
            from queen.lane_groups(p_partition) g),
         (select coalesce(jsonb_agg(jsonb_build_object(
                   'group', l.consumer_group, 'error', l.error_message, 'retries', l.retry_count)
                   order by l.failed_at desc, l.id desc), '[]') from letter l)
    from (select s.created_at, queen.fragment_at(s.ends, s.body, (p_offset - s.first_offset)::int4) as fragment, 1 as rank
            from (select s.* from queen.segments s
                   where s.partition_id = p_partition and s.first_offset <= p_offset
                   order by s.first_offset desc limit 1) s
           where p_offset < s.first_offset + s.count
          union all
          select l.created_at, l.fragment, 2 from (select * from letter limit 1) l) m
    left join queen.partitions p on p.id = p_partition
    join queen.queues q on q.id = coalesce(p.queue_id, (select l.queue_id from letter l limit 1))
   where length(m.fragment) > 0
   order by m.rank limit 1;
end;
