-- pop_messages_batch_v2: several pops in one call. Part of the SQL interface.
--
-- in   p_requests  [{idx, …}], each as pop_messages_v2
-- out  [{idx, result}], in their order, each result as pop_messages_v2
create or replace function queen.pop_messages_batch_v2(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return queen.sql_pop(queen.sql_list(p_requests, 'requests', 1000), false, true);
end
$$;

revoke execute on function queen.pop_messages_batch_v2(jsonb) from public;
