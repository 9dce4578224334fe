-- retention_series: what sweeps took away from readers, over time.
--
-- in   p_from, p_to   null: the hour before p_to; now
--      p_queue        null: all
-- out  the first row has the range and bucket_minutes, and null as bucket; then one row per bucket in which
--      something was taken, the oldest first: messages by kind, and how many rounds took them
create or replace function queen.retention_series(p_from timestamptz, p_to timestamptz, p_queue text)
returns table (from_at timestamptz, to_at timestamptz, bucket_minutes int4, bucket timestamptz, retention int8,
               completed_retention int8, eviction int8, events int8)
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
declare
  v_to      timestamptz := coalesce(p_to, clock_timestamp());
  v_from    timestamptz := coalesce(p_from, v_to - interval '1 hour');
  v_minutes int4 := queen.bucket_minutes(v_from, v_to);
begin
  return query select v_from, v_to, v_minutes, null::timestamptz, 0::int8, 0::int8, 0::int8, 0::int8;
  return query
  select v_from, v_to, v_minutes, h.bucket,
         coalesce(sum(h.messages) filter (where h.kind = 'retention'), 0)::int8,
         coalesce(sum(h.messages) filter (where h.kind = 'completed_retention'), 0)::int8,
         coalesce(sum(h.messages) filter (where h.kind = 'max_wait_time_eviction'), 0)::int8,
         count(*)
    from (select date_bin(v_minutes * interval '1 minute', r.at, timestamptz '2000-01-01Z') as bucket, r.kind, r.messages
            from queen.retention_history r
           where r.at >= v_from and r.at <= v_to
             and (p_queue is null or r.queue_id = (select q.id from queen.queues q where q.name = p_queue))) h
   group by h.bucket
   order by h.bucket;
end
$$;
