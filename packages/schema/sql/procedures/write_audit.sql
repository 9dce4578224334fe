-- write_audit: keeps what was changed or refused, several entries at once.
--
-- in   p_entries   [{"at", "actor", "address", "action", "target", "status", "times"}]
create or replace function queen.write_audit(p_entries jsonb)
returns void
language sql
set search_path = queen, pg_temp
as $$
  insert into queen.audit_log (at, actor, address, action, target, status, times)
  select e.at, e.actor, e.address, e.action, e.target, e.status, e.times
    from jsonb_to_recordset(p_entries)
         as e (at timestamptz, actor text, address text, action text, target text, status int4, times int4);
$$;
