-- stored_at: when the message at an offset of a lane was stored; null: it is not in the log. One index probe.
create or replace function queen.stored_at(p_partition int8, p_offset int8) returns timestamptz
language sql stable
set search_path = queen, pg_temp
begin atomic
  select s.created_at from queen.segments s
   where s.partition_id = p_partition and s.first_offset <= p_offset
   order by s.first_offset desc limit 1;
end;
