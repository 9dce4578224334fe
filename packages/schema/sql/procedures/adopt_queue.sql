-- adopt_queue: makes a queue that is brought over from another Queen, with its groups, and stops its delivery.
--
-- in   p_options   column → value, as configure_queue takes them
--      p_groups    [{"name", "mode", "from"}], where each group starts in lanes that it has not met
--      p_reason    of the pause; adopt_done ends the pause with this reason
--
-- Until adopt_done, nothing is removed by age and nothing is delivered: a message that comes over now may be old, and a
-- group's place comes after the messages. Locks: as configure_queue.
create or replace function queen.adopt_queue(
  p_name text, p_namespace text, p_task text, p_options jsonb, p_groups jsonb, p_reason text)
returns void
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_queue int8;
begin
  perform queen.configure_queue(p_name, p_namespace, p_task,
                                p_options || '{"retention_enabled": false, "max_wait_time_seconds": 0}', false);
  select q.id into v_queue from queen.queues q where q.name = p_name for key share;
  insert into queen.pauses (queue_id, paused_by, reason) values (v_queue, 'queen adopt', p_reason)
  on conflict do nothing;
  insert into queen.consumer_groups (queue_id, name, subscription_mode, subscription_from)
  select v_queue, g.name, g.mode, g."from"
    from jsonb_to_recordset(p_groups) as g (name text, mode text, "from" timestamptz)
   order by g.name
  on conflict do nothing;
end
$$;
