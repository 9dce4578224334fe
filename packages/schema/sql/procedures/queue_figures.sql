-- queue_figures: queues with the sums over all their lanes; see lane_figures.
--
-- in   p_queue   only this queue; null: all
-- out  queue_id, name, namespace, task, created_at
--      partitions, total, pending, processing, dead_letters
--      appended     messages that were ever stored
--      finished     of these, those that are not pending and not processing
create or replace function queen.queue_figures(p_queue int8)
returns table (queue_id int8, name text, namespace text, task text, created_at timestamptz, partitions int8,
               total int8, pending int8, processing int8, dead_letters int8, appended int8, finished int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select q.id, q.name, q.namespace, q.task, q.created_at, coalesce(l.partitions, 0), coalesce(l.total, 0)::int8,
         coalesce(l.pending, 0)::int8, coalesce(l.processing, 0)::int8,
         (select count(*) from queen.dead_letters d where d.queue_id = q.id),
         coalesce(l.appended, 0)::int8, coalesce(l.appended - l.pending - l.processing, 0)::int8
    from queen.queues q
    left join (select f.queue_id, count(*) as partitions, sum(f.next_offset - f.start_offset) as total,
                      sum(f.pending) as pending, sum(f.processing) as processing, sum(f.next_offset) as appended
                 from queen.lane_figures(p_queue, null) f
                group by f.queue_id) l on l.queue_id = q.id
   where p_queue is null or q.id = p_queue
   order by q.id desc;
end;
