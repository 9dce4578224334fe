-- settle_lease: settles one lease whose messages had different ends: finished, failed, dead, given back.
--
-- in   p_done     finished offsets
--      p_failed   offsets that failed: one more attempt each; above p_retry_limit (-1: unlimited) buried
--      p_dead     offsets to bury at once
--      p_errors   one per element of p_failed, then of p_dead
--      p_release  end the lease even if nothing failed
-- out  status     0 done, 1 busy, 2 stale, 3 gone
--      committed, released
--      buried     the offsets that went to the dead letters
--
-- A message that failed and may be tried again ends the lease: the unfinished rest is delivered again, in
-- order, not before p_retry_delay_ms. Locks: the cursor's row, not waiting.
create or replace function queen.settle_lease(
  p_partition int8, p_group int4, p_token int8, p_done int8multirange, p_failed int8[], p_dead int8[],
  p_errors text[], p_release bool, p_retry_limit int4, p_retry_delay_ms int4)
returns table (status int2, committed int8, released bool, buried int8[])
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now      timestamptz := clock_timestamp();
  v_finished int8multirange;
  v_failures jsonb;
  v_buried   int8[] := '{}';
  v_again    bool := false;
  v_first    int8range;
  v_committed int8;
  v_released bool;
  v_offset   int8;
  c          record;
begin
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = p_group
     for no key update skip locked;
  if not found then
    return query select case when exists (select 1 from queen.partition_consumers
                                           where partition_id = p_partition and group_id = p_group)
                             then 1::int2 else 3::int2 end, null::int8, false, v_buried;
    return;
  end if;

  v_finished := int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}');
  if c.lease_token is distinct from p_token or upper(p_done) > c.lease_until then
    return query
    select case when not p_release and cardinality(p_failed) = 0 and cardinality(p_dead) = 0
                     and p_done <@ v_finished then 0::int2 else 2::int2 end,
           c.committed, false, v_buried;
    return;
  end if;

  v_finished := v_finished + p_done;
  v_failures := c.failures;
  for i in 1 .. cardinality(p_failed) loop
    v_offset := p_failed[i];
    continue when v_finished @> v_offset or v_offset >= c.lease_until;
    v_failures := queen.count_failure(v_failures, v_offset, p_errors[i], v_now);
    if p_retry_limit >= 0 and (v_failures -> v_offset::text ->> 'n')::int4 > p_retry_limit then
      perform queen.bury(p_partition, p_group, v_offset, p_errors[i], v_failures);
      v_buried := v_buried || v_offset;
      v_finished := v_finished + int8multirange(int8range(v_offset, v_offset + 1));
    else
      v_again := true;
    end if;
  end loop;
  for i in 1 .. cardinality(p_dead) loop
    v_offset := p_dead[i];
    continue when v_finished @> v_offset or v_offset >= c.lease_until;
    v_failures := queen.count_failure(v_failures, v_offset, p_errors[cardinality(p_failed) + i], v_now);
    perform queen.bury(p_partition, p_group, v_offset, p_errors[cardinality(p_failed) + i], v_failures);
    v_buried := v_buried || v_offset;
    v_finished := v_finished + int8multirange(int8range(v_offset, v_offset + 1));
  end loop;

  v_committed := c.committed;
  select f into v_first from unnest(v_finished) as f limit 1;
  if v_first is not null and lower(v_first) <= c.committed then
    v_committed := greatest(c.committed, upper(v_first));
  end if;
  v_finished := v_finished - int8multirange(int8range(null, v_committed));
  v_released := p_release or v_again or v_committed >= c.lease_until;

  update queen.partition_consumers pc
     set committed = v_committed,
         acked = nullif(v_finished, '{}'),
         failures = queen.unfinished_failures(v_failures, v_committed, v_finished),
         not_before = case when v_again and p_retry_delay_ms > 0
                           then clock_timestamp() + p_retry_delay_ms * interval '1 ms' end,
         lease_token = case when v_released then null else pc.lease_token end,
         lease_expires_at = case when v_released then null else pc.lease_expires_at end,
         lease_until = case when v_released then null else pc.lease_until end,
         last_consumed_at = v_now
   where pc.partition_id = p_partition and pc.group_id = p_group;

  return query select 0::int2, v_committed, v_released, v_buried;
end
$$;
