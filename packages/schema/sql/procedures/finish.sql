-- finish: counts messages of a lane as finished for groups that have a cursor there, by an operator's order.
--
-- in   p_groups   null: all
--      p_done     the offsets
--
-- A lease that has nothing unfinished left ends. Locks: the lane's cursors by group, waiting.
create or replace function queen.finish(p_partition int8, p_groups int4[], p_done int8multirange) returns void
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_finished  int8multirange;
  v_first     int8range;
  v_committed int8;
  v_released  bool;
  c           record;
begin
  for c in
    select * from queen.partition_consumers
     where partition_id = p_partition and (p_groups is null or group_id = any (p_groups))
     order by group_id
       for no key update
  loop
    v_finished := int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}') + p_done;
    v_committed := c.committed;
    select f into v_first from unnest(v_finished) as f limit 1;
    if v_first is not null and lower(v_first) <= c.committed then
      v_committed := greatest(c.committed, upper(v_first));
    end if;
    v_finished := v_finished - int8multirange(int8range(null, v_committed));
    v_released := v_committed >= c.lease_until;
    update queen.partition_consumers pc
       set committed = v_committed,
           acked = nullif(v_finished, '{}'),
           failures = queen.unfinished_failures(c.failures, v_committed, v_finished),
           lease_token = case when v_released then null else c.lease_token end,
           lease_expires_at = case when v_released then null else c.lease_expires_at end,
           lease_until = case when v_released then null else c.lease_until end
     where pc.partition_id = c.partition_id and pc.group_id = c.group_id;
  end loop;
end
$$;
