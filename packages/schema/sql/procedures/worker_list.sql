-- worker_list: the workers that did something in a stretch of time, each once however often its process was replaced.
--
-- in   as worker_series
-- out  jsonb array, by host, port and worker
create or replace function queen.worker_list(
  p_from timestamptz, p_to timestamptz, p_hostname text, p_worker int4)
returns jsonb
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select coalesce(jsonb_agg(jsonb_build_object(
           'hostname', w.hostname, 'workerId', w.worker_id,
           'avgEventLoopLagMs', queen.two_digits(coalesce(w.lag_sum / w.samples, 0)),
           'maxEventLoopLagMs', queen.two_digits(coalesce(w.lag_max, 0)),
           'freeSlots', coalesce((w.latest -> 'free_slots' ->> 'last')::float8, 0),
           'dbConnections', coalesce((w.latest -> 'pool_size' ->> 'last')::float8, 0),
           'jobQueueSize', coalesce((w.latest -> 'job_queue' ->> 'last')::float8, 0),
           'messagesProcessed', w.processed,
           'lastSeen', to_char(w.last_seen at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
         order by w.hostname, w.port, w.worker_id), '[]')
    from (select m.hostname, m.port, m.worker_id, nullif(sum(m.samples), 0) as samples,
                 sum((m.gauges -> 'event_loop_lag_ms' ->> 'sum')::float8) as lag_sum,
                 max((m.gauges -> 'event_loop_lag_ms' ->> 'max')::float8) as lag_max,
                 (array_agg(m.gauges order by m.minute desc, m.updated_at desc))[1] as latest,
                 sum(m.ack_success) as processed, max(m.updated_at) as last_seen
            from queen.worker_minutes m
           where m.minute >= date_trunc('minute', p_from) and m.minute < p_to
             and (p_hostname is null or m.hostname = p_hostname)
             and (p_worker is null or m.worker_id = p_worker)
           group by m.hostname, m.port, m.worker_id) w;
end;
