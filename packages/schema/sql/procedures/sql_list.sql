-- sql_list: the elements of a request: an array, or an object that has it in a field, or one element alone.
-- Part of the SQL interface's inside.
--
-- in   p_field  the field in which an object may carry the array
--      p_max    how many elements are accepted
create or replace function queen.sql_list(p_request jsonb, p_field text, p_max int4) returns jsonb
language plpgsql immutable
set search_path = queen, pg_temp
as $$
declare
  v_list jsonb := case when jsonb_typeof(p_request) = 'object' and p_request ? p_field then p_request -> p_field
                       when jsonb_typeof(p_request) = 'object' then jsonb_build_array(p_request)
                       else p_request end;
begin
  if jsonb_typeof(v_list) is distinct from 'array' then
    raise exception '% array is required', p_field using errcode = 'QN400';
  end if;
  if jsonb_array_length(v_list) > p_max then
    raise exception '% must be at most %', p_field, p_max using errcode = 'QN400';
  end if;
  return v_list;
end
$$;

revoke execute on function queen.sql_list(jsonb, text, int4) from public;
