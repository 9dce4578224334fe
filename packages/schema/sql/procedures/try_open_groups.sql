-- try_open_groups: open_group for brokers, many in one call, which wait for nobody's transaction.
--
-- in   p_queue, p_group, p_mode, p_from   one element per group, as open_group
-- out  opening             index from 0; no row: the queue was deleted while its lock was waited for
--      queue_id, group_id  as open_group
-- raises   55P03 where another transaction is making one of these groups, or deleting its queue: try the others by
--          themselves, and this one later
--
-- Locks: as open_group, queue by queue in the order of their names.
create or replace function queen.try_open_groups(
  p_queue text[], p_group text[], p_mode text[], p_from timestamptz[])
returns table (opening int4, queue_id int8, group_id int4)
language sql
set search_path = queen, pg_temp
set lock_timeout = '50ms'
as $$
  select (o.ordinality - 1)::int4, g.queue_id, g.group_id
    from (select * from unnest(p_queue, p_group, p_mode, p_from)
                        with ordinality as u (queue_name, name, mode, begins_at, ordinality)
           order by u.queue_name, u.name) o
   cross join lateral queen.open_group(o.queue_name, o.name, o.mode, o.begins_at) g
$$;
