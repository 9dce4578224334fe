-- trim_traces: removes traces of messages that are gone from the log and are no dead letters, at most p_limit at
-- a time; returns how many. Fewer than p_limit: that was all. Locks: traces, never waiting.
create or replace function queen.trim_traces(p_limit int4) returns int4
language sql
set search_path = queen, pg_temp
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
begin atomic
  with old as (
    delete from queen.message_traces t
     where t.id = any (array(
             select o.id
               from queen.partitions p
               join queen.message_traces o on o.partition_id = p.id and o.message_offset < p.start_offset
              where p.start_offset > 0
                and not exists (select 1 from queen.dead_letters d
                                 where d.partition_id = o.partition_id and d.message_offset = o.message_offset)
              limit p_limit
                for update of o skip locked))
    returning 1)
  select count(*)::int4 from old;
end;
