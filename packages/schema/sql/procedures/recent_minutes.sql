-- recent_minutes: the last finished minute of each queue and each worker process, of the last five minutes.
--
-- out  jsonb object: "queues", summed over workers, and "workers"; each with its "age" in seconds
create or replace function queen.recent_minutes() returns jsonb
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with finished as (
    select date_trunc('minute', clock_timestamp()) - interval '5 minutes' as since,
           date_trunc('minute', clock_timestamp()) as until)
  select jsonb_build_object(
    'queues', (
      select coalesce(jsonb_agg(to_jsonb(r) - 'minute'), '[]')
        from (select distinct on (q.name) q.name as queue, m.minute,
                     extract(epoch from clock_timestamp() - m.minute)::float8 as age,
                     sum(m.push_requests) as push_requests, sum(m.push_messages) as push_messages,
                     sum(m.pop_messages) as pop_messages, sum(m.pop_empty) as pop_empty,
                     sum(m.ack_success) as ack_success, sum(m.ack_failed) as ack_failed,
                     sum(m.transactions) as transactions, sum(m.age_ms_sum) as age_ms_sum,
                     sum(m.age_count) as age_count, max(m.age_ms_max) as age_ms_max
                from finished f
                join queen.queue_minutes m on m.minute >= f.since and m.minute < f.until
                join queen.queues q on q.id = m.queue_id
               group by q.name, m.minute
               order by q.name, m.minute desc) r),
    'workers', (
      select coalesce(jsonb_agg(to_jsonb(r) - 'run_id' - 'minute' - 'updated_at'), '[]')
        from (select distinct on (m.run_id) extract(epoch from clock_timestamp() - m.minute)::float8 as age, m.*
                from finished f
                join queen.worker_minutes m on m.minute >= f.since and m.minute < f.until
               order by m.run_id, m.minute desc) r));
end;
