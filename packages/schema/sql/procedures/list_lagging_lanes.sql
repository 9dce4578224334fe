-- list_lagging_lanes: lanes whose oldest unfinished message has waited for long, the longest first.
--
-- in   p_seconds   at least so long
--      p_limit     rows at most
-- out  consumer_group, queue_name, partition_name, partition_id, lease_token, pending, oldest_at,
--      lag_seconds, last_consumed_at
--
-- One index probe of the log per lane that has unfinished messages and is old enough.
create or replace function queen.list_lagging_lanes(p_seconds float8, p_limit int4)
returns table (consumer_group text, queue_name text, partition_name text, partition_id int8, lease_token int8,
               pending int8, oldest_at timestamptz, lag_seconds float8, last_consumed_at timestamptz)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select g.name, q.name, l.name, l.partition_id, l.lease_token, l.pending, s.created_at,
         extract(epoch from clock_timestamp() - s.created_at)::float8, l.last_consumed_at
    from queen.consumer_groups g
    join queen.queues q on q.id = g.queue_id
   cross join lateral queen.group_lanes(q.id, g.id) l
   cross join lateral (select s.created_at from queen.segments s
                        where s.partition_id = l.partition_id and s.first_offset <= l.place
                        order by s.first_offset desc limit 1) s
   where l.pending > 0
     and l.partition_created_at <= clock_timestamp() - p_seconds * interval '1 second'
     and s.created_at <= clock_timestamp() - p_seconds * interval '1 second'
   order by s.created_at, l.partition_id
   limit p_limit;
end;
