-- pop_sm_lease: the second step of a pop: leases the next messages of a partition. Part of the SQL interface.
--
-- in   p_requests  [{idx, queue_name, partition_name, consumer_group, batch_size, lease_seconds, …}], each as
--                  pop_messages_v2
-- out  [{idx, result}]: {success: true, queue, partition, partitionId, leaseId, consumerGroup, expiresAt}, or
--      {success: false, error, messages: []}
--
-- Locks: as sql_pop.
create or replace function queen.pop_sm_lease(p_requests jsonb) returns jsonb
language plpgsql security definer
set search_path = queen, pg_temp
as $$
begin
  return queen.sql_pop(queen.sql_list(p_requests, 'requests', 1000), true, false);
end
$$;

revoke execute on function queen.pop_sm_lease(jsonb) from public;
