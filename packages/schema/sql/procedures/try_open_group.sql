-- try_open_group: open_group for brokers, which wait for nobody's transaction.
--
-- in, out  as open_group
-- raises   55P03 where another transaction is making this very group, or deleting the queue: try again later
create or replace function queen.try_open_group(p_queue text, p_group text, p_mode text, p_from timestamptz)
returns table (queue_id int8, group_id int4)
language sql
set search_path = queen, pg_temp
set lock_timeout = '50ms'
as $$
  select g.queue_id, g.group_id from queen.open_group(p_queue, p_group, p_mode, p_from) g
$$;
