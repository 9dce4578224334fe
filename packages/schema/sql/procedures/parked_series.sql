-- parked_series: how many consumers waited at each worker, by stretches of time, the oldest first.
--
-- in   p_from, p_to, p_minutes   as worker_series; p_queue   only this queue; null: any
-- out  jsonb array of the stretches in which somebody waited
create or replace function queen.parked_series(p_from timestamptz, p_to timestamptz, p_minutes int4, p_queue text)
returns jsonb
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select coalesce(jsonb_agg(jsonb_build_object(
           'bucket', queen.utc_seconds(b.bucket), 'queueName', b.name, 'hostname', b.hostname,
           'workerId', b.worker_id, 'parkedCount', b.parked) order by b.bucket, b.name, b.hostname, b.worker_id), '[]')
    from (select date_bin(p_minutes * interval '1 minute', m.minute, timestamptz '2000-01-01 00:00:00+00') as bucket,
                 m.name, m.hostname, m.worker_id, max(m.parked) as parked
            from (select m.minute, q.name, m.hostname, m.worker_id, sum(m.parked) as parked
                    from queen.queue_minutes m join queen.queues q on q.id = m.queue_id
                   where m.minute >= date_trunc('minute', p_from) and m.minute < p_to and m.parked > 0
                     and (p_queue is null or q.name = p_queue)
                   group by m.minute, q.name, m.hostname, m.worker_id) m
           group by 1, 2, 3, 4) b;
end;
