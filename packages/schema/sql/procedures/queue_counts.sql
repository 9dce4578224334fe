-- queue_counts: how many messages the queues hold and how far their readers are, from offsets only.
--
-- in   p_queue, p_namespace, p_task   only these queues; null: any
-- out  id, name, namespace, task, partitions
--      total        messages in the log
--      unfinished   by queue mode where the queue is read so, otherwise by the group that is furthest behind in each
--                   partition; all of them where nobody has read
--      leased       those of them that a consumer holds now
--      failed       those of them that failed before
--      dead         dead letters, of all groups
--      consumed     messages ever finished, by the same readers
--
-- Reads partitions, cursors and dead letters; the log only as queen.group_lanes does.
create or replace function queen.queue_counts(p_queue text, p_namespace text, p_task text)
returns table (id int8, name text, namespace text, task text, partitions int8, total int8, unfinished int8,
               leased int8, failed int8, dead int8, consumed int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with chosen as (
    select q.* from queen.queues q
     where (p_queue is null or q.name = p_queue) and (p_namespace is null or q.namespace = p_namespace)
       and (p_task is null or q.task = p_task)),
  readers as (
    select r.queue_id, r.id
      from (select g.queue_id, g.id, g.name = '__QUEUE_MODE__' as is_queue_mode,
                   bool_or(g.name = '__QUEUE_MODE__') over (partition by g.queue_id) as has_queue_mode
              from queen.consumer_groups g join chosen c on c.id = g.queue_id) r
     where r.is_queue_mode or not r.has_queue_mode),
  behind as (
    select b.queue_id, sum(b.pending)::int8 as pending
      from (select r.queue_id, l.partition_id, max(l.pending) as pending
              from readers r cross join lateral queen.group_lanes(r.queue_id, r.id) l
             group by r.queue_id, l.partition_id) b
     group by b.queue_id),
  held as (
    select p.queue_id,
           sum(case when c.lease_expires_at > clock_timestamp()
                    then greatest(0, c.lease_until - greatest(c.committed, p.start_offset) - f.above) end)::int8 as leased,
           sum(case when c.failures is not null then (select count(*) from jsonb_object_keys(c.failures)) end)::int8
             as failed
      from readers r
      join queen.partition_consumers c on c.group_id = r.id
      join queen.partitions p on p.id = c.partition_id
     cross join lateral (
       select case when c.acked is null or c.lease_until is null then 0
                   else (select coalesce(sum(least(upper(a), c.lease_until) - lower(a)), 0)::int8
                           from unnest(c.acked) as a where lower(a) < c.lease_until) end as above) f
     where c.lease_token is not null or c.failures is not null
     group by p.queue_id),
  lanes as (
    select p.queue_id, count(*) as partitions, sum(p.next_offset - p.start_offset)::int8 as total,
           sum(p.next_offset)::int8 as pushed
      from queen.partitions p join chosen c on c.id = p.queue_id group by p.queue_id),
  letters as (
    select d.queue_id, count(*) as dead
      from queen.dead_letters d join chosen c on c.id = d.queue_id group by d.queue_id)
  select c.id, c.name, c.namespace, c.task, coalesce(l.partitions, 0), coalesce(l.total, 0),
         coalesce(b.pending, l.total, 0), coalesce(h.leased, 0), coalesce(h.failed, 0), coalesce(d.dead, 0),
         case when b.pending is null then 0 else l.pushed - b.pending end
    from chosen c
    left join lanes l on l.queue_id = c.id
    left join behind b on b.queue_id = c.id
    left join held h on h.queue_id = c.id
    left join letters d on d.queue_id = c.id
   order by c.name;
end;
