-- sql_name_problem: what is wrong with a name in a request, as the end of a message; null: nothing. Part of
-- the SQL interface's inside.
--
-- in   p_value        the field's value; null: it is not there
--      p_field        its name in the request
--      p_may_be_empty whether the empty text is a name
-- out  «.queue: Queue must be a string»
create or replace function queen.sql_name_problem(p_value jsonb, p_field text, p_may_be_empty bool) returns text
language sql immutable
return '.' || p_field || ': ' || upper(left(p_field, 1)) || substr(p_field, 2) || ' must '
       || case when jsonb_typeof(p_value) is distinct from 'string' then 'be a string'
               when p_value #>> '{}' = '' and not p_may_be_empty then 'not be empty'
               when char_length(p_value #>> '{}') > 255 then 'have at most 255 characters'
               when p_value #>> '{}' ~ '[\u0001-\u001f\u007f]' then 'not contain control characters' end;

revoke execute on function queen.sql_name_problem(jsonb, text, bool) from public;
