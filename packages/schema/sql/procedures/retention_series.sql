-- retention_series: what sweeps took away from readers, over time.
--
-- in   p_from, p_to, p_minutes   the range, and how much of it a point stands for
--      p_queue                   null: all
-- out  one row per point in which something was taken, the oldest first: messages by kind, and how many rounds
--      took them
create or replace function queen.retention_series(p_from timestamptz, p_to timestamptz, p_minutes int4, p_queue text)
returns table (bucket timestamptz, retention int8, completed_retention int8, eviction int8, events int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select h.bucket,
         coalesce(sum(h.messages) filter (where h.kind = 'retention'), 0)::int8,
         coalesce(sum(h.messages) filter (where h.kind = 'completed_retention'), 0)::int8,
         coalesce(sum(h.messages) filter (where h.kind = 'max_wait_time_eviction'), 0)::int8,
         count(*)
    from (select date_bin(p_minutes * interval '1 minute', r.at, timestamptz '2000-01-01Z') as bucket, r.kind, r.messages
            from queen.retention_history r
           where r.at >= p_from and r.at <= p_to
             and (p_queue is null or r.queue_id = (select q.id from queen.queues q where q.name = p_queue))) h
   group by h.bucket
   order by h.bucket;
end;
