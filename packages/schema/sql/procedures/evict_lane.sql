-- evict_lane: moves messages that a group has not finished in time to its dead letters.
--
-- in   p_waited_at   stored before: it waited too long
--      p_expired_at  stored before: the message expired and is no letter either; null: none does
--      p_reason      the letters' error
--      p_messages    how many at most
-- out  evicted       how many; null: another transaction holds the cursor
--      is_free       the group may have something to get now that it could not get before
--
-- What is under a lease that runs stays. Nothing is taken out of the log. A cursor that is missing is made.
--
-- Locks: the cursor, never waiting.
create or replace function queen.evict_lane(
  p_partition int8, p_group int4, p_waited_at timestamptz, p_expired_at timestamptz, p_reason text, p_messages int4,
  out evicted int4, out is_free bool)
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_start  int8;
  v_from   int8;
  v_to     int8;
  v_late   int8multirange;
  v_picked int8multirange := '{}';
  v_take   int8;
  v_range  int8range;
  c        record;
begin
  is_free := false;
  if not exists (select 1 from queen.partition_consumers where partition_id = p_partition and group_id = p_group) then
    perform queen.open_cursors(array[p_partition], array[p_group]);
  end if;
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = p_group
     for no key update skip locked;
  if not found then
    return;
  end if;
  evicted := 0;
  select start_offset into v_start from queen.partitions where id = p_partition;
  v_from := greatest(c.committed, v_start);
  if p_expired_at is not null then
    v_from := greatest(v_from, queen.offset_at(p_partition, p_expired_at));
  end if;
  v_to := queen.offset_at(p_partition, p_waited_at);
  if v_from >= v_to then
    return;
  end if;
  v_late := int8multirange(int8range(v_from, v_to)) - coalesce(c.acked, '{}');
  if c.lease_expires_at > clock_timestamp() then
    v_late := v_late - int8multirange(int8range(0, greatest(c.lease_until, 0)));
  end if;
  foreach v_range in array array(select r from unnest(v_late) as r) loop
    v_take := least(upper(v_range) - lower(v_range), p_messages - evicted);
    v_picked := v_picked + int8multirange(int8range(lower(v_range), lower(v_range) + v_take));
    evicted := evicted + v_take;
    exit when evicted >= p_messages;
  end loop;
  if evicted = 0 then
    return;
  end if;

  perform queen.bury_range(p_partition, p_group, v_picked, p_reason, c.failures);
  perform queen.finish(p_partition, array[p_group], v_picked + int8multirange(int8range(0, v_start)));
  -- A delay was for a message that failed; where none of those is left, nothing waits.
  update queen.partition_consumers
     set not_before = null
   where partition_id = p_partition and group_id = p_group and not_before is not null and failures is null;
  is_free := found or c.lease_token is not null and exists (
    select 1 from queen.partition_consumers
     where partition_id = p_partition and group_id = p_group and lease_token is null);
end
$$;
