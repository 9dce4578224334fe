-- list_traces: the traces of a message, the oldest first.
--
-- in   p_partition, p_transaction_id   of several messages with one transactionId, those of all
--      p_limit, p_offset
-- out  trace_id, event_type, data, consumer_group, worker_id, created_at, names
create or replace function queen.list_traces(p_partition int8, p_transaction_id text, p_limit int4, p_offset int8)
returns table (trace_id int8, event_type text, data json, consumer_group text, worker_id text,
               created_at timestamptz, names text[])
language sql stable
set search_path = queen, pg_temp
begin atomic
  select t.id, t.event_type, t.data, t.consumer_group, t.worker_id, t.created_at,
         array(select n.trace_name from queen.message_trace_names n where n.trace_id = t.id order by 1)
    from queen.message_traces t
   where t.partition_id = p_partition and t.transaction_id = p_transaction_id
   order by t.id
   limit p_limit offset p_offset;
end;
