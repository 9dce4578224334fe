-- configure_queue: makes or configures a queue and makes sure that partition `Default` exists.
--
-- in   p_options  column → value, already checked; with p_merge what is not named stays, otherwise it
--                 returns to its default. A namespace or task of null stays where p_merge says so.
-- out  the queue's row as json, and the partition's id
--
-- Locks: the queue; if encryption is switched, as require_encryption.
create or replace function queen.configure_queue(
  p_name text, p_namespace text, p_task text, p_options jsonb, p_merge bool)
returns table (queue jsonb, partition_id int8)
language plpgsql
set search_path = queen, pg_temp
as $$
#variable_conflict use_column
declare
  v_row queen.queues;
  v_id int8;
  v_defaults jsonb;
begin
  insert into queen.queues (name, namespace, task) values (p_name, '', '') on conflict do nothing;
  select q.* into v_row from queen.queues q where q.name = p_name for no key update;
  if not found then
    raise exception 'queue % was deleted meanwhile, configure it again', p_name using errcode = '40001';
  end if;
  -- What a new row of the table would have is what an option that is not named returns to.
  v_defaults := jsonb_build_object(
    'priority', 0, 'lease_time', 300, 'retry_limit', 3, 'retry_delay', 1000, 'max_queue_size', 0, 'ttl', 3600,
    'dead_letter_queue', null, 'dlq_after_max_retries', null, 'delayed_processing', 0, 'window_buffer', 0,
    'retention_seconds', 0, 'completed_retention_seconds', 0, 'retention_enabled', false,
    'encryption_enabled', false, 'max_wait_time_seconds', 0, 'dedup_window_seconds', 3600,
    'dedup_messages_min', 1000, 'dedup_messages_max', 100000);
  v_row := jsonb_populate_record(v_row, case when p_merge then p_options else v_defaults || p_options end);
  update queen.queues q
     set namespace = case when p_merge then coalesce(p_namespace, q.namespace) else coalesce(p_namespace, '') end,
         task = case when p_merge then coalesce(p_task, q.task) else coalesce(p_task, '') end,
         priority = v_row.priority, lease_time = v_row.lease_time, retry_limit = v_row.retry_limit,
         retry_delay = v_row.retry_delay, max_queue_size = v_row.max_queue_size, ttl = v_row.ttl,
         dead_letter_queue = v_row.dead_letter_queue, dlq_after_max_retries = v_row.dlq_after_max_retries,
         delayed_processing = v_row.delayed_processing, window_buffer = v_row.window_buffer,
         retention_seconds = v_row.retention_seconds,
         completed_retention_seconds = v_row.completed_retention_seconds,
         retention_enabled = v_row.retention_enabled, encryption_enabled = v_row.encryption_enabled,
         max_wait_time_seconds = v_row.max_wait_time_seconds,
         dedup_window_seconds = v_row.dedup_window_seconds, dedup_messages_min = v_row.dedup_messages_min,
         dedup_messages_max = v_row.dedup_messages_max
   where q.id = v_row.id
  returning q.* into v_row;
  insert into queen.partitions (queue_id, name, encryption_required)
  values (v_row.id, 'Default', v_row.encryption_enabled)
  on conflict do nothing;
  select p.id into v_id from queen.partitions p where p.queue_id = v_row.id and p.name = 'Default';
  return query select to_jsonb(v_row), v_id;
end
$$;
