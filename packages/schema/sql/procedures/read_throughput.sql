-- read_throughput: messages stored and finished in the last whole minute and the one that is going on.
--
-- out  pushed, finished, and the seconds that they took
create or replace function queen.read_throughput()
returns table (pushed int8, finished int8, seconds float8)
language sql stable
set search_path = queen, pg_temp
begin atomic
  select coalesce(sum(m.push_messages), 0)::int8, coalesce(sum(m.ack_success), 0)::int8,
         extract(epoch from clock_timestamp() - s.since)::float8
    from (select date_trunc('minute', clock_timestamp()) - interval '1 minute' as since) s
    left join queen.worker_minutes m on m.minute >= s.since
   group by s.since;
end;
