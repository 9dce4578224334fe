-- touch_watermarks: notes that wildcard pops of these groups found nothing, at most every 30 seconds each.
create or replace function queen.touch_watermarks(p_queue text[], p_group text[]) returns void
language sql
set search_path = queen, pg_temp
begin atomic
  insert into queen.consumer_watermarks as w (queue_name, consumer_group)
  select t.queue_name, t.consumer_group
    from (select distinct * from unnest(p_queue, p_group) as t (queue_name, consumer_group)) t
   order by 1, 2
  on conflict (queue_name, consumer_group) do update
     set last_empty_scan_at = clock_timestamp(), updated_at = clock_timestamp()
   where w.updated_at < clock_timestamp() - interval '30 seconds';
end;
