-- queue_series: what was done with queues, summed up by stretches of time; only stretches with figures.
--
-- in   p_from, p_to, p_minutes         as worker_series
--      p_queue, p_namespace, p_task    only these queues; null: any
-- out  one row per stretch and queue; rates are per second of the time that has passed of the stretch
create or replace function queen.queue_series(
  p_from timestamptz, p_to timestamptz, p_minutes int4, p_queue text, p_namespace text, p_task text)
returns table (bucket timestamptz, queue_name text, seconds float8, push_requests int8, push_messages int8,
               pop_requests int8, pop_messages int8, pop_empty int8, ack_requests int8, ack_success int8,
               ack_failed int8, transactions int8, dead_lettered int8, partitions_created int8,
               partitions_deleted int8, partitions int8, age_ms_sum float8, age_count int8, age_ms_max float8,
               parked int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with chosen as (
    select q.id, q.name from queen.queues q
     where (p_queue is null or q.name = p_queue) and (p_namespace is null or q.namespace = p_namespace)
       and (p_task is null or q.task = p_task)),
  minutes as (                                -- workers at one time add up
    select m.queue_id, m.minute, sum(m.push_requests) as push_requests, sum(m.push_messages) as push_messages,
           sum(m.pop_requests) as pop_requests, sum(m.pop_messages) as pop_messages, sum(m.pop_empty) as pop_empty,
           sum(m.ack_requests) as ack_requests, sum(m.ack_success) as ack_success, sum(m.ack_failed) as ack_failed,
           sum(m.transactions) as transactions, sum(m.dead_lettered) as dead_lettered,
           sum(m.partitions_deleted) as partitions_deleted, sum(m.age_ms_sum) as age_ms_sum,
           sum(m.age_count) as age_count, max(m.age_ms_max) as age_ms_max, sum(m.parked) as parked
      from queen.queue_minutes m join chosen c on c.id = m.queue_id
     where m.minute >= date_trunc('minute', p_from) and m.minute < p_to
     group by m.queue_id, m.minute),
  buckets as (
    select date_bin(p_minutes * interval '1 minute', m.minute, timestamptz '2000-01-01 00:00:00+00') as bucket, m.*
      from minutes m),
  sums as (
    select b.bucket, b.queue_id, sum(b.push_requests) as push_requests, sum(b.push_messages) as push_messages,
           sum(b.pop_requests) as pop_requests, sum(b.pop_messages) as pop_messages, sum(b.pop_empty) as pop_empty,
           sum(b.ack_requests) as ack_requests, sum(b.ack_success) as ack_success, sum(b.ack_failed) as ack_failed,
           sum(b.transactions) as transactions, sum(b.dead_lettered) as dead_lettered,
           sum(b.partitions_deleted) as partitions_deleted, sum(b.age_ms_sum) as age_ms_sum,
           sum(b.age_count) as age_count, max(b.age_ms_max) as age_ms_max, max(b.parked) as parked
      from buckets b group by b.bucket, b.queue_id),
  made as (
    select p.queue_id, date_bin(p_minutes * interval '1 minute', p.created_at, timestamptz '2000-01-01 00:00:00+00')
             as bucket, count(*) as partitions
      from queen.partitions p join chosen c on c.id = p.queue_id
     where p.created_at >= date_trunc('minute', p_from) and p.created_at < p_to
     group by 1, 2),
  there as (
    select p.queue_id, count(*) as partitions
      from queen.partitions p join chosen c on c.id = p.queue_id group by p.queue_id)
  select s.bucket, c.name,
         greatest(1, extract(epoch from least(s.bucket + p_minutes * interval '1 minute', clock_timestamp())
                                        - s.bucket))::float8,
         s.push_requests::int8, s.push_messages::int8, s.pop_requests::int8, s.pop_messages::int8, s.pop_empty::int8,
         s.ack_requests::int8, s.ack_success::int8, s.ack_failed::int8, s.transactions::int8, s.dead_lettered::int8,
         coalesce(made.partitions, 0), s.partitions_deleted::int8, coalesce(there.partitions, 0),
         s.age_ms_sum, s.age_count::int8, s.age_ms_max, s.parked::int8
    from sums s
    join chosen c on c.id = s.queue_id
    left join made on made.queue_id = s.queue_id and made.bucket = s.bucket
    left join there on there.queue_id = s.queue_id;
end;
