-- sql_payload: a payload as jsonb; null where jsonb cannot hold it (\u0000, a lone surrogate, a number beyond
-- numeric). Part of the SQL interface's inside.
create or replace function queen.sql_payload(p_json text) returns jsonb
language plpgsql immutable
set search_path = queen, pg_temp
as $$
begin
  return p_json::jsonb;
exception when data_exception or statement_too_complex then
  return null;
end
$$;

revoke execute on function queen.sql_payload(text) from public;
