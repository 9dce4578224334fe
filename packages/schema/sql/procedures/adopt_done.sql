-- adopt_done: the queue is brought over: it gets its options, and delivers.
--
-- in   as adopt_queue
--
-- A pause with another reason is somebody else's, and stays. Locks: as configure_queue.
create or replace function queen.adopt_done(p_name text, p_namespace text, p_task text, p_options jsonb, p_reason text)
returns void
language plpgsql
set search_path = queen, pg_temp
as $$
begin
  perform queen.configure_queue(p_name, p_namespace, p_task, p_options, false);
  delete from queen.pauses x
   using queen.queues q
   where q.name = p_name and x.queue_id = q.id and x.partition_id is null and x.group_id is null
     and x.reason = p_reason;
end
$$;
