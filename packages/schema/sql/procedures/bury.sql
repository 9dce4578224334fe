-- bury: copies the message at an offset to the dead letters of a group, as bury_range.
create or replace function queen.bury(
  p_partition int8, p_group int4, p_offset int8, p_error text, p_failures jsonb)
returns void
language sql
set search_path = queen, pg_temp
begin atomic
  select queen.bury_range(p_partition, p_group, int8multirange(int8range(p_offset, p_offset + 1)), p_error, p_failures);
end;
