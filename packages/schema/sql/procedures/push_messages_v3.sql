-- push_messages_v3: push_messages_v2 under the name that other software calls. Part of the SQL interface.
create or replace function queen.push_messages_v3(p_items jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return queen.push_messages_v2(p_items);
end
$$;

revoke execute on function queen.push_messages_v3(jsonb) from public;
