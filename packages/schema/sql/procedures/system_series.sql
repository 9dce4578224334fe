-- system_series: what was sampled of each worker, by stretches of time.
--
-- in   as worker_series
-- out  jsonb array of workers, each with its stretches, the oldest first, and of each gauge its average, least, most
--      and last value in the stretch
create or replace function queen.system_series(
  p_from timestamptz, p_to timestamptz, p_minutes int4, p_hostname text, p_worker int4)
returns jsonb
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with minutes as (
    select date_bin(p_minutes * interval '1 minute', m.minute, timestamptz '2000-01-01 00:00:00+00') as bucket, m.*
      from queen.worker_minutes m
     where m.minute >= date_trunc('minute', p_from) and m.minute < p_to and m.samples > 0
       and (p_hostname is null or m.hostname = p_hostname)
       and (p_worker is null or m.worker_id = p_worker)),
  leaves as (
    select m.hostname, m.port, m.worker_id, m.bucket, g.key as name,
           jsonb_build_object(
             'avg', queen.two_digits(sum((g.value ->> 'sum')::float8) / sum(m.samples)),
             'min', min((g.value ->> 'min')::float8), 'max', max((g.value ->> 'max')::float8),
             'last', (array_agg((g.value ->> 'last')::float8 order by m.minute desc, m.updated_at desc))[1]) as figures
      from minutes m cross join jsonb_each(m.gauges) as g
     group by m.hostname, m.port, m.worker_id, m.bucket, g.key),
  counts as (
    select m.hostname, m.port, m.worker_id, m.bucket, sum(m.samples) as samples
      from minutes m group by m.hostname, m.port, m.worker_id, m.bucket),
  stretches as (
    select l.hostname, l.port, l.worker_id, l.bucket, jsonb_object_agg(l.name, l.figures) as gauges
      from leaves l group by l.hostname, l.port, l.worker_id, l.bucket),
  workers as (
    select s.hostname, s.port, s.worker_id,
           jsonb_agg(jsonb_build_object('timestamp', queen.utc_seconds(s.bucket), 'sampleCount', c.samples,
                                        'gauges', s.gauges) order by s.bucket) as series
      from stretches s
      join counts c on (c.hostname, c.port, c.worker_id, c.bucket) = (s.hostname, s.port, s.worker_id, s.bucket)
     group by s.hostname, s.port, s.worker_id)
  select coalesce(jsonb_agg(jsonb_build_object('hostname', w.hostname, 'port', w.port, 'workerId', w.worker_id,
                                               'timeSeries', w.series) order by w.hostname, w.port, w.worker_id), '[]')
    from workers w;
end;
