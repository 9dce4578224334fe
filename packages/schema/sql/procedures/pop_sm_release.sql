-- pop_sm_release: gives leases back: what is unfinished can be delivered again, and nothing is counted. Part of
-- the SQL interface.
--
-- in   p_requests  [{idx, leaseId}]
-- out  [{idx, result}]: {success, error}; false: nobody holds the lease
--
-- Locks: cursor rows by (partition, group), waiting.
create or replace function queen.pop_sm_release(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
declare
  v_requests jsonb := queen.sql_list(p_requests, 'requests', 1000);
  v_ended    jsonb := '[]';                  -- [[partition, token], …]
  v_released int8[] := '{}';
  v_status   int2;
  r record;
begin
  for r in
    select c.partition_id, c.group_id, c.lease_token
      from (select distinct p.partition_id, l.token
              from jsonb_array_elements(v_requests) as q (request)
             cross join lateral queen.parse_lease_id(q.request ->> 'leaseId') l
             cross join lateral unnest(l.partitions) as p (partition_id)) k
      join queen.partition_consumers c on c.partition_id = k.partition_id and c.lease_token = k.token
     order by c.partition_id, c.group_id
       for no key update of c
  loop
    select s.status into v_status
      from queen.settle_lease(r.partition_id, r.group_id, r.lease_token, '{}', '{}', '{}', '{}', true, -1, 0) s;
    if v_status = 0 then
      v_ended := v_ended || jsonb_build_array(jsonb_build_array(r.partition_id, r.lease_token));
      v_released := v_released || r.partition_id;
    end if;
  end loop;
  perform queen.sql_wake('{}', v_released);
  return (select coalesce(jsonb_agg(jsonb_build_object(
                   'idx', coalesce(q.request -> 'idx', to_jsonb(q.at - 1)),
                   'result', jsonb_build_object('success', e.ended,
                                                'error', case when not e.ended then 'Lease not found' end))
                   order by q.at), '[]')
            from jsonb_array_elements(v_requests) with ordinality as q (request, at)
            left join lateral queen.parse_lease_id(q.request ->> 'leaseId') l on true
           cross join lateral (
              select exists (select 1 from unnest(l.partitions) as p (partition_id)
                              where v_ended @> jsonb_build_array(jsonb_build_array(p.partition_id, l.token)))
                       as ended) e);
end
$$;

revoke execute on function queen.pop_sm_release(jsonb) from public;
