-- add_trace: notes something about a message, under names; returns the trace's id. Null: there is no such partition.
--
-- Locks: the partition's row for key share, so that a partition that is being deleted is waited for.
create or replace function queen.add_trace(
  p_partition int8, p_offset int8, p_transaction_id text, p_group text, p_event_type text, p_data json,
  p_worker_id text, p_names text[])
returns int8
language plpgsql
set search_path = queen, pg_temp
as $$
declare
  v_trace int8;
begin
  insert into queen.message_traces
    (partition_id, message_offset, transaction_id, consumer_group, event_type, data, worker_id)
  select p.id, p_offset, p_transaction_id, p_group, p_event_type, p_data, p_worker_id
    from queen.partitions p where p.id = p_partition
     for key share
  returning id into v_trace;
  if v_trace is not null then
    insert into queen.message_trace_names (trace_name, trace_id)
    select distinct n.name, v_trace from unnest(p_names) as n (name);
  end if;
  return v_trace;
end
$$;
