-- list_group_lanes: a consumer group's places, in all queues that have a group of this name.
--
-- in   p_group           its name
--      p_queue           only this queue; null: all
--      p_limit, p_offset the page, in the order of queue names and partitions
-- out  queue_name, partition_name, partition_id, lease_token, lease_active, pending, finished, lag_seconds,
--      last_consumed_at, total (lanes in all; the same in every row)
--
-- One index probe of the log per lane of the page.
create or replace function queen.list_group_lanes(p_group text, p_queue text, p_limit int4, p_offset int8)
returns table (queue_name text, partition_name text, partition_id int8, lease_token int8, lease_active bool,
               pending int8, finished int8, lag_seconds float8, last_consumed_at timestamptz, total int8)
language sql stable
set search_path = queen, pg_temp
set jit = off
begin atomic
  select page.queue_name, page.name, page.partition_id, page.lease_token,
         coalesce(page.lease_expires_at > clock_timestamp(), false), page.pending, page.finished,
         case when page.pending > 0
              then (select extract(epoch from clock_timestamp() - s.created_at)::float8 from queen.segments s
                     where s.partition_id = page.partition_id and s.first_offset <= page.place
                     order by s.first_offset desc limit 1)
              else 0 end, page.last_consumed_at, page.total
    from (select q.name as queue_name, l.*, count(*) over () as total
            from queen.consumer_groups g
            join queen.queues q on q.id = g.queue_id
           cross join lateral queen.group_lanes(q.id, g.id) l
           where g.name = p_group and (p_queue is null or q.name = p_queue)
           order by q.name, l.partition_id
           limit p_limit offset p_offset) page
   order by page.queue_name, page.partition_id;
end;
