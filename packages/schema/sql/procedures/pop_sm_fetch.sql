-- pop_sm_fetch: the third step of a pop: the unfinished messages under a lease. Part of the SQL interface.
--
-- in   p_requests  [{idx, leaseId, data_text}]
-- out  [{idx, result}]: {success: true, leaseId, messages}, or {success: false, error, messages: []}
--
-- May be repeated as long as the lease is held. Locks nothing.
create or replace function queen.pop_sm_fetch(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return (select coalesce(jsonb_agg(jsonb_build_object(
                   'idx', coalesce(q.request -> 'idx', to_jsonb(q.at - 1)),
                   'result', case when m.held
                                  then jsonb_build_object('success', true, 'leaseId', q.request ->> 'leaseId',
                                                          'messages', m.messages)
                                  else jsonb_build_object('success', false, 'error', 'Invalid or expired lease',
                                                          'messages', '[]'::jsonb) end) order by q.at), '[]')
            from jsonb_array_elements(queen.sql_list(p_requests, 'requests', 1000)) with ordinality as q (request, at)
            left join lateral queen.parse_lease_id(q.request ->> 'leaseId') l on true
           cross join lateral (
              select count(*) > 0 as held,
                     coalesce(jsonb_agg(e.message order by c.partition_id, e.at) filter (where e.at is not null), '[]') as messages
                from queen.partition_consumers c
                join queen.partitions p on p.id = c.partition_id
                join queen.consumer_groups g on g.id = c.group_id
                left join lateral jsonb_array_elements(queen.sql_messages(
                       c.partition_id, greatest(c.committed, p.start_offset), c.lease_until, c.acked,
                       coalesce((q.request ->> 'data_text')::bool, false),
                       jsonb_build_object('partitionId', queen.partition_uuid(c.partition_id), 'partition', p.name,
                                          'leaseId', q.request ->> 'leaseId', 'consumerGroup', g.name)))
                     with ordinality as e (message, at) on true
               where c.partition_id = any (l.partitions) and c.lease_token = l.token) m);
end
$$;

revoke execute on function queen.pop_sm_fetch(jsonb) from public;
