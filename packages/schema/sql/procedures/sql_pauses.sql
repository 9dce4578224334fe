-- sql_pauses: what of a queue is not to be delivered to a group now. Part of the SQL interface's inside.
--
-- in   p_queue, p_group   either may be null: what does not exist yet
-- out  everything   pop maintenance is on, or the queue or the group is paused
--      lanes        the lanes that are paused
create or replace function queen.sql_pauses(p_queue int8, p_group int4, out everything bool, out lanes int8[])
language sql stable
set search_path = queen, pg_temp
begin atomic
  select exists (select 1 from queen.system_state s
                  where s.key = 'pop_maintenance_mode' and s.value -> 'enabled' = 'true'::jsonb)
         or coalesce(bool_or(x.partition_id is null), false),
         coalesce(array_agg(x.partition_id) filter (where x.partition_id is not null), '{}')
    from queen.pauses x
   where x.queue_id = p_queue and (x.group_id is null or x.group_id = p_group);
end;

revoke execute on function queen.sql_pauses(int8, int4) from public;
