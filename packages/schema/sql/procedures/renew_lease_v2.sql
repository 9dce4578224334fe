-- renew_lease_v2: extends leases, in the caller's transaction. Part of the SQL interface.
--
-- in   p_leases  [{leaseId, seconds}]; or an object with such an array in `leases`; or one such lease.
--                seconds: 60 if absent, at most 43,200
-- out  [{index, leaseId, success, error, expiresAt, newExpiresAt}]; of a lease over several partitions the
--      earliest end
--
-- Raises QN400 with the item and the field. Locks: cursor rows by (partition, group), waiting.
create or replace function queen.renew_lease_v2(p_leases jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
declare
  v_leases    jsonb := queen.sql_list(p_leases, 'leases', 10000);
  v_item      int4[];
  v_partition int8[];
  v_token     int8[];
  v_seconds   int4[];
  r record;
begin
  for r in
    select t.at - 1 as at, t.lease
      from jsonb_array_elements(v_leases) with ordinality as t (lease, at)
     where jsonb_typeof(t.lease) <> 'object' or jsonb_typeof(t.lease -> 'leaseId') is distinct from 'string'
        or jsonb_typeof(t.lease -> 'seconds') <> 'null' and t.lease ->> 'seconds' !~ '^[1-9][0-9]{0,8}$'
     order by t.at limit 1
  loop
    if jsonb_typeof(r.lease) = 'object' and jsonb_typeof(r.lease -> 'leaseId') = 'string' then
      raise exception 'leases[%].seconds: Seconds must be a whole number from 1 on', r.at using errcode = 'QN400';
    end if;
    raise exception 'leases[%].leaseId: LeaseId must be a string', r.at using errcode = 'QN400';
  end loop;

  select array_agg(t.at::int4 order by t.at, p.partition_id), array_agg(p.partition_id order by t.at, p.partition_id),
         array_agg(l.token order by t.at, p.partition_id),
         array_agg(least(coalesce((t.lease ->> 'seconds')::int4, 60), 43200) order by t.at, p.partition_id)
    into v_item, v_partition, v_token, v_seconds
    from jsonb_array_elements(v_leases) with ordinality as t (lease, at)
   cross join lateral queen.parse_lease_id(t.lease ->> 'leaseId') l
   cross join lateral unnest(l.partitions) as p (partition_id);

  perform 1
     from (select distinct k.partition_id, k.token from unnest(v_partition, v_token) as k (partition_id, token)) k
     join queen.partition_consumers c on c.partition_id = k.partition_id and c.lease_token = k.token
    order by c.partition_id, c.group_id
      for no key update of c;

  return (select coalesce(jsonb_agg(jsonb_build_object(
                   'index', t.at - 1, 'leaseId', t.lease -> 'leaseId', 'success', e.expires is not null,
                   'error', case when e.expires is null then 'Lease not found' end,
                   'expiresAt', e.expires, 'newExpiresAt', e.expires) order by t.at), '[]')
            from jsonb_array_elements(v_leases) with ordinality as t (lease, at)
            left join (select v_item[n.lease + 1] as item,
                              to_char(min(n.expires_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as expires
                         from queen.renew(coalesce(v_partition, '{}'), coalesce(v_token, '{}'),
                                          coalesce(v_seconds, '{}')) n
                        group by 1) e on e.item = t.at);
end
$$;

revoke execute on function queen.renew_lease_v2(jsonb) from public;
