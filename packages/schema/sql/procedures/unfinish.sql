-- unfinish: takes back what a pop with auto-ack finished and could not deliver.
--
-- in   p_from, p_to   the offsets [p_from, p_to) that it took
--      p_acked        what was finished before, and stays so; null: nothing
--
-- Locks: the cursor's row, waiting.
create or replace function queen.unfinish(
  p_partition int8, p_group int4, p_from int8, p_to int8, p_acked int8multirange)
returns void
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_finished  int8multirange;
  v_first     int8range;
  v_committed int8 := 0;
  c           record;
begin
  select * into c from queen.partition_consumers
   where partition_id = p_partition and group_id = p_group
     for no key update;
  v_finished := int8multirange(int8range(0, c.committed)) + coalesce(c.acked, '{}')
                - (int8multirange(int8range(p_from, p_to)) - coalesce(p_acked, '{}'));
  select f into v_first from unnest(v_finished) as f limit 1;
  if lower(v_first) = 0 then
    v_committed := upper(v_first);
  end if;
  update queen.partition_consumers pc
     set committed = v_committed,
         acked = nullif(v_finished - int8multirange(int8range(null, v_committed)), '{}')
   where pc.partition_id = p_partition and pc.group_id = p_group;
end
$$;
