-- start_user_session: a user signed in. Sessions that ran out are forgotten, and of the user's own the oldest beyond
-- what one person can have.
--
-- in   p_user     his id
--      p_password his password's hash as it was compared
--      p_hash     SHA-256 of the session's secret
--      p_seconds  so long it counts
-- out  the session's id; null: the user is gone, or has another password by now
-- locks the user's row, so that a session is never made beside a change of his password
create or replace function queen.start_user_session(p_user int8, p_password text, p_hash bytea, p_seconds int4)
returns int8
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_kept constant int4 := 50;
  v_id   int8;
begin
  perform 1 from queen.users where id = p_user and password = p_password for update;
  if not found then
    return null;
  end if;
  delete from queen.user_sessions
   where id in (select id from queen.user_sessions where expires_at < clock_timestamp() for update skip locked);
  insert into queen.user_sessions (user_id, hash, expires_at)
  values (p_user, p_hash, clock_timestamp() + p_seconds * interval '1 second')
  returning id into v_id;
  delete from queen.user_sessions
   where user_id = p_user
     and id <= (select id from queen.user_sessions where user_id = p_user order by id desc offset v_kept limit 1);
  return v_id;
end
$$;
