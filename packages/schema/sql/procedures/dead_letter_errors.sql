-- dead_letter_errors: dead letters by their error, the most frequent first.
--
-- in   p_queue, p_group   names; null: any
--      p_limit            errors at most
-- out  error, letters, queues, partitions, first_at, last_at (when they failed)
create or replace function queen.dead_letter_errors(p_queue text, p_group text, p_limit int4)
returns table (error text, letters int8, queues int8, partitions int8, first_at timestamptz, last_at timestamptz)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select d.error_message, count(*), count(distinct d.queue_id), count(distinct d.partition_id),
         min(d.failed_at), max(d.failed_at)
    from queen.dead_letters d
   where (p_queue is null or d.queue_id = (select q.id from queen.queues q where q.name = p_queue))
     and (p_group is null or d.consumer_group = p_group)
   group by d.error_message
   order by count(*) desc, d.error_message
   limit p_limit;
end;
