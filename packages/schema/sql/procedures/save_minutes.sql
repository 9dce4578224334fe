-- save_minutes: writes what a worker did in its latest minutes, as it stands now, and adds what is new to the totals.
--
-- in   p_run, p_hostname, p_port, p_worker, p_pid   who
--      p_workers   jsonb array of the columns of worker_minutes, one element per minute
--      p_queues    jsonb array of the columns of queue_minutes, one element per minute and queue
-- out  the database's clock
--
-- Writing the same again changes nothing, so a call whose answer was lost is made again. A queue that is gone, or being
-- deleted, is left out. Locks: the worker's own rows, key-share on queues without waiting, rows of the totals by name.
create or replace function queen.save_minutes(
  p_run uuid, p_hostname text, p_port int4, p_worker int4, p_pid int4, p_workers jsonb, p_queues jsonb)
returns timestamptz
language plpgsql
set search_path = queen, pg_temp
set jit = off
as $$
begin
  insert into queen.metric_totals as t (name, value)
  select d.name, sum(d.value)::int8
    from (select c.name, (w.row ->> c.name)::int8 as value
            from jsonb_array_elements(p_workers) as w (row)
           cross join unnest(queen.metric_counters()) as c (name)
          union all
          select c.name, -(to_jsonb(w) ->> c.name)::int8
            from jsonb_array_elements(p_workers) as g (row)
            join queen.worker_minutes w on w.minute = (g.row ->> 'minute')::timestamptz and w.run_id = p_run
           cross join unnest(queen.metric_counters()) as c (name)) d
   group by d.name
  having sum(d.value) <> 0
   order by d.name
  on conflict (name) do update set value = t.value + excluded.value;

  insert into queen.worker_minutes as m (
    minute, run_id, hostname, port, worker_id, pid, push_requests, push_messages, pop_requests, pop_messages, pop_empty,
    ack_requests, ack_messages, ack_success, ack_failed, transactions, dead_lettered, database_errors,
    age_ms_sum, age_count, age_ms_max, samples, gauges)
  select w.minute, p_run, p_hostname, p_port, p_worker, p_pid, w.push_requests, w.push_messages, w.pop_requests,
         w.pop_messages, w.pop_empty, w.ack_requests, w.ack_messages, w.ack_success, w.ack_failed, w.transactions,
         w.dead_lettered, w.database_errors, w.age_ms_sum, w.age_count, w.age_ms_max, w.samples, w.gauges
    from jsonb_populate_recordset(null::queen.worker_minutes, p_workers) w
  on conflict (minute, run_id) do update
     set push_requests = excluded.push_requests, push_messages = excluded.push_messages,
         pop_requests = excluded.pop_requests, pop_messages = excluded.pop_messages, pop_empty = excluded.pop_empty,
         ack_requests = excluded.ack_requests, ack_messages = excluded.ack_messages,
         ack_success = excluded.ack_success, ack_failed = excluded.ack_failed,
         transactions = excluded.transactions, dead_lettered = excluded.dead_lettered,
         database_errors = excluded.database_errors, age_ms_sum = excluded.age_ms_sum,
         age_count = excluded.age_count, age_ms_max = excluded.age_ms_max,
         samples = excluded.samples, gauges = excluded.gauges, updated_at = clock_timestamp();

  with there as (
    select q.id from queen.queues q
     where q.id in (select (g.row ->> 'queue_id')::int8 from jsonb_array_elements(p_queues) as g (row))
       for key share of q skip locked)
  insert into queen.queue_minutes as m (
    minute, queue_id, run_id, hostname, worker_id, push_requests, push_messages, pop_requests, pop_messages, pop_empty,
    ack_requests, ack_success, ack_failed, transactions, dead_lettered, age_ms_sum, age_count, age_ms_max, parked)
  select r.minute, r.queue_id, p_run, p_hostname, p_worker, r.push_requests, r.push_messages, r.pop_requests,
         r.pop_messages, r.pop_empty, r.ack_requests, r.ack_success, r.ack_failed, r.transactions, r.dead_lettered,
         r.age_ms_sum, r.age_count, r.age_ms_max, r.parked
    from jsonb_populate_recordset(null::queen.queue_minutes, p_queues) r
    join there on there.id = r.queue_id
  on conflict (queue_id, minute, run_id) do update
     set push_requests = excluded.push_requests, push_messages = excluded.push_messages,
         pop_requests = excluded.pop_requests, pop_messages = excluded.pop_messages, pop_empty = excluded.pop_empty,
         ack_requests = excluded.ack_requests, ack_success = excluded.ack_success, ack_failed = excluded.ack_failed,
         transactions = excluded.transactions, dead_lettered = excluded.dead_lettered,
         age_ms_sum = excluded.age_ms_sum, age_count = excluded.age_count, age_ms_max = excluded.age_ms_max,
         parked = excluded.parked, updated_at = clock_timestamp();

  return clock_timestamp();
end
$$;
