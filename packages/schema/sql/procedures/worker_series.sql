-- worker_series: what workers did, summed up by stretches of time, the newest first; only stretches with figures.
--
-- in   p_from, p_to            minutes that begin in [p_from's minute, p_to)
--      p_minutes               length of a stretch
--      p_hostname, p_worker    only this host, only this worker; null: any
-- out  jsonb array; rates are per second of the time that has passed of a stretch
create or replace function queen.worker_series(
  p_from timestamptz, p_to timestamptz, p_minutes int4, p_hostname text, p_worker int4)
returns jsonb
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with stretches as (
    select date_bin(p_minutes * interval '1 minute', m.minute, timestamptz '2000-01-01 00:00:00+00') as bucket,
           m.*,
           (m.gauges -> 'event_loop_lag_ms' ->> 'sum')::float8 as lag_sum,
           (m.gauges -> 'event_loop_lag_ms' ->> 'max')::float8 as lag_max,
           (m.gauges -> 'free_slots' ->> 'sum')::float8 as free_sum,
           (m.gauges -> 'free_slots' ->> 'min')::float8 as free_min,
           (m.gauges -> 'job_queue' ->> 'sum')::float8 as jobs_sum,
           (m.gauges -> 'job_queue' ->> 'max')::float8 as jobs_max,
           (m.gauges -> 'cpu_user_us' ->> 'sum')::float8 as user_sum,
           (m.gauges -> 'cpu_system_us' ->> 'sum')::float8 as system_sum,
           (m.gauges -> 'rss_bytes' ->> 'sum')::float8 as rss_sum,
           (m.gauges -> 'pool_size' ->> 'sum')::float8 as size_sum,
           (m.gauges -> 'pool_idle' ->> 'sum')::float8 as idle_sum,
           (m.gauges -> 'pool_active' ->> 'sum')::float8 as active_sum
      from queen.worker_minutes m
     where m.minute >= date_trunc('minute', p_from) and m.minute < p_to
       and (p_hostname is null or m.hostname = p_hostname)
       and (p_worker is null or m.worker_id = p_worker)),
  minutes as (                                -- workers at one time add up
    select s.bucket, s.minute,
           sum(s.user_sum / nullif(s.samples, 0)) as cpu_user, sum(s.system_sum / nullif(s.samples, 0)) as cpu_system,
           sum(s.rss_sum / nullif(s.samples, 0)) as rss, sum(s.size_sum / nullif(s.samples, 0)) as size,
           sum(s.idle_sum / nullif(s.samples, 0)) as idle, sum(s.active_sum / nullif(s.samples, 0)) as active
      from stretches s group by s.bucket, s.minute),
  states as (                                 -- times are averaged
    select m.bucket, avg(m.cpu_user) as cpu_user, avg(m.cpu_system) as cpu_system, avg(m.rss) as rss,
           avg(m.size) as size, avg(m.idle) as idle, avg(m.active) as active
      from minutes m group by m.bucket),
  sums as (
    select s.bucket, sum(s.push_requests) as push_requests, sum(s.push_messages) as push_messages,
           sum(s.pop_requests) as pop_requests, sum(s.pop_messages) as pop_messages, sum(s.pop_empty) as pop_empty,
           sum(s.ack_requests) as ack_requests, sum(s.ack_messages) as ack_messages, sum(s.ack_success) as ack_success,
           sum(s.ack_failed) as ack_failed, sum(s.transactions) as transactions, sum(s.dead_lettered) as dead_lettered,
           sum(s.database_errors) as database_errors, sum(s.age_ms_sum) as age_sum, sum(s.age_count) as age_count,
           max(s.age_ms_max) as age_max, nullif(sum(s.samples), 0) as samples, sum(s.lag_sum) as lag_sum,
           max(s.lag_max) as lag_max, sum(s.free_sum) as free_sum, min(s.free_min) as free_min,
           sum(s.jobs_sum) as jobs_sum, max(s.jobs_max) as jobs_max,
           greatest(1, extract(epoch from least(s.bucket + p_minutes * interval '1 minute', clock_timestamp())
                                          - s.bucket))::float8 as seconds
      from stretches s group by s.bucket)
  select coalesce(jsonb_agg(jsonb_build_object(
           'timestamp', queen.utc_seconds(s.bucket),
           'pushRequests', s.push_requests, 'pushMessages', s.push_messages,
           'popRequests', s.pop_requests, 'popMessages', s.pop_messages, 'popEmpty', s.pop_empty,
           'ackRequests', s.ack_requests, 'ackMessages', s.ack_messages, 'ackSuccess', s.ack_success,
           'ackFailed', s.ack_failed, 'transactions', s.transactions, 'dlqCount', s.dead_lettered,
           'dbErrors', s.database_errors,
           'jobsDone', s.push_requests + s.pop_requests + s.ack_requests + s.transactions,
           'pushPerSecond', queen.two_digits(s.push_messages / s.seconds),
           'popPerSecond', queen.two_digits(s.pop_messages / s.seconds),
           'ackPerSecond', queen.two_digits(s.ack_success / s.seconds),
           'avgLagMs', queen.two_digits(coalesce(s.age_sum / nullif(s.age_count, 0), 0)),
           'maxLagMs', queen.two_digits(s.age_max), 'lagCount', s.age_count,
           'avgEventLoopLagMs', queen.two_digits(coalesce(s.lag_sum / s.samples, 0)),
           'maxEventLoopLagMs', queen.two_digits(coalesce(s.lag_max, 0)),
           'avgFreeSlots', queen.two_digits(coalesce(s.free_sum / s.samples, 0)),
           'minFreeSlots', coalesce(s.free_min, 0),
           'avgJobQueueSize', queen.two_digits(coalesce(s.jobs_sum / s.samples, 0)),
           'maxJobQueueSize', coalesce(s.jobs_max, 0),
           'cpuUserPct', queen.two_digits(t.cpu_user / 10000), 'cpuSystemPct', queen.two_digits(t.cpu_system / 10000),
           'rssMb', queen.two_digits(t.rss / 1048576), 'poolSize', queen.two_digits(t.size),
           'poolIdle', queen.two_digits(t.idle), 'poolActive', queen.two_digits(t.active)) order by s.bucket desc), '[]')
    from sums s join states t on t.bucket = s.bucket;
end;
