-- change_password: gives a user another password and ends all his sessions.
--
-- in   p_name      the user
--      p_password  the new one's hash
-- out  his id; null: there is no such user
-- locks the user's row
create or replace function queen.change_password(p_name text, p_password text)
returns int8
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_id int8;
begin
  update queen.users set password = p_password, password_changed_at = clock_timestamp()
   where name = p_name returning id into v_id;
  delete from queen.user_sessions where user_id = v_id;
  return v_id;
end
$$;
