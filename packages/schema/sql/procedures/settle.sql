-- settle: finishes messages of many leases, or gives leases back; one result row per lease.
--
-- in   one element per lease and partition
--        p_partition, p_group, p_token
--        p_from, p_to   the finished offsets [p_from, p_to); equal: none
--        p_more         further finished ranges, as the text of an int8multirange, or null
--        p_release      end the lease even if some of it is unfinished; counts as no attempt
-- out  lease       index from 0
--      status      0 done, 1 busy, 2 stale: the token was replaced or ended, nothing changed, 3 gone
--      committed   the group's place now
--      released    whether the lane is free now
--
-- What is finished already stays finished, whoever asks again. Of two elements that change one cursor, the
-- second may be busy. Locks: cursor rows, never waiting. Where everything before was finished and nothing failed, a lease
-- is locked and settled by one statement; the others are looked at one by one.
create or replace function queen.settle(
  p_partition int8[], p_group int4[], p_token int8[], p_from int8[], p_to int8[], p_more text[],
  p_release bool[])
returns table (lease int4, status int2, committed int8, released bool)
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
  v_leases    constant int4 := cardinality(p_partition);
  v_status    int2[] := array_fill(-1::int2, array[v_leases]);
  v_committed int8[] := array_fill(0::int8, array[v_leases]);
  v_released  bool[] := array_fill(false, array[v_leases]);
  v_left      int4 := v_leases;
  v_done      int8multirange;
  v_first     int8range;
  v_partition int8;                          -- the cursor changed last
  v_group     int4;
  r record;
begin
  for r in
    update queen.partition_consumers c
       set committed = greatest(c.committed, l.to_offset),
           lease_token = case when l.release or greatest(c.committed, l.to_offset) >= c.lease_until
                              then null else c.lease_token end,
           lease_expires_at = case when l.release or greatest(c.committed, l.to_offset) >= c.lease_until
                                   then null else c.lease_expires_at end,
           lease_until = case when l.release or greatest(c.committed, l.to_offset) >= c.lease_until
                              then null else c.lease_until end,
           last_consumed_at = clock_timestamp()
      from (select n.partition_id, n.group_id, n.token, n.from_offset, n.to_offset, n.more, n.release, n.lease
              from unnest(p_partition, p_group, p_token, p_from, p_to, p_more, p_release) with ordinality
                   as n (partition_id, group_id, token, from_offset, to_offset, more, release, lease)
              join queen.partition_consumers c on c.partition_id = n.partition_id and c.group_id = n.group_id
             order by c.partition_id, c.group_id
               for no key update of c skip locked) l
     where c.partition_id = l.partition_id and c.group_id = l.group_id
       and c.lease_token = l.token and l.to_offset <= c.lease_until and l.from_offset <= c.committed
       and l.more is null and c.acked is null and c.failures is null
    returning l.lease, c.committed, c.lease_token is null as released
  loop
    v_status[r.lease] := 0;
    v_committed[r.lease] := r.committed;
    v_released[r.lease] := r.released;
    v_left := v_left - 1;
  end loop;

  if v_left > 0 then
    for r in
      select l.lease::int4 as lease, l.token, l.from_offset, l.to_offset, l.more::int8multirange as more, l.release,
             c.partition_id, c.group_id, c.committed, c.acked, c.lease_token, c.lease_until
        from unnest(p_partition, p_group, p_token, p_from, p_to, p_more, p_release) with ordinality
             as l (partition_id, group_id, token, from_offset, to_offset, more, release, lease)
        join queen.partition_consumers c on c.partition_id = l.partition_id and c.group_id = l.group_id
       where v_status[l.lease] < 0
       order by c.partition_id, c.group_id
         for no key update of c skip locked
    loop
      if r.partition_id = v_partition and r.group_id = v_group then
        continue;                               -- what was read of it holds no more
      end if;
      v_committed[r.lease] := r.committed;
      if r.lease_token is distinct from r.token or r.to_offset > r.lease_until or upper(r.more) > r.lease_until then
        v_done := int8multirange(int8range(r.from_offset, r.to_offset)) + coalesce(r.more, '{}');
        v_status[r.lease] := case
          when not r.release and v_done <@ (int8multirange(int8range(null, r.committed)) + coalesce(r.acked, '{}'))
          then 0 else 2 end;
        continue;
      end if;
      v_status[r.lease] := 0;
      v_partition := r.partition_id;
      v_group := r.group_id;
      v_done := int8multirange(int8range(0, r.committed)) + int8multirange(int8range(r.from_offset, r.to_offset))
                + coalesce(r.more, '{}') + coalesce(r.acked, '{}');
      select f into v_first from unnest(v_done) as f limit 1;
      if v_first is not null and lower(v_first) <= r.committed then
        v_committed[r.lease] := greatest(r.committed, upper(v_first));
        v_done := v_done - int8multirange(int8range(null, v_committed[r.lease]));
      end if;
      v_released[r.lease] := r.release or v_committed[r.lease] >= r.lease_until;
      update queen.partition_consumers c
         set committed = v_committed[r.lease],
             acked = nullif(v_done, '{}'),
             failures = queen.unfinished_failures(c.failures, v_committed[r.lease], v_done),
             lease_token = case when v_released[r.lease] then null else c.lease_token end,
             lease_expires_at = case when v_released[r.lease] then null else c.lease_expires_at end,
             lease_until = case when v_released[r.lease] then null else c.lease_until end,
             last_consumed_at = clock_timestamp()
       where c.partition_id = r.partition_id and c.group_id = r.group_id;
    end loop;
  end if;

  return query
  select (l.lease - 1)::int4,
         case when v_status[l.lease] >= 0 then v_status[l.lease]
              when exists (select 1 from queen.partition_consumers c
                            where c.partition_id = l.partition_id and c.group_id = l.group_id) then 1::int2
              else 3::int2 end,
         v_committed[l.lease], v_released[l.lease]
    from unnest(p_partition, p_group) with ordinality as l (partition_id, group_id, lease);
end
$$;
