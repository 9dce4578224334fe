-- list_named_traces: the traces that have a name, of all messages, the oldest first.
--
-- in   p_name, p_limit, p_offset
-- out  trace_id                null: the page is empty
--      partition_id, queue_name, partition_name, transaction_id, event_type, data, consumer_group, worker_id,
--      created_at, names
--      fragment                of the message; null: it is gone from the log and is no dead letter
--      total                   traces with the name; the same in every row
--
-- One index probe of the log per trace of the page.
create or replace function queen.list_named_traces(p_name text, p_limit int4, p_offset int8)
returns table (trace_id int8, partition_id int8, queue_name text, partition_name text, transaction_id text,
               event_type text, data json, consumer_group text, worker_id text, created_at timestamptz,
               names text[], fragment bytea, total int8)
language sql stable
set search_path = queen, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
  select t.id, t.partition_id, q.name, p.name, t.transaction_id, t.event_type, t.data, t.consumer_group, t.worker_id,
         t.created_at, array(select n.trace_name from queen.message_trace_names n where n.trace_id = t.id order by 1),
         coalesce((select nullif(queen.fragment_at(s.ends, s.body, (t.message_offset - s.first_offset)::int4), '')
                     from (select s.* from queen.segments s
                            where s.partition_id = t.partition_id and s.first_offset <= t.message_offset
                            order by s.first_offset desc limit 1) s
                    where t.message_offset < s.first_offset + s.count),
                  (select d.fragment from queen.dead_letters d
                    where d.partition_id = t.partition_id and d.message_offset = t.message_offset limit 1)),
         c.total
    from (select count(*) as total from queen.message_trace_names n where n.trace_name = p_name) c
    left join (select n.trace_id from queen.message_trace_names n
                where n.trace_name = p_name order by n.trace_id limit p_limit offset p_offset) page on true
    left join queen.message_traces t on t.id = page.trace_id
    left join queen.partitions p on p.id = t.partition_id
    left join queen.queues q on q.id = p.queue_id
   order by page.trace_id;
end;
