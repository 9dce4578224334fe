-- push_messages_v2: stores messages in the caller's transaction. Part of the SQL interface.
--
-- in   p_items  [{queue, partition, transactionId, traceId, producerSub, payload | data | payloadText}], or an
--               object with such an array in `items`; only `queue` is required
-- out  one object per item, in their order: {index, status, transaction_id, message_id, queueName}, and of
--      messages that are queued {partition_id, trace_id}; status: queued or duplicate
--
-- The messages are there when the caller commits, and never before. Raises QN400 with the item and the
-- field; then nothing is stored. Locks: as sql_push.
create or replace function queen.push_messages_v2(p_items jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return (select coalesce(jsonb_agg(
                   jsonb_build_object(
                     'index', p.item - 1, 'status', case when p.is_new then 'queued' else 'duplicate' end,
                     'transaction_id', p.transaction_id,
                     'message_id', queen.message_id(p.partition_id, p.message_offset), 'queueName', p.queue)
                   || case when p.is_new
                           then jsonb_build_object('partition_id', queen.partition_uuid(p.partition_id),
                                                   'trace_id', p.trace_id)
                           else '{}' end
                   order by p.item), '[]')
            from queen.sql_push(queen.sql_list(p_items, 'items', 10000), null, 'null') p);
end
$$;

revoke execute on function queen.push_messages_v2(jsonb) from public;
