-- list_lanes: a page of lanes with their figures and the times of their messages.
--
-- in   p_queue    the lanes of this queue; null: of all
--      p_search   a part of the name, in any case; null: any
--      p_sort     name (within its queue)
--                 depth   the most unfinished messages first
--                 age     the oldest unfinished message first
--                 trouble the most dead letters and unfinished messages that failed before first
--      p_limit, p_offset
-- out  partition_id           null: the page is empty
--      queue_name, name, created_at, total, pending, processing
--      finished               messages that were ever stored and are neither pending nor processing
--      failed                 unfinished messages that failed before
--      dead_letters
--      oldest_at, newest_at   of the messages that the lane holds
--      waiting_since          when the oldest unfinished message was stored
--      active_at              when it was last pushed to or consumed
--      lanes                  how many there are in all; the same in every row
--
-- By name, figures are made for the page only. The log is probed twice for each lane of the page; by age,
-- once more for every lane that has unfinished messages. By trouble, the dead letters are counted.
create or replace function queen.list_lanes(p_queue int8, p_search text, p_sort text, p_limit int4, p_offset int8)
returns table (partition_id int8, queue_name text, name text, created_at timestamptz, total int8, pending int8,
               processing int8, finished int8, failed int8, dead_letters int8, oldest_at timestamptz,
               newest_at timestamptz, waiting_since timestamptz, active_at timestamptz, lanes int8)
language plpgsql stable
set search_path = queen, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  v_filter text := ' where true'
    || case when p_queue is not null then ' and p.queue_id = $1' else '' end
    || case when p_search is not null then ' and position(lower($2) in lower(p.name)) > 0' else '' end;
  v_lanes  int8;
  v_page   int8[];
begin
  execute 'select count(*) from queen.partitions p' || v_filter into v_lanes using p_queue, p_search;
  execute
    'select array(select p.'
    || case p_sort
         when 'depth' then
           'partition_id from queen.lane_figures($1, null) p' || v_filter
           || ' order by p.pending + p.processing desc, p.partition_id'
         when 'age' then
           'partition_id from queen.lane_figures($1, null) p
             left join lateral (select s.created_at from queen.segments s
                                 where s.partition_id = p.partition_id and s.first_offset <= p.place
                                 order by s.first_offset desc limit 1) s on p.pending + p.processing > 0' || v_filter
           || ' order by s.created_at, p.partition_id'
         when 'trouble' then
           'partition_id from queen.lane_figures($1, null) p
             left join (select d.partition_id, count(*) as letters from queen.dead_letters d'
           || case when p_queue is not null then ' where d.queue_id = $1' else '' end
           || ' group by d.partition_id) d on d.partition_id = p.partition_id' || v_filter
           || ' order by p.failed + coalesce(d.letters, 0) desc, p.pending + p.processing desc, p.partition_id'
         else 'id from queen.partitions p' || v_filter || ' order by p.queue_id, p.name' end
    || ' limit $3 offset $4)'
    into v_page using p_queue, p_search, p_limit, p_offset;

  return query
  select f.partition_id, q.name, f.name, f.created_at, f.next_offset - f.start_offset, f.pending, f.processing,
         f.next_offset - f.pending - f.processing, f.failed,
         (select count(*) from queen.dead_letters d where d.partition_id = f.partition_id),
         case when f.next_offset > f.start_offset then queen.stored_at(f.partition_id, f.start_offset) end,
         case when f.next_offset > f.start_offset then f.last_at end,
         case when f.pending + f.processing > 0 then queen.stored_at(f.partition_id, f.place) end,
         greatest(f.last_at, f.last_consumed_at), v_lanes
    from (select 1) as one
    left join (unnest(v_page) with ordinality as l (id, place)
               join queen.lane_figures(null, v_page) f on f.partition_id = l.id
               join queen.queues q on q.id = f.queue_id) on true
   order by l.place;
end
$$;
