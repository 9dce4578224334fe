-- lease_counts: the leases that are held now.
--
-- in   p_queue, p_namespace, p_task   only of these queues; null: any
-- out  active, partitions   leases, and partitions that have one
--      messages             messages under them, from the group's place on
--      acked                those of them that are finished ahead of it
create or replace function queen.lease_counts(p_queue text, p_namespace text, p_task text)
returns table (active int8, partitions int8, messages int8, acked int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select count(*), count(distinct c.partition_id), coalesce(sum(c.lease_until - c.committed), 0)::int8,
         coalesce(sum((select sum(least(upper(a), c.lease_until) - lower(a))
                         from unnest(c.acked) as a where lower(a) < c.lease_until)), 0)::int8
    from queen.partition_consumers c
    join queen.partitions p on p.id = c.partition_id
    join queen.queues q on q.id = p.queue_id
   where c.lease_token is not null and c.lease_expires_at > clock_timestamp()
     and (p_queue is null or q.name = p_queue) and (p_namespace is null or q.namespace = p_namespace)
     and (p_task is null or q.task = p_task);
end;
