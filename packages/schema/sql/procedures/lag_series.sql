-- lag_series: how far a consumer group was behind in a queue, by stretches of time, the oldest first.
--
-- in   p_from, p_to, p_minutes   as worker_series
--      p_queue, p_group          their names
-- out  bucket    the stretch; those of which nothing is known are left out
--      pending   most unfinished messages that were seen in it
--      age_ms    the greatest age of the oldest of them
create or replace function queen.lag_series(
  p_from timestamptz, p_to timestamptz, p_minutes int4, p_queue text, p_group text)
returns table (bucket timestamptz, pending int8, age_ms int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  with minutes as materialized (
    select m.minute, m.pending, m.age_ms,
           date_bin(p_minutes * interval '1 minute', m.minute, timestamptz '2000-01-01 00:00:00+00') as bucket
      from queen.queues q
      join queen.consumer_groups g on g.queue_id = q.id
      join queen.group_minutes m on m.group_id = g.id
     where q.name = p_queue and g.name = p_group
       and m.minute >= date_trunc('minute', p_from) - interval '2 hours' and m.minute < p_to),
  seen as (
    select m.bucket, max(m.pending) as pending, max(m.age_ms) as age_ms from minutes m group by m.bucket),
  buckets as (
    select b.bucket                           -- none where nothing is known
      from generate_series(date_bin(p_minutes * interval '1 minute',
                                    (select greatest(p_from, min(m.minute)) from minutes m having count(*) > 0),
                                    timestamptz '2000-01-01 00:00:00+00'),
                           least(p_to, clock_timestamp()) - interval '1 microsecond',
                           p_minutes * interval '1 minute') as b (bucket))
  select b.bucket, coalesce(s.pending, 0), coalesce(s.age_ms, 0)
    from buckets b
    left join seen s on s.bucket = b.bucket
   where s.bucket is not null
      or (select m.pending = 0 and m.minute >= b.bucket - interval '2 hours'
            from minutes m where m.minute < b.bucket order by m.minute desc limit 1)
   order by b.bucket;
end;
