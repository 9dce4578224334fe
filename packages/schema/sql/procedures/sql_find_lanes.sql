-- sql_find_lanes: lanes of a queue that have something to deliver to a group now. Part of the SQL interface's
-- inside.
--
-- in   p_wanted   how many at most
--      p_skip     lanes that are not wanted
-- out  lanes      none is paused; each has a cursor of the group, locked by the caller's transaction
--      complete   whether the whole queue was looked at; if not, and nothing was found, there may be more
--
-- Of up to 1,000 lanes the one served longest ago comes first; one never served counts from when it was made.
-- A larger queue is looked at in pages of 1,000, from a random place on, 50 pages at most.
--
-- Locks: cursor rows, never waiting. A cursor that is missing is made; who makes it holds an advisory lock
-- on it, so that another pop of any lane passes on instead of waiting.
create or replace function queen.sql_find_lanes(
  p_queue int8, p_group int4, p_wanted int4, p_skip int8[], out lanes int8[], out complete bool)
language plpgsql
set search_path = queen, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now       timestamptz := clock_timestamp();
  v_page_max  constant int4 := 1000;
  v_pages_max constant int4 := 50;
  v_page      int8[];
  v_start     int8 := 0;                     -- the first id that was looked at
  v_after     int8 := 0;
  v_wrapped   bool := true;
  v_stopped   bool;
  v_skip      int8[];
  r record;
begin
  lanes := '{}';
  complete := true;
  select s.everything, p_skip || s.lanes into v_stopped, v_skip from queen.sql_pauses(p_queue, p_group) s;
  if v_stopped then
    return;
  end if;
  select array_agg(p.id) into v_page
    from (select id from queen.partitions where queue_id = p_queue order by id limit v_page_max) p;
  if cardinality(v_page) = v_page_max then
    select v_page[1] + floor(random() * (p.id - v_page[1] + 1))::int8 into v_start
      from queen.partitions p where p.queue_id = p_queue order by p.id desc limit 1;
    v_after := v_start - 1;
    v_wrapped := false;
    v_page := null;
  end if;

  for page in 1 .. v_pages_max loop
    if v_page is null then
      select array_agg(p.id order by p.id) into v_page
        from (select id from queen.partitions
               where queue_id = p_queue and id > v_after and (not v_wrapped or id < v_start)
               order by id limit v_page_max) p;
    end if;
    for r in
      select p.id, c.partition_id is not null as known
        from queen.partitions p
        join queen.queues q on q.id = p.queue_id
        join queen.consumer_groups g on g.id = p_group
        left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = p_group
       cross join lateral (select greatest(coalesce(c.committed, 0), p.start_offset) as place) f
       where p.id = any (v_page) and p.id <> all (v_skip)
         and p.next_offset > f.place
         and (c.partition_id is not null or g.subscription_from is null or p.last_at >= g.subscription_from)
         and (c.lease_token is null or c.lease_expires_at <= v_now)
         and (c.not_before is null or c.not_before <= v_now)
         and (coalesce(q.ttl, 0) = 0 or p.last_at >= v_now - q.ttl * interval '1 second')
         and (q.window_buffer = 0 or p.last_at <= v_now - q.window_buffer * interval '1 second')
         and (q.delayed_processing = 0
              or v_now - q.delayed_processing * interval '1 second' >= (
                   select s.created_at from queen.segments s
                    where s.partition_id = p.id and s.first_offset <= f.place
                    order by s.first_offset desc limit 1))
       order by coalesce(c.last_consumed_at, p.created_at), random()
    loop
      exit when cardinality(lanes) >= p_wanted;
      if not r.known then
        continue when not pg_try_advisory_xact_lock(hashtextextended('queen.cursor/' || r.id || '/' || p_group, 0));
        perform 1 from queen.open_cursors(array[r.id], array[p_group]);
      end if;
      perform 1 from queen.partition_consumers c where c.partition_id = r.id and c.group_id = p_group
          for no key update skip locked;
      if found then
        lanes := lanes || r.id;
      end if;
    end loop;
    if cardinality(lanes) >= p_wanted then
      return;
    end if;
    if coalesce(cardinality(v_page), 0) = v_page_max then
      v_after := v_page[v_page_max];
    elsif v_wrapped then
      return;
    else
      v_wrapped := true;
      v_after := 0;
    end if;
    v_page := null;
  end loop;
  complete := false;
end
$$;

revoke execute on function queen.sql_find_lanes(int8, int4, int4, int8[]) from public;
