-- sweep_retention: one round of removing what queues no longer keep: by age (retentionSeconds), by age of what
-- everybody finished (completedRetentionSeconds), and what expired (ttl).
--
-- in   p_position  where the round before ended; empty: from the beginning
--      p_batch     segments to remove at most
-- out  next        where the next round begins; null: the pass is complete
--      done        what was done, by kind
--
-- A round ends after 50 ms, too, with the lane at hand, so that no lane is held for long. A lane that another
-- transaction holds is left for the next pass.
--
-- Locks, never waiting: queues and their groups (key share, so that no seek moves a group back meanwhile),
-- partitions.
create or replace function queen.sweep_retention(p_position jsonb, p_batch int4, out next jsonb, out done jsonb)
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
  v_until     timestamptz := clock_timestamp() + interval '50 milliseconds';
  v_now       timestamptz := clock_timestamp();
  v_page_max  constant int4 := 200;
  v_queue     int8 := coalesce((p_position ->> 'queue')::int8, 0);
  v_after     int8 := coalesce((p_position ->> 'partition')::int8, 0);
  v_left      int4 := p_batch;
  v_page      int8[];
  v_groups    int4;
  v_still     int4;
  v_old_at    timestamptz;
  v_expired_at timestamptz;
  v_done_at   timestamptz;
  v_old       int8;
  v_finished  int8;
  v_stopped   bool := false;
  q           record;
  l           record;
  t           record;
begin
  done := '{}';
  loop
    select * into q from queen.queues
     where id >= v_queue
       and (ttl > 0 or retention_enabled and (retention_seconds > 0 or completed_retention_seconds > 0))
     order by id limit 1
       for key share skip locked;
    exit when not found;
    if q.id <> v_queue then
      v_queue := q.id;
      v_after := 0;
    end if;
    v_old_at := case when q.retention_enabled and q.retention_seconds > 0
                     then v_now - q.retention_seconds * interval '1 second' end;
    v_expired_at := case when q.ttl > 0 then v_now - q.ttl * interval '1 second' end;
    v_done_at := null;
    if q.retention_enabled and q.completed_retention_seconds > 0 then
      select count(*)::int4 into v_groups from queen.consumer_groups where queue_id = q.id;
      perform 1 from queen.consumer_groups where queue_id = q.id for key share skip locked;
      get diagnostics v_still = row_count;
      if v_groups > 0 and v_still >= v_groups then
        v_done_at := v_now - q.completed_retention_seconds * interval '1 second';
      end if;
    end if;

    select array_agg(p.id order by p.id) into v_page
      from (select id from queen.partitions where queue_id = q.id and id > v_after order by id limit v_page_max) p;
    v_old := 0;
    v_finished := 0;
    for l in
      select p.id
        from unnest(v_page) as on_page (id)
        join queen.partitions p on p.id = on_page.id
       cross join lateral (select s.created_at, s.first_offset + s.count as end_offset from queen.segments s
                            where s.partition_id = p.id and s.first_offset >= p.start_offset
                            order by s.first_offset limit 1) s
       where p.start_offset < p.next_offset
         and (s.created_at < greatest(v_old_at, v_expired_at)
              or s.created_at < v_done_at
                 and not exists (select 1 from queen.partition_consumers c      -- spares most lanes the lock
                                  where c.partition_id = p.id and c.committed < s.end_offset))
       order by p.id
    loop
      t := queen.trim_lane(l.id, v_old_at, v_expired_at, v_done_at, v_left);
      v_old := v_old + t.old;
      v_finished := v_finished + t.finished;
      v_left := v_left - coalesce(t.segments, 0);
      v_after := l.id;
      if v_left <= 0 then
        v_after := l.id - 1;                  -- there may be more in it
      end if;
      v_stopped := v_left <= 0 or clock_timestamp() >= v_until;
      exit when v_stopped;
    end loop;

    insert into queen.retention_history (queue_id, kind, messages)
    select q.id, h.kind, h.messages
      from (values ('retention', v_old), ('completed_retention', v_finished)) as h (kind, messages)
     where h.messages > 0;
    done := queen.add_counts(done, jsonb_build_object('retentionMessages', v_old, 'completedMessages', v_finished));
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
  done := queen.add_counts(done, jsonb_build_object('segments', p_batch - v_left));
end
$$;
