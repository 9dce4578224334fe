-- pop_messages_v2: pops messages of one partition, or of any, in the caller's transaction. Part of the SQL
-- interface.
--
-- in   p_request  {queue_name, partition_name, consumer_group, batch_size, lease_seconds, sub_mode, sub_from,
--                 partitions, auto_ack, data_text}; only queue_name is required
-- out  {success: true, queue, partition, partitionId, leaseId, consumerGroup, partitionsClaimed, messages}, or
--      {success: false, error, messages: []}, where error is the reason why there are none
--
-- Never waits for messages. Raises QN400 with the field. Locks: as sql_pop.
create or replace function queen.pop_messages_v2(p_request jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return queen.sql_pop(jsonb_build_array(p_request), false, true) -> 0 -> 'result';
end
$$;

revoke execute on function queen.pop_messages_v2(jsonb) from public;
