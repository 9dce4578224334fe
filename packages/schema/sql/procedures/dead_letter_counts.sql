-- dead_letter_counts: how many dead letters there are, of how many partitions, and their most frequent errors.
--
-- in   p_queue, p_namespace, p_task   only of these queues; null: any
-- out  letters, partitions
--      errors   jsonb array of {"error", "count"}, the five most frequent; an error is cut at 200 characters
create or replace function queen.dead_letter_counts(p_queue text, p_namespace text, p_task text)
returns table (letters int8, partitions int8, errors jsonb)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with chosen as (
    select d.partition_id, left(d.error_message, 200) as error
      from queen.dead_letters d join queen.queues q on q.id = d.queue_id
     where (p_queue is null or q.name = p_queue) and (p_namespace is null or q.namespace = p_namespace)
       and (p_task is null or q.task = p_task))
  select (select count(*) from chosen), (select count(distinct partition_id) from chosen),
         (select coalesce(jsonb_agg(jsonb_build_object('error', e.error, 'count', e.count)
                                    order by e.count desc, e.error), '[]')
            from (select c.error, count(*) as count from chosen c group by c.error
                   order by count(*) desc, c.error limit 5) e);
end;
