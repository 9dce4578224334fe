-- ack_messages_v2: settles messages in the caller's transaction. Part of the SQL interface.
--
-- in   p_acks    [{transactionId, partitionId, status, leaseId, consumerGroup, error}]; or an object with such an
--                array in `acknowledgments` and one `consumerGroup` for all; or one such ack.
--                status: completed (the default), success, failed, retry, dlq
--      p_strict  raise QN409, so that nothing of the caller's transaction is kept, unless every message is
--                settled by this very call
-- out  [{index, transactionId, success, error, queueName, partitionName, leaseReleased, dlq}]
--
-- Raises QN400 with the item and the field; then nothing is changed. Locks: as sql_ack.
create or replace function queen.ack_messages_v2(p_acks jsonb, p_strict bool default false) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
declare
  v_acks    jsonb := queen.sql_list(p_acks, 'acknowledgments', 10000);
  v_group   text;
  v_results jsonb;
  v_refused int4;
begin
  if jsonb_typeof(p_acks) = 'object' and p_acks ? 'acknowledgments' and coalesce(p_acks ->> 'consumerGroup', '') <> '' then
    if queen.sql_name_problem(p_acks -> 'consumerGroup', 'consumerGroup', false) is not null then
      raise exception '%', substr(queen.sql_name_problem(p_acks -> 'consumerGroup', 'consumerGroup', false), 2)
        using errcode = 'QN400';
    end if;
    v_group := p_acks ->> 'consumerGroup';
  end if;
  select coalesce(jsonb_agg(jsonb_build_object(
           'index', a.item - 1, 'transactionId', a.transaction_id, 'success', a.success, 'error', a.error,
           'queueName', a.queue_name, 'partitionName', a.partition_name, 'leaseReleased', a.released, 'dlq', a.dlq)
           order by a.item), '[]'),
         min(a.item) filter (where not a.success or a.finished_before)
    into v_results, v_refused
    from queen.sql_ack(v_acks, null, v_group, '{}') a;
  if p_strict and v_refused is not null then
    raise exception '%', coalesce(v_results -> (v_refused - 1) ->> 'error', 'Message already acknowledged')
      using errcode = 'QN409', detail = 'acknowledgments[' || v_refused - 1 || ']';
  end if;
  return v_results;
end
$$;

revoke execute on function queen.ack_messages_v2(jsonb, bool) from public;
