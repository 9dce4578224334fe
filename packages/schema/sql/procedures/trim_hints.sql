-- trim_hints: forgets hints older than a minute, a bounded number at a time; returns how many.
create or replace function queen.trim_hints() returns int4
language sql
set search_path = queen, pg_temp
begin atomic
  with old as (
    delete from queen.hints h
     where h.ctid = any (array(select o.ctid from queen.hints o
                                where o.at < clock_timestamp() - interval '60 seconds'
                                limit 10000 for update skip locked))
    returning 1)
  select count(*)::int4 from old;
end;
