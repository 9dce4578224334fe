-- bury_expired: buries the first message of a lane whose attempts were used up by leases that ran out.
--
-- out  0 nothing is to be buried, 1 buried, 2 the cursor is busy: try again
create or replace function queen.bury_expired(p_partition int8, p_group int4, p_retry_limit int4) returns int2
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_now      timestamptz := clock_timestamp();
  v_first    int8;
  v_failures jsonb;
  v_finished int8multirange;
  c          record;
begin
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = p_group
     for no key update skip locked;
  if not found then
    return case when exists (select 1 from queen.partition_consumers
                              where partition_id = p_partition and group_id = p_group) then 2 else 0 end;
  end if;
  if c.lease_token is null or c.lease_expires_at > v_now then
    return 0;
  end if;
  select greatest(c.committed, start_offset) into v_first from queen.partitions where id = p_partition;
  if v_first >= c.lease_until then            -- what was leased is gone from the log
    return 0;
  end if;
  v_failures := queen.count_failure(c.failures, v_first, 'lease expired', v_now);
  if (v_failures -> v_first::text ->> 'n')::int4 <= p_retry_limit + 1 then
    return 0;
  end if;
  perform queen.bury(p_partition, p_group, v_first, 'lease expired', v_failures);
  v_finished := int8multirange(int8range(0, v_first + 1)) + coalesce(c.acked, '{}');
  update queen.partition_consumers pc
     set committed = done.upto,
         acked = nullif(v_finished - int8multirange(int8range(null, done.upto)), '{}'),
         failures = queen.unfinished_failures(v_failures, done.upto, v_finished),
         lease_token = null, lease_expires_at = null, lease_until = null, not_before = null,
         last_consumed_at = v_now
    from (select upper(f) as upto from unnest(v_finished) as f limit 1) done
   where pc.partition_id = p_partition and pc.group_id = p_group;
  return 1;
end
$$;
