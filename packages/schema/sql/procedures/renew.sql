-- renew: extends leases; one result row per lease and partition.
--
-- in   p_partition, p_token, p_seconds   one element per lease and partition
-- out  lease       index from 0
--      status      0 extended, 1 busy, 2 not held: ended, or taken by somebody else
--      expires_at  when it ends now
--
-- A token that ran out but was not replaced is extended too. Locks: cursor rows, never waiting.
create or replace function queen.renew(p_partition int8[], p_token int8[], p_seconds int4[])
returns table (lease int4, status int2, expires_at timestamptz)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_status  int2[] := array_fill(-1::int2, array[cardinality(p_partition)]);
  v_expires timestamptz[] := array_fill('-infinity'::timestamptz, array[cardinality(p_partition)]);
  v_until   timestamptz;
  r record;
begin
  for r in
    select l.lease::int4 as lease, l.seconds, c.partition_id, c.group_id
      from unnest(p_partition, p_token, p_seconds) with ordinality as l (partition_id, token, seconds, lease)
      join queen.partition_consumers c on c.partition_id = l.partition_id and c.lease_token = l.token
     order by c.partition_id, c.group_id
       for no key update of c skip locked
  loop
    update queen.partition_consumers c
       set lease_expires_at = greatest(c.lease_expires_at, clock_timestamp() + r.seconds * interval '1 second')
     where c.partition_id = r.partition_id and c.group_id = r.group_id
    returning c.lease_expires_at into v_until;
    v_status[r.lease] := 0;
    v_expires[r.lease] := v_until;
  end loop;

  return query
  select (l.lease - 1)::int4,
         case when v_status[l.lease] = 0 then 0::int2
              when exists (select 1 from queen.partition_consumers c
                            where c.partition_id = l.partition_id and c.lease_token = l.token) then 1::int2
              else 2::int2 end,
         case when v_status[l.lease] = 0 then v_expires[l.lease] end
    from unnest(p_partition, p_token) with ordinality as l (partition_id, token, lease);
end
$$;
