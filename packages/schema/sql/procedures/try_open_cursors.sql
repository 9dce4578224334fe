-- try_open_cursors: open_cursors for brokers, which wait for nobody's transaction.
--
-- in, out  as open_cursors
-- raises   55P03 where another transaction is making one of these cursors, or deleting its queue: try the others by
--          themselves, and this one later
create or replace function queen.try_open_cursors(p_partition int8[], p_group int4[])
returns table (cursor int4, status int2)
language sql
set search_path = queen, pg_temp
set lock_timeout = '50ms'
as $$
  select c.cursor, c.status from queen.open_cursors(p_partition, p_group) c
$$;
