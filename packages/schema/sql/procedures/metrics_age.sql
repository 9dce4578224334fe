-- metrics_age: seconds since a worker wrote its figures; null: none ever did.
create or replace function queen.metrics_age() returns float8
language sql stable
set search_path = queen, pg_temp
begin atomic
  select extract(epoch from clock_timestamp() - max(m.updated_at))::float8
    from queen.worker_minutes m
   where m.minute >= (select max(l.minute) from queen.worker_minutes l);
end;
