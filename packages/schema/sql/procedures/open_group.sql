-- open_group: finds a consumer group of a queue, and records it with its subscription at its first pop.
--
-- in   p_mode   'all', 'new' (from now on) or 'timestamp' (from p_from on)
-- out  queue_id  null: there is no such queue
--      group_id
--
-- A group that starts at a point in time is recorded even where the queue does not exist yet: the queue is
-- made, so that the first message pushed later is not taken for history.
create or replace function queen.open_group(p_queue text, p_group text, p_mode text, p_from timestamptz)
returns table (queue_id int8, group_id int4)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_queue int8;
begin
  select id into v_queue from queen.queues where name = p_queue;
  if v_queue is null and p_mode <> 'all' then
    perform 1 from queen.open_lanes(array[p_queue], array['Default'], true);
    select id into v_queue from queen.queues where name = p_queue;
  end if;
  if v_queue is null then
    return query select null::int8, null::int4;
    return;
  end if;
  -- A queue that is being deleted is waited for; once it is gone, nothing is recorded and nothing returned.
  insert into queen.consumer_groups (queue_id, name, subscription_mode, subscription_from)
  select q.id, p_group, p_mode,
         case p_mode when 'new' then clock_timestamp() when 'timestamp' then p_from end
    from queen.queues q
   where q.id = v_queue
     and not exists (select 1 from queen.consumer_groups g where g.queue_id = v_queue and g.name = p_group)
     for key share of q
  on conflict do nothing;
  return query select v_queue, g.id from queen.consumer_groups g where g.queue_id = v_queue and g.name = p_group;
end
$$;
