-- pop_specific_batch: several pops of partitions that are named. Part of the SQL interface.
--
-- in   p_requests  [{idx, queue_name, partition_name, …}], each as pop_messages_v2
-- out  [{idx, result}], in their order, each result as pop_messages_v2
create or replace function queen.pop_specific_batch(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return queen.sql_pop(queen.sql_list(p_requests, 'requests', 1000), true, true);
end
$$;

revoke execute on function queen.pop_specific_batch(jsonb) from public;
