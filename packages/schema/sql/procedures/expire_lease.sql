-- expire_lease: ends a lease that ran out, though nobody wants the lane. It is an attempt of its first unfinished
-- message, as it would be for the next pop; a message whose attempts are used up goes to the dead letters.
--
-- in   p_retry_limit  -1: unlimited
-- out  freed, buried; null: nothing was done: another transaction holds the cursor, or the lease runs
--
-- Locks: the cursor, never waiting.
create or replace function queen.expire_lease(p_partition int8, p_group int4, p_retry_limit int4) returns text
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_first int8;
  c       record;
begin
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = p_group and lease_expires_at <= v_now
     for no key update skip locked;
  if not found then
    return null;
  end if;
  if p_retry_limit >= 0 then
    perform queen.bury_expired(p_partition, p_group, p_retry_limit);
    if exists (select 1 from queen.partition_consumers
                where partition_id = p_partition and group_id = p_group and lease_token is null) then
      return 'buried';
    end if;
  end if;
  select greatest(c.committed, start_offset) into v_first from queen.partitions where id = p_partition;
  update queen.partition_consumers
     set failures = case when v_first < c.lease_until
                         then queen.count_failure(c.failures, v_first, 'lease expired', v_now) else c.failures end,
         lease_token = null, lease_expires_at = null, lease_until = null
   where partition_id = p_partition and group_id = p_group;
  return 'freed';
end
$$;
