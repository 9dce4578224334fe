-- sweep_eviction: one round of moving messages that waited longer than maxWaitTimeSeconds to the dead letters of
-- the groups that have not finished them, each group for itself.
--
-- in   p_position  where the round before ended; empty: from the beginning
--      p_batch     messages to move at most
-- out  next        where the next round begins; null: the pass is complete
--      done        what was done, by kind
--
-- A round ends after 50 ms, too. A cursor that another transaction holds is left for the next pass.
--
-- Locks: queues (key share) and cursors, never waiting.
create or replace function queen.sweep_eviction(p_position jsonb, p_batch int4, out next jsonb, out done jsonb)
language plpgsql
set search_path = queen, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_until      timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_now        timestamptz := clock_timestamp();
  v_page_max   constant int4 := 200;
  v_queue      int8 := coalesce((p_position ->> 'queue')::int8, 0);
  v_after      int8 := coalesce((p_position ->> 'partition')::int8, 0);
  v_left       int4 := p_batch;
  v_page       int8[];
  v_waited_at  timestamptz;
  v_expired_at timestamptz;
  v_moved      int8;
  v_last       int8;                         -- the lane at hand
  v_free       int8[] := '{}';
  v_stopped    bool := false;
  q            record;
  l            record;
  e            record;
begin
  loop
    select * into q from queen.queues
     where id >= v_queue and max_wait_time_seconds > 0
     order by id limit 1
       for key share skip locked;
    exit when not found;
    if q.id <> v_queue then
      v_queue := q.id;
      v_after := 0;
    end if;
    v_waited_at := v_now - q.max_wait_time_seconds * interval '1 second';
    v_expired_at := case when q.ttl > 0 then v_now - q.ttl * interval '1 second' end;
    select array_agg(p.id order by p.id) into v_page
      from (select id from queen.partitions where queue_id = q.id and id > v_after order by id limit v_page_max) p;
    v_moved := 0;
    v_last := v_page[1];
    for l in
      select p.id, g.id as group_id
        from unnest(v_page) as on_page (id)
        join queen.partitions p on p.id = on_page.id
        join queen.consumer_groups g on g.queue_id = q.id
        left join queen.partition_consumers c on c.partition_id = p.id and c.group_id = g.id
       cross join lateral (select greatest(coalesce(c.committed, 0), p.start_offset) as place) f
       cross join lateral (select s.created_at from queen.segments s
                            where s.partition_id = p.id and s.first_offset <= f.place
                            order by s.first_offset desc limit 1) s
       where p.next_offset > f.place and s.created_at < v_waited_at
         and (c.partition_id is not null or g.subscription_from is null or p.last_at >= g.subscription_from)
       order by p.id, g.id
    loop
      if l.id <> v_last and clock_timestamp() >= v_until then
        v_after := v_last;
        v_stopped := true;
        exit;
      end if;
      v_last := l.id;
      e := queen.evict_lane(l.id, l.group_id, v_waited_at, v_expired_at,
                            format('waited longer than maxWaitTimeSeconds (%s s)', q.max_wait_time_seconds), v_left);
      v_moved := v_moved + coalesce(e.evicted, 0);
      v_left := v_left - coalesce(e.evicted, 0);
      if e.is_free then
        v_free := v_free || l.id;
      end if;
      if v_left <= 0 then
        v_after := l.id - 1;                  -- there may be more in it
        v_stopped := true;
        exit;
      end if;
    end loop;

    if v_moved > 0 then
      insert into queen.retention_history (queue_id, kind, messages)
      values (q.id, 'max_wait_time_eviction', v_moved);
    end if;
    if not v_stopped then
      if cardinality(v_page) = v_page_max then
        v_after := v_page[v_page_max];
      else
        v_queue := q.id + 1;
        v_after := 0;
      end if;
      v_stopped := clock_timestamp() >= v_until;
    end if;
    if v_stopped then
      next := jsonb_build_object('queue', v_queue, 'partition', v_after);
      exit;
    end if;
  end loop;
  perform queen.lanes_freed(v_free);
  done := jsonb_build_object('evictedMessages', p_batch - v_left);
end
$$;
